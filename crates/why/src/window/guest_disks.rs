//! Numbers of guests' disks: mean waits, used fraction of each limit, disks of other guests.

use super::WatchWindow;
use super::derived::set;
use crate::WatchSubject;
use crate::machine_snapshot::EntityKind;

/// Limits of a guest's disk, and the rates that count towards each.
const LIMITS: [(&str, &[&str]); 6] = [
    ("limit.ops", &["read.ops", "write.ops"]),
    ("limit.read_ops", &["read.ops"]),
    ("limit.write_ops", &["write.ops"]),
    ("limit.bytes", &["read.bytes", "write.bytes"]),
    ("limit.read_bytes", &["read.bytes"]),
    ("limit.write_bytes", &["write.bytes"]),
];

pub(super) fn complete_guest_disks(window: &mut WatchWindow, thing: &WatchSubject) {
    let all = window.entities.iter_mut();
    for disk in all.filter(|entity| entity.kind == EntityKind::GuestDisk) {
        for kind in ["read", "write", "flush"] {
            let (ops, wait) = (
                disk.number(&format!("{kind}.ops")),
                disk.number(&format!("{kind}.wait")),
            );
            let mean = if ops > 0.0 { wait / ops } else { 0.0 };
            set(disk, &format!("{kind}.await"), mean);
        }
        let ops = disk.number("read.ops") + disk.number("write.ops");
        set(disk, "ops", ops);
        let wait = disk.number("read.wait") + disk.number("write.wait");
        set(disk, "await", if ops > 0.0 { wait / ops } else { 0.0 });
        set(disk, "wait_all", wait + disk.number("flush.wait"));
        let mut most = (0.0, "");
        for (limit, rates) in LIMITS {
            let value = disk.number(limit);
            let used: f64 = rates.iter().map(|rate| disk.number(rate)).sum();
            if value > 0.0 && used / value > most.0 {
                most = (used / value, limit);
            }
        }
        set(disk, "limit_used", most.0);
        let unit = if most.1.ends_with("bytes") {
            "MB/s"
        } else {
            "requests/s"
        };
        let value = disk.number(most.1) / if unit == "MB/s" { 1e6 } else { 1.0 };
        let text = format!("{value:.0} {unit}");
        disk.texts.insert("limit".to_owned(), text);
        disk.is_asked = match thing {
            WatchSubject::Machine => true,
            WatchSubject::Named(name) => disk.texts.get("guest") == Some(name),
            WatchSubject::Process(pid) => disk.texts.get("pid") == Some(&pid.to_string()),
            _ => false,
        };
    }
    let disks: Vec<(String, f64, f64)> = window
        .of_kind(EntityKind::GuestDisk)
        .filter(|disk| disk.number("ops") + disk.number("flush.ops") >= 1.0)
        .map(|disk| {
            let guest = disk.texts.get("guest").cloned().unwrap_or_default();
            (guest, disk.number("await"), disk.number("flush.await"))
        })
        .collect();
    let all = window.entities.iter_mut();
    for disk in all.filter(|entity| entity.kind == EntityKind::GuestDisk) {
        let own = disk.texts.get("guest").cloned().unwrap_or_default();
        let others: Vec<_> = disks.iter().filter(|(guest, ..)| *guest != own).collect();
        let median = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or(0.0)
        };
        let waits = median(others.iter().map(|(_, wait, _)| *wait).collect());
        let flushes = median(others.iter().map(|(.., flush)| *flush).collect());
        set(disk, "others", others.len() as f64);
        set(disk, "others.await", waits);
        set(disk, "others.flush_await", flushes);
    }
}
