//! Checks whether a pool or volume group has enough free space for temporary objects.

use assay_facts::lvm::{self, Row};
use assay_host::{Host, Limits};
use assay_model::Bytes;
use std::ffi::OsStr;
use std::time::Duration;

/// Limits of the tools. The time limit is long because the tools scan every device of the machine.
const TOOL_LIMITS: Limits = Limits {
    timeout: Duration::from_secs(60),
};
/// Maximum fill level of a pool, as a fraction. In a fuller pool, ZFS searches for free space at every write.
const POOL_FULL: f64 = 0.9;
/// Maximum fill level of a thin pool, as a fraction. A full thin pool stops all of its volumes.
const THIN_FULL: f64 = 0.8;

fn ask(host: &dyn Host, argv: &[&str]) -> Result<String, String> {
    let program = argv.first().copied().unwrap_or_default();
    let words: Vec<&OsStr> = argv.iter().map(OsStr::new).collect();
    match host.run(&words, TOOL_LIMITS) {
        Ok(output) if output.success() => Ok(output.text()),
        Ok(output) => Err(format!("{program}: {}", output.complaint())),
        Err(error) if error.is_absent() => Err(format!("{program} is not installed")),
        Err(error) => Err(error.to_string()),
    }
}

/// Checks that a ZFS file system has `needed` bytes free, and that its pool stays below [`POOL_FULL`].
///
/// # Errors
/// The reason why there is too little space.
pub(crate) fn of_dataset(host: &dyn Host, parent: &str, needed: Bytes) -> Result<(), String> {
    let list = |columns: &str, name: &str| {
        let text = ask(host, &["zfs", "list", "-Hp", "-o", columns, "--", name])?;
        let fields = text.trim().split('\t').map(str::to_owned);
        Ok::<Vec<String>, String>(fields.collect())
    };
    let own = list("type,available", parent)?;
    let [kind, available] = &own[..] else {
        return Err(format!("zfs list says {own:?}"));
    };
    if kind != "filesystem" {
        return Err(format!("it is a {kind}, and nothing can be made below it"));
    }
    let number = |text: &str| {
        text.parse::<u64>()
            .map_err(|_| format!("zfs list: {text:?}"))
    };
    let available = number(available)?;
    if available < needed.0 {
        return Err(format!(
            "{needed} are needed and {} are free: choose a smaller --size or fewer --layers",
            Bytes(available)
        ));
    }
    let pool = parent.split('/').next().unwrap_or_default();
    let all = list("used,available", pool)?;
    let [used, free] = &all[..] else {
        return Err(format!("zfs list says {all:?}"));
    };
    let (used, free) = (number(used)?, number(free)?);
    let full = (used + needed.0) as f64 / (used + free).max(1) as f64;
    if full > POOL_FULL {
        return Err(format!(
            "with {needed} more the pool {pool} would be {:.0} % full, and beyond {:.0} % it gets \
             slow for everybody: choose a smaller --size or fewer --layers",
            full * 100.0,
            POOL_FULL * 100.0
        ));
    }
    Ok(())
}

/// Checks that a volume group, or a thin pool in it, has `needed` bytes free and keeps a reserve for its other volumes.
///
/// # Errors
/// The reason why there is too little space.
pub(crate) fn of_group(
    host: &dyn Host,
    group: &str,
    thin_pool: Option<&str>,
    needed: Bytes,
) -> Result<(), String> {
    let groups = lvm::rows(&ask(host, &lvm::VGS)?)?;
    let volumes = lvm::rows(&ask(host, &lvm::LVS)?)?;
    judge_group(&groups, &volumes, group, thin_pool, needed)
}

