//! ZFS: module version and parameters, ARC; for a target its dataset's and its pool's properties.

use crate::gather::{Gather, lossy, scalar};
use crate::zpool;
use assay_model::{FactKind, Facts};
use serde_json::Value;

const PARAMETERS: &str = "/sys/module/zfs/parameters";
const ARCSTATS: &str = "/proc/spl/kstat/zfs/arcstats";

/// Names of one machine, not of how it is set up.
const IDENTITY: [&str; 5] = ["guid", "objsetid", "load_guid", "createtxg", "creation"];

pub(crate) fn collect(g: &mut Gather<'_>) {
    g.text("zfs.version", "/sys/module/zfs/version");
    for name in g.list("zfs.param", PARAMETERS) {
        let name = lossy(&name);
        g.value(
            &format!("zfs.param.{name}"),
            &format!("{PARAMETERS}/{name}"),
            |text| Some(scalar(text)),
        );
    }
    if let Some(text) = g.read("zfs.arc", ARCSTATS) {
        for name in [
            "size",
            "c",
            "c_min",
            "c_max",
            "hits",
            "misses",
            "l2_size",
            "compressed_size",
            "uncompressed_size",
        ] {
            if let Some(value) = arcstat(&text, name) {
                g.facts.known(
                    format!("zfs.arc.{name}"),
                    value,
                    FactKind::Runtime,
                    ARCSTATS,
                );
            }
        }
    }
}

/// A line `name type data` of a kstat.
fn arcstat(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next()? == name).then(|| words.nth(1)?.parse().ok())?
    })
}

/// Properties of a dataset and of its pool.
pub(crate) fn dataset(g: &mut Gather<'_>, dataset: &str) {
    let key = format!("zfs.dataset.{dataset}");
    let argv = [
        "zfs",
        "get",
        "-Hp",
        "-o",
        "property,value,source",
        "all",
        dataset,
    ];
    if let Some(output) = ask(g, &key, &argv) {
        properties(&mut g.facts, &key, &output, &argv.join(" "));
    }
    let pool = dataset.split('/').next().unwrap_or(dataset);
    let key = format!("zfs.pool.{pool}");
    let argv = [
        "zpool",
        "get",
        "-Hp",
        "-o",
        "property,value,source",
        "all",
        pool,
    ];
    if let Some(output) = ask(g, &key, &argv) {
        properties(&mut g.facts, &key, &output, &argv.join(" "));
    }
    let argv = ["zpool", "status", "-LP", pool];
    if let Some(output) = ask(g, &format!("{key}.layout"), &argv) {
        let layout: Vec<Value> = zpool::layout(&output, pool)
            .into_iter()
            .map(Value::from)
            .collect();
        g.facts.known(
            format!("{key}.layout"),
            layout,
            FactKind::Configured,
            argv.join(" "),
        );
        if let Some(state) = output
            .lines()
            .find_map(|line| line.trim().strip_prefix("state: "))
        {
            g.facts.known(
                format!("{key}.state"),
                state,
                FactKind::Runtime,
                argv.join(" "),
            );
        }
    }
}

/// A dataset is mounted here, so a missing tool is no reason to say that there are no properties.
fn ask(g: &mut Gather<'_>, key: &str, argv: &[&str]) -> Option<String> {
    match g.try_ask(argv) {
        Ok(output) if output.success() => return Some(output.text()),
        Ok(output) => g
            .facts
            .unknown(key, output.complaint(), FactKind::Runtime, argv.join(" ")),
        Err(error) => g
            .facts
            .unknown(key, error.reason(), FactKind::Runtime, argv.join(" ")),
    }
    None
}

/// `property value source`, with tabs; the source tells how it came to be so (zfsprops(7)).
fn properties(facts: &mut Facts, key: &str, text: &str, command: &str) {
    for line in text.lines() {
        let mut fields = line.split('\t');
        let (Some(name), Some(value), Some(source)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        // A colon marks properties of users, which may say anything.
        if name.contains(':') || IDENTITY.contains(&name) {
            continue;
        }
        let (kind, how) = match source {
            "default" => (FactKind::Default, String::new()),
            "-" | "" => (FactKind::Runtime, String::new()),
            other => (FactKind::Configured, format!(" ({other})")),
        };
        facts.known(
            format!("{key}.{name}"),
            scalar(value),
            kind,
            format!("{command}{how}"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    const GET: &str = include_str!("../../fixtures/zfs-get-from-documentation.txt");
    const STATUS: &str = include_str!("../../fixtures/zpool-status-from-documentation.txt");

    fn host() -> Recorded {
        Recorded::new()
            .command(&["zfs", "get", "-Hp", "-o", "property,value,source", "all", "tank/data"], GET)
            .command_with(&["zpool", "get", "-Hp", "-o", "property,value,source", "all", "tank"], 1, "", "Permission denied the ZFS utilities must be run as root.\n")
            .command(&["zpool", "status", "-LP", "tank"], STATUS)
            .file("/sys/module/zfs/version", "2.1.11-1\n")
            .file("/sys/module/zfs/parameters/zfs_arc_max", "0\n")
            .denied("/sys/module/zfs/parameters/zfs_txg_timeout")
            .file("/sys/module/zfs/parameters/zfs_txg_timeout", "5\n")
            .file(ARCSTATS, "13 1 0x01 123 33456 1 2\nname                            type data\nhits                            4    91\nc_min                           4    786432\nc_max                           4    12582912\nsize                            4    1000\n")
    }

    #[test]
    fn properties_say_how_they_came_to_be() {
        let host = host();
        let mut g = Gather::new(&host);
        dataset(&mut g, "tank/data");
        assert_eq!(
            g.facts.u64("zfs.dataset.tank/data.recordsize"),
            Some(131_072)
        );
        let kind = |name: &str| g.facts.map[&format!("zfs.dataset.tank/data.{name}")].kind;
        assert_eq!(kind("recordsize"), FactKind::Default);
        assert_eq!(kind("compression"), FactKind::Configured);
        assert_eq!(kind("used"), FactKind::Runtime);
        assert!(
            g.facts.map["zfs.dataset.tank/data.compression"]
                .source
                .ends_with("(inherited from tank)")
        );
        let text = format!("{:?}", g.facts);
        assert!(!text.contains("backup:note") && !text.contains("guid"));
        assert_eq!(g.facts.str("zfs.pool.tank.state"), Some("ONLINE"));
        assert_eq!(
            g.facts.get("zfs.pool.tank.layout").unwrap()[0],
            "mirror: /dev/sda1 /dev/sdb1"
        );
        assert!(
            matches!(&g.facts.map["zfs.pool.tank"].value, assay_model::FactValue::Unknown(why) if why.contains("run as root"))
        );
    }

    #[test]
    fn module_and_arc() {
        let host = host();
        let mut g = Gather::new(&host);
        collect(&mut g);
        assert_eq!(g.facts.str("zfs.version"), Some("2.1.11-1"));
        assert_eq!(g.facts.u64("zfs.arc.c_max"), Some(12_582_912));
        assert_eq!(g.facts.u64("zfs.arc.size"), Some(1000));
        assert!(g.facts.get("zfs.param.zfs_txg_timeout").is_none());
        assert!(g.facts.map.contains_key("zfs.param.zfs_txg_timeout"));
    }
}
