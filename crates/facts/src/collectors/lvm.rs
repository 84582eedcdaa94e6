//! Collects the LVM volumes and their segments, the volume groups, and the offset of data on physical volumes.

use crate::gather::{Gather, lossy, scalar};
use crate::lvm::{self, Row};
use assay_model::{FactKind, FactPlace, FactValue};
use serde_json::Value;

/// Fields that contain names. They are not noted, because the key of each fact contains these names already.
const NAMES: [&str; 4] = ["vg_name", "lv_name", "pv_name", "lv_dm_path"];
/// Fields that contain device numbers. They are not noted, because device numbers change with each boot.
const NUMBERS: [&str; 2] = ["lv_kernel_major", "lv_kernel_minor"];

pub(crate) fn collect(g: &mut Gather<'_>) {
    let names = g.list("lvm", "/sys/block");
    let devices = names.iter().map(|name| lossy(name));
    let devices: Vec<String> = devices.filter(|name| name.starts_with("dm-")).collect();
    let active = devices.iter().any(|name| {
        let uuid = g.read("lvm", &format!("/sys/block/{name}/dm/uuid"));
        uuid.is_some_and(|uuid| crate::dm::kind(uuid.trim()) == "lvm")
    });
    // The tools scan every device of the machine, so they run only if LVM is in use.
    if active {
        note_report(g, "lvm.lv", &lvm::LVS, |row| {
            let name = row.get("lv_name")?.trim_matches(['[', ']']);
            Some(format!("{}/{name}", row.get("vg_name")?))
        });
        note_health(g);
        note_fill(g);
        note_report(g, "lvm.vg", &lvm::VGS, |row| row.get("vg_name").cloned());
        note_report(g, "lvm.pv", &lvm::PVS, |row| row.get("pv_name").cloned());
        copy_unknown(g, "lvm.lv", "lvm.fill", &lvm::LVS);
        copy_unknown(g, "lvm.pv", "lvm.group", &lvm::PVS);
    }
}

/// If `report` could not be read, also notes the facts that are derived from it (`follows`) as unknown.
fn copy_unknown(g: &mut Gather<'_>, report: &str, follows: &str, argv: &[&str]) {
    let value = g.facts.map.get(report).map(|fact| &fact.value);
    if let Some(FactValue::Unknown(why)) = value {
        let (why, place) = (why.clone(), FactPlace::command(argv));
        g.facts.unknown(follows, why, FactKind::Runtime, place);
    }
}

/// Notes `lvm.fill.VG/LV`: how full thin pools and snapshots are, in percent. Uses the report of all volumes, which was
/// read before.
fn note_fill(g: &mut Gather<'_>) {
    let layouts: Vec<(String, String)> = g
        .facts
        .under("lvm.lv.")
        .filter_map(
            |(key, fact)| match (&fact.value, key.strip_suffix(".lv_role")) {
                (FactValue::Known(value), Some(name)) => {
                    Some((name.to_owned(), value.as_str()?.to_owned()))
                }
                _ => None,
            },
        )
        .collect();
    let place = FactPlace::command(lvm::LVS);
    for (key, role) in layouts {
        let layout = g.facts.str(&format!("{key}.lv_layout")).unwrap_or_default();
        let pool = layout.split(',').any(|word| word == "pool") && layout.contains("thin");
        let snapshot = role.contains("snapshot") && !layout.contains("thin");
        if !pool && !snapshot {
            continue;
        }
        let percent = |field: &str| {
            let value = g.facts.get(&format!("{key}.{field}"))?;
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            text.split('.').next()?.parse::<i64>().ok()
        };
        let (data, metadata) = (percent("data_percent"), percent("metadata_percent"));
        let name = key.trim_start_matches("lvm.lv.").to_owned();
        let kind = if pool { "thin pool" } else { "snapshot" };
        let mut note = |what: &str, value: Value| {
            let fact = format!("lvm.fill.{name}.{what}");
            g.facts.known(fact, value, FactKind::Runtime, place.clone());
        };
        note("kind", kind.into());
        if let Some(data) = data {
            note("data", data.into());
        }
        if let Some(metadata) = metadata.filter(|_| pool) {
            note("metadata", metadata.into());
        }
        g.about(["lvm.fill", &name]);
    }
}