fn judge_group(
    groups: &[Row],
    volumes: &[Row],
    group: &str,
    thin_pool: Option<&str>,
    needed: Bytes,
) -> Result<(), String> {
    let text = |row: &Row, field: &str| row.get(field).cloned().unwrap_or_default();
    let number = |row: &Row, field: &str| text(row, field).parse::<f64>().unwrap_or(0.0);
    let found = groups.iter().find(|row| text(row, "vg_name") == group);
    let found = found.ok_or_else(|| format!("vgs lists no volume group {group}"))?;
    let ours = volumes.iter().filter(|row| text(row, "vg_name") == group);
    let pools: Vec<&Row> = ours
        .filter(|row| text(row, "segtype") == "thin-pool")
        .collect();
    let Some(wanted) = thin_pool else {
        let free = Bytes(number(found, "vg_free") as u64);
        let extent = number(found, "vg_extent_size") as u64;
        if free.0 < needed.0.next_multiple_of(extent.max(1)) {
            return Err(format!(
                "{needed} are needed and {free} are free in the group: choose a smaller --size{}",
                match &pools[..] {
                    [] => String::new(),
                    [pool, ..] => format!(
                        ", or a thin volume, --scratch-vg {group}/{}",
                        text(pool, "lv_name")
                    ),
                }
            ));
        }
        // Volumes that grow automatically use the free space of the group.
        let tight = pools.iter().find(|pool| {
            number(pool, "data_percent").max(number(pool, "metadata_percent")) > 100.0 * THIN_FULL
        });
        return match tight {
            None => Ok(()),
            Some(pool) => Err(format!(
                "its thin pool {} is {} % full (metadata {} %) and may need the free room of the \
                 group at any moment: extend it first",
                text(pool, "lv_name"),
                text(pool, "data_percent"),
                text(pool, "metadata_percent")
            )),
        };
    };
    let pool = pools.iter().find(|row| text(row, "lv_name") == wanted);
    let pool = pool.ok_or_else(|| {
        let names: Vec<String> = pools.iter().map(|row| text(row, "lv_name")).collect();
        match &names[..] {
            [] => format!("there is no thin pool {wanted} in it, and no other"),
            names => format!(
                "there is no thin pool {wanted} in it; there is {}",
                names.join(", ")
            ),
        }
    })?;
    let size = number(pool, "lv_size").max(1.0);
    let full = number(pool, "data_percent") / 100.0 + needed.0 as f64 / size;
    let metadata = number(pool, "metadata_percent") / 100.0;
    match full.max(metadata) > THIN_FULL {
        false => Ok(()),
        true => Err(format!(
            "with {needed} more the thin pool would be {:.0} % full (metadata {:.0} % now), and one \
             that runs full stops every volume in it; assay goes no further than {:.0} %",
            full * 100.0,
            metadata * 100.0,
            THIN_FULL * 100.0
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(fields: &[(&str, &str)]) -> Row {
        fields
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn judge(free: &str, data: &str, pool: Option<&str>, mib: u64) -> Result<(), String> {
        let groups = [row(&[
            ("vg_name", "pve"),
            ("vg_free", free),
            ("vg_extent_size", "4194304"),
        ])];
        let volumes = [
            row(&[
                ("vg_name", "other"),
                ("lv_name", "data"),
                ("segtype", "thin-pool"),
                ("data_percent", "99"),
            ]),
            row(&[
                ("vg_name", "pve"),
                ("lv_name", "data"),
                ("segtype", "thin-pool"),
                ("lv_size", "1073741824"),
                ("data_percent", data),
                ("metadata_percent", "10.00"),
            ]),
        ];
        judge_group(&groups, &volumes, "pve", pool, Bytes(mib << 20))
    }

    #[test]
    fn a_group_keeps_what_its_thin_pools_may_need() {
        let gib = "1073741824";
        assert_eq!(judge(gib, "40.00", None, 256), Ok(()));
        insta::assert_snapshot!(judge(gib, "81.00", None, 256).unwrap_err(), @"its thin pool data is 81.00 % full (metadata 10.00 %) and may need the free room of the group at any moment: extend it first");
        insta::assert_snapshot!(judge("104857600", "40.00", None, 256).unwrap_err(), @"256 MiB are needed and 100 MiB are free in the group: choose a smaller --size, or a thin volume, --scratch-vg pve/data");
        assert_eq!(judge("0", "40.00", Some("data"), 256), Ok(()));
        insta::assert_snapshot!(judge("0", "60.00", Some("data"), 256).unwrap_err(), @"with 256 MiB more the thin pool would be 85 % full (metadata 10 % now), and one that runs full stops every volume in it; assay goes no further than 80 %");
        insta::assert_snapshot!(judge("0", "60.00", Some("date"), 256).unwrap_err(), @"there is no thin pool date in it; there is data");
        let lost = judge_group(&[], &[], "pve", None, Bytes(1));
        insta::assert_snapshot!(lost.unwrap_err(), @"vgs lists no volume group pve");
    }
}
