//! ZFS and md: transaction groups, ARC, states of pools and arrays.

use super::MachineReader;
use crate::machine_snapshot::{Entity, EntityKind, MachineSnapshot};

const ZFS: &str = "/proc/spl/kstat/zfs";
const ARC: [(&str, &str); 9] = [
    ("size", "zfs.arc"),
    ("c", "zfs.arc_target"),
    ("c_min", "zfs.arc_min"),
    ("c_max", "zfs.arc_max"),
    ("hits", "zfs.hits_total"),
    ("misses", "zfs.misses_total"),
    ("memory_throttle_count", "zfs.memory_throttle_total"),
    ("memory_direct_count", "zfs.memory_direct_total"),
    ("arc_no_grow", "zfs.no_grow"),
];
const DMU: [(&str, &str); 5] = [
    ("dmu_tx_dirty_throttle", "zfs.dirty_throttle_total"),
    ("dmu_tx_dirty_delay", "zfs.dirty_delay_total"),
    ("dmu_tx_dirty_over_max", "zfs.dirty_over_total"),
    ("dmu_tx_memory_reclaim", "zfs.memory_reclaim_total"),
    ("dmu_tx_quota", "zfs.quota_total"),
];
const ZIL: [(&str, &str); 3] = [
    ("zil_commit_count", "zfs.commits_total"),
    ("zil_itx_metaslab_normal_count", "zfs.zil_on_disks_total"),
    ("zil_itx_metaslab_slog_count", "zfs.zil_on_log_total"),
];

pub(super) fn read(reader: &mut MachineReader, look: &mut MachineSnapshot) {
    read_zfs(reader, look);
    if !reader.is_thorough() {
        return;
    }
    for name in reader.names("/sys/block") {
        let dir = format!("/sys/block/{name}/md");
        let Some(level) = reader.text(&format!("{dir}/level")) else {
            continue;
        };
        let mut array = Entity::new(EntityKind::Array, name.as_str(), name.as_str());
        array
            .texts
            .insert("level".to_owned(), level.trim().to_owned());
        if let Some(degraded) = reader.number(&format!("{dir}/degraded")) {
            array.set("degraded", degraded);
        }
        if let Some(kib) = reader.number(&format!("{dir}/sync_speed")) {
            array.set("sync_speed", kib * 1024.0);
        }
        if let Some(action) = reader.text(&format!("{dir}/sync_action")) {
            array
                .texts
                .insert("action".to_owned(), action.trim().to_owned());
        }
        look.entities.push(array);
    }
}

fn read_zfs(reader: &mut MachineReader, look: &mut MachineSnapshot) {
    for (file, known) in [("arcstats", &ARC[..]), ("dmu_tx", &DMU), ("zil", &ZIL)] {
        let Some(text) = reader.text(&format!("{ZFS}/{file}")) else {
            continue;
        };
        // Lines are `name type data`: the value follows the type.
        for line in text.lines().skip(2) {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let [name, _, value] = words[..] else {
                continue;
            };
            let key = known.iter().find(|(known, _)| *known == name);
            if let (Some((_, key)), Ok(value)) = (key, value.parse()) {
                look.set(*key, value);
            }
        }
    }
    if !look.machine.contains_key("zfs.arc") {
        return;
    }
    for name in reader.names(ZFS) {
        let Some(state) = reader.text(&format!("{ZFS}/{name}/state")) else {
            continue;
        };
        let mut pool = Entity::new(EntityKind::Pool, name.as_str(), name.as_str());
        pool.texts
            .insert("state".to_owned(), state.trim().to_owned());
        if let Some(text) = reader.text(&format!("{ZFS}/{name}/txgs")) {
            parse_txgs(&text, &mut pool);
        }
        look.entities.push(pool);
    }
    if let Some(limit) = reader.number("/sys/module/zfs/parameters/zfs_dirty_data_max") {
        look.set("zfs.dirty_max", limit);
    }
}

/// Parses the last completed transaction groups: bytes written by each, and its duration.
fn parse_txgs(text: &str, pool: &mut Entity) {
    let mut lines = text.lines().skip(1);
    let names: Vec<&str> = lines
        .next()
        .unwrap_or_default()
        .split_ascii_whitespace()
        .collect();
    let column = |name: &str| names.iter().position(|known| *known == name);
    let (Some(state), Some(dirty), Some(sync)) =
        (column("state"), column("ndirty"), column("stime"))
    else {
        return;
    };
    let done: Vec<(f64, f64)> = lines
        .filter_map(|line| {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            (words.get(state) == Some(&"C")).then_some(())?;
            Some((
                words.get(dirty)?.parse().ok()?,
                words.get(sync)?.parse().ok()?,
            ))
        })
        .collect();
    let last = &done[done.len().saturating_sub(5)..];
    if !last.is_empty() {
        let longest = last
            .iter()
            .map(|(_, nanos)| nanos / 1e9)
            .fold(0.0, f64::max);
        let most = last.iter().map(|(bytes, _)| *bytes).fold(0.0, f64::max);
        pool.set("txg.sync_s", longest);
        pool.set("txg.dirty", most);
    }
}