/// Notes `lvm.volume.VG/LV.health` for damaged volumes. Internal parts of a volume, whose names are in brackets, are
/// skipped.
fn note_health(g: &mut Gather<'_>) {
    let Some(output) = g.ask("lvm.volume", &lvm::HEALTH) else {
        return;
    };
    let rows = match lvm::rows(&output.text()) {
        Ok(rows) => rows,
        Err(reason) => {
            let place = FactPlace::command(lvm::HEALTH);
            return g
                .facts
                .unknown("lvm.volume", reason, FactKind::Runtime, place);
        }
    };
    for row in rows {
        let (Some(group), Some(volume)) = (row.get("vg_name"), row.get("lv_name")) else {
            continue;
        };
        let (Some(health), false) = (row.get("lv_health_status"), volume.starts_with('[')) else {
            continue;
        };
        let name = format!("{group}/{volume}");
        for (what, value) in [
            ("health", Some(health)),
            ("layout", row.get("lv_layout")),
            ("sync_action", row.get("raid_sync_action")),
        ] {
            if let Some(value) = value {
                let key = format!("lvm.volume.{name}.{what}");
                let place = FactPlace::command(lvm::HEALTH);
                g.facts.known(key, value.as_str(), FactKind::Runtime, place);
            }
        }
        g.about(["lvm.volume", &name]);
    }
}

fn note_report(g: &mut Gather<'_>, key: &str, argv: &[&str], name: fn(&Row) -> Option<String>) {
    let Some(output) = g.ask(key, argv) else {
        return;
    };
    let source = FactPlace::command(argv);
    let rows = match lvm::rows(&output.text()) {
        Ok(rows) => rows,
        Err(reason) => return g.facts.unknown(key, reason, FactKind::Runtime, source),
    };
    for row in rows {
        let Some(name) = name(&row) else { continue };
        if row.contains_key("pv_missing") {
            note_missing(g, &row, &name, &source);
        }
        let fields = row
            .iter()
            .filter(|(field, _)| !NAMES.contains(&field.as_str()))
            .filter(|(field, _)| !NUMBERS.contains(&field.as_str()));
        for (field, value) in fields {
            let key = format!("{key}.{name}.{field}");
            // The first segment of a volume represents the other segments.
            if !g.facts.map.contains_key(&key) {
                g.facts
                    .known(key, scalar(value), FactKind::Runtime, source.clone());
            }
        }
    }
}

/// Notes `lvm.group.VG.missing`: the number of missing physical volumes of a group. LVM lists a missing volume as
/// `[unknown]`.
fn note_missing(g: &mut Gather<'_>, row: &Row, name: &str, source: &FactPlace) {
    let Some(group) = row.get("vg_name") else {
        return;
    };
    let key = format!("lvm.group.{group}.missing");
    let known = g.facts.get(&key).and_then(Value::as_array).cloned();
    let mut all = known.unwrap_or_default();
    all.push(name.into());
    g.facts.known(key, all, FactKind::Runtime, source.clone());
    g.about(["lvm.group", group]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    // Recorded: LVM 2.03.16, a thin pool and a volume of it on LUKS.
    const LVS: &str = include_str!("../../fixtures/lvm-2.03.16-lvs.json");
    const VGS: &str = include_str!("../../fixtures/lvm-2.03.16-vgs.json");
    const PVS: &str = include_str!("../../fixtures/lvm-2.03.16-pvs.json");

    fn host(uuid: &str) -> Recorded {
        Recorded::new()
            .file("/sys/block/dm-0/dm/uuid", uuid)
            .command(&lvm::LVS, LVS)
            .command(&lvm::VGS, VGS)
            .command_with(&lvm::PVS, 5, "", "  Permission denied: need root\n")
    }

    #[test]
    fn volumes_and_groups() {
        let host = host("LVM-abc\n");
        let mut g = Gather::new(&host);
        collect(&mut g);
        let facts = &g.facts;
        assert_eq!(facts.str("lvm.lv.vg-a/thin.segtype"), Some("thin"));
        assert_eq!(facts.str("lvm.lv.vg-a/thin.pool_lv"), Some("pool"));
        assert_eq!(facts.str("lvm.lv.vg-a/snap.origin"), Some("thin"));
        assert_eq!(facts.u64("lvm.lv.vg-a/pool.chunk_size"), Some(65536));
        assert_eq!(
            facts.u64("lvm.lv.vg-a/pool_tdata.lv_size"),
            Some(33_554_432)
        );
        assert_eq!(facts.u64("lvm.vg.vg-a.vg_extent_size"), Some(4 << 20));
        assert!(matches!(facts.map["lvm.pv"].value, FactValue::Unknown(_)));
        // A missing disk would have been in that report.
        assert!(matches!(
            facts.map["lvm.group"].value,
            FactValue::Unknown(_)
        ));
        assert!(!facts.map.contains_key("lvm.fill"));
        let rows = lvm::rows(PVS).unwrap();
        assert_eq!(rows[0]["pe_start"], "1048576");
    }

    #[test]
    fn nothing_is_asked_where_there_is_no_lvm() {
        let host = host("CRYPT-LUKS2-abc\n");
        let mut g = Gather::new(&host);
        collect(&mut g);
        assert!(g.facts.map.is_empty());
    }
}
