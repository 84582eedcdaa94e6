//! Numbers of disks: mean waits by direction, the layer in which requests wait, similar disks, steadiness.

use super::derived::set;
use super::{WatchWindow, WatchedEntity};
use crate::machine_snapshot::EntityKind;
use assay_render::text::escape_line;
use std::collections::BTreeMap;

pub(super) fn complete_disks(window: &mut WatchWindow) {
    let mut waits: BTreeMap<String, f64> = BTreeMap::new();
    for disk in window
        .entities
        .iter_mut()
        .filter(|entity| entity.kind == EntityKind::Disk)
    {
        let mut wait_all = 0.0;
        for kind in ["read", "write", "discard", "flush"] {
            let (ops, wait) = (
                disk.number(&format!("{kind}.ops")),
                disk.number(&format!("{kind}.wait")),
            );
            wait_all += wait;
            disk.numbers.entry(format!("{kind}.ops")).or_insert(0.0);
            set(
                disk,
                &format!("{kind}.await"),
                if ops > 0.0 { wait / ops } else { 0.0 },
            );
        }
        let ops = disk.number("read.ops") + disk.number("write.ops");
        let data_wait = disk.number("read.wait") + disk.number("write.wait");
        set(disk, "ops", ops);
        set(disk, "await", if ops > 0.0 { data_wait / ops } else { 0.0 });
        set(
            disk,
            "bytes",
            disk.number("read.bytes") + disk.number("write.bytes"),
        );
        set(disk, "busy", disk.number("busy").min(1.0));
        set(disk, "wait_all", wait_all);
        waits.insert(disk.name.clone(), wait_all);
    }
    let total: f64 = window
        .of_kind(EntityKind::Disk)
        .map(|disk| own_wait(disk, &waits))
        .sum();
    let disks: Vec<WatchedEntity> = window.of_kind(EntityKind::Disk).cloned().collect();
    for disk in window
        .entities
        .iter_mut()
        .filter(|entity| entity.kind == EntityKind::Disk)
    {
        let own = own_wait(disk, &waits);
        set(disk, "own_wait", own);
        set(
            disk,
            "wait_share",
            if total > 0.0 { own / total } else { 0.0 },
        );
        let is_sibling = |other: &&WatchedEntity| {
            let same = |key: &str| other.texts.get(key) == disk.texts.get(key);
            other.name != disk.name
                && same("rotational")
                && same("model")
                && other.number("ops") >= 1.0
                && !other.texts.contains_key("lower")
                && has_device_like(&other.name, &disk.name)
        };
        let mut siblings: Vec<f64> = disks
            .iter()
            .filter(is_sibling)
            .map(|other| other.number("await"))
            .collect();
        siblings.sort_by(f64::total_cmp);
        set(disk, "siblings", siblings.len() as f64);
        if let Some(median) = siblings.get(siblings.len() / 2) {
            set(disk, "siblings.await", *median);
        }
    }
    set(&mut window.machine, "disk.wait", total);
    let busiest = disks
        .iter()
        .max_by(|a, b| a.number("own_wait").total_cmp(&b.number("own_wait")));
    if let Some(disk) = busiest.filter(|disk| disk.number("ops") + disk.number("flush.ops") > 0.0) {
        let worst = disks
            .iter()
            .map(|disk| disk.number("flush.await"))
            .fold(0.0, f64::max);
        set(&mut window.machine, "disk.flush_await", worst);
        let busy = disks
            .iter()
            .map(|disk| disk.number("busy"))
            .fold(0.0, f64::max);
        set(&mut window.machine, "disk.busy", busy);
        let name = describe_disk(disk);
        window.machine.texts.insert("busiest_disk".to_owned(), name);
    }
}

/// Returns whether two kernel names differ only in their last letters or digits: `sda` and `sdb`, `loop0` and `loop3`.
fn has_device_like(a: &str, b: &str) -> bool {
    let stem = |name: &str| -> String {
        let name = name.trim_end_matches(|c: char| c.is_ascii_digit());
        match name.starts_with("sd") || name.starts_with("vd") || name.starts_with("xvd") {
            true => name.chars().take(2).collect(),
            false => name.to_owned(),
        }
    };
    stem(a) == stem(b)
}

/// Returns the time that requests spent in this layer, without the time in the layers below.
fn own_wait(disk: &WatchedEntity, waits: &BTreeMap<String, f64>) -> f64 {
    let lower = disk
        .texts
        .get("lower")
        .map_or("", String::as_str)
        .split(',');
    let below: f64 = lower.filter_map(|name| waits.get(name)).sum();
    (disk.number("wait_all") - below).max(0.0)
}

fn describe_disk(disk: &WatchedEntity) -> String {
    match disk.texts.get("dm") {
        Some(name) => format!("{} ({})", escape_line(&disk.name), escape_line(name)),
        None => escape_line(&disk.name),
    }
}

/// Adds the steadiness of each disk's requests: the spread of the rates of all intervals, divided by their mean.
pub(super) fn add_steadiness(window: &mut WatchWindow) {
    for disk in window
        .entities
        .iter_mut()
        .filter(|entity| entity.kind == EntityKind::Disk)
    {
        let Some(curve) = window.curves.remove(&format!("requests: {}", disk.name)) else {
            continue;
        };
        let count = curve.len() as f64;
        let mean = curve.iter().map(|(_, value)| *value).sum::<f64>() / count.max(1.0);
        if count >= 5.0 && mean > 0.0 {
            let squares: f64 = curve.iter().map(|(_, value)| (value - mean).powi(2)).sum();
            set(disk, "steadiness", (squares / count).sqrt() / mean);
        }
    }
}
