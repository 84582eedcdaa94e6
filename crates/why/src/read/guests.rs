//! Disks of QEMU guests with QEMU's own counters: requests, times, limits. The values come from the monitor (QMP) that
//! QEMU's command line names, by read-only commands. Monitors of libvirt are not used, because libvirt occupies them.
#![allow(
    clippy::disallowed_methods,
    reason = "reads answers of a monitor within a deadline"
)]

use super::MachineReader;
use crate::machine_snapshot::{Entity, EntityKind, MachineSnapshot};
use assay_facts::qemu;
use assay_qemu::{Qmp, QmpError};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time limit for an answer of a monitor.
const ANSWER: Duration = Duration::from_millis(400);
/// Maximum number of guests that are queried.
const MOST: usize = 32;

/// Counters of `query-blockstats`: QEMU's name, name in a snapshot, and divisor.
const COUNTERS: [(&str, &str, f64); 9] = [
    ("rd_operations", "read.ops_total", 1.0),
    ("wr_operations", "write.ops_total", 1.0),
    ("flush_operations", "flush.ops_total", 1.0),
    ("rd_bytes", "read.bytes_total", 1.0),
    ("wr_bytes", "write.bytes_total", 1.0),
    ("rd_total_time_ns", "read.wait_total", 1e9),
    ("wr_total_time_ns", "write.wait_total", 1e9),
    ("flush_total_time_ns", "flush.wait_total", 1e9),
    ("failed_wr_operations", "failed_total", 1.0),
];

/// Limits of `query-block`: QEMU's name, and name in a snapshot.
const LIMITS: [(&str, &str); 6] = [
    ("iops", "limit.ops"),
    ("iops_rd", "limit.read_ops"),
    ("iops_wr", "limit.write_ops"),
    ("bps", "limit.bytes"),
    ("bps_rd", "limit.read_bytes"),
    ("bps_wr", "limit.write_bytes"),
];

/// Monitors of guests that did not answer; they are not queried again.
#[derive(Default)]
pub(super) struct GuestMonitors {
    silent: BTreeSet<PathBuf>,
}

impl GuestMonitors {
    /// Adds the disks of those guests that are among the processes of a snapshot.
    pub(super) fn read(&mut self, reader: &mut MachineReader, look: &mut MachineSnapshot) {
        let mut guests = Vec::new();
        for process in &look.entities {
            let text = |key: &str| process.texts.get(key).cloned();
            if let (Some(guest), Some(pid)) = (text("guest"), text("pid")) {
                guests.push((guest, pid));
            }
        }
        for (guest, pid) in guests.into_iter().take(MOST) {
            let line = reader.text(&format!("/proc/{pid}/cmdline"));
            let argv = qemu::argv(line.unwrap_or_default().as_bytes());
            let Some(socket) = find_monitor(&argv).filter(|path| !self.silent.contains(path))
            else {
                continue;
            };
            // The path may be one of the guest's own file system.
            let socket = Path::new(&format!("/proc/{pid}/root"))
                .join(socket.strip_prefix("/").unwrap_or(&socket));
            if !reader.begin(&socket) {
                continue;
            }
            let answer = ask(&socket);
            reader.end();
            match answer {
                Ok((stats, blocks)) => add_disks(look, &guest, &pid, &stats, &blocks),
                Err(error) => {
                    reader
                        .missing
                        .insert(format!("disks of guest {guest}: {error}"));
                    if let Some(path) = find_monitor(&argv) {
                        self.silent.insert(path);
                    }
                }
            }
        }
    }
}

/// Finds the monitor socket in QEMU's command line: `-qmp unix:PATH`, or `-chardev socket,path=PATH` with `-mon
/// mode=control`. `None` for monitors of libvirt.
fn find_monitor(argv: &[String]) -> Option<PathBuf> {
    let mut sockets: BTreeMap<&str, &str> = BTreeMap::new();
    let mut found = None;
    for pair in argv.windows(2) {
        let [option, argument] = pair else { continue };
        let option = option.trim_start_matches('-');
        let value = |key: &str| {
            let mut parts = argument.split(',');
            parts.find_map(|part| part.strip_prefix(key)?.strip_prefix('='))
        };
        match option {
            "qmp" | "qmp-pretty" => {
                let path = argument
                    .strip_prefix("unix:")
                    .map(|rest| rest.split(',').next());
                found = found.or(path.flatten());
            }
            "chardev" if argument.starts_with("socket") => {
                if let (Some(id), Some(path)) = (value("id"), value("path")) {
                    sockets.insert(id, path);
                }
            }
            "mon" if argument.contains("mode=control") => {
                let name = value("chardev").or(argument.split(',').next());
                found = found.or(name.and_then(|name| sockets.get(name).copied()));
            }
            _ => {}
        }
    }
    let path = found.filter(|path| path.starts_with('/') && !path.contains("/libvirt/"))?;
    Some(PathBuf::from(path))
}

/// Queries a monitor for counters and limits.
fn ask(socket: &Path) -> Result<(Value, Value), QmpError> {
    let lost = |source| QmpError::Connection {
        command: "connection".to_owned(),
        source,
    };
    let stream = assay_host::socket::connect(socket).map_err(lost)?;
    stream.set_read_timeout(Some(ANSWER)).map_err(lost)?;
    stream.set_write_timeout(Some(ANSWER)).map_err(lost)?;
    let writer = stream.try_clone().map_err(lost)?;
    let mut qmp = Qmp::over(Box::new(BufReader::new(stream)), Box::new(writer), ANSWER)?;
    let stats = qmp.execute("query-blockstats", json!({}))?;
    let blocks = qmp.execute("query-block", json!({}))?;
    Ok((stats, blocks))
}

fn add_disks(look: &mut MachineSnapshot, guest: &str, pid: &str, stats: &Value, blocks: &Value) {
    for disk in stats.as_array().into_iter().flatten() {
        let device = disk["device"].as_str().filter(|name| !name.is_empty());
        let path = disk["qdev"].as_str();
        let Some(name) = device.or(path).or(disk["node-name"].as_str()) else {
            continue;
        };
        let id = format!("{pid}:{name}");
        let mut entity = Entity::new(EntityKind::GuestDisk, id, name);
        entity.texts.insert("guest".to_owned(), guest.to_owned());
        entity.texts.insert("pid".to_owned(), pid.to_owned());
        for (key, known, divisor) in COUNTERS {
            if let Some(count) = disk["stats"][key].as_f64() {
                entity.set(known, count / divisor);
            }
        }
        let same = |block: &&Value| {
            block["device"].as_str().filter(|name| !name.is_empty()) == device
                && block["qdev"].as_str() == path
        };
        if let Some(block) = blocks.as_array().into_iter().flatten().find(same) {
            let inserted = &block["inserted"];
            for (key, known) in LIMITS {
                if let Some(limit) = inserted[key].as_f64().filter(|limit| *limit > 0.0) {
                    entity.set(known, limit);
                }
            }
            if let Some(file) = inserted["image"]["filename"]
                .as_str()
                .or(inserted["file"].as_str())
            {
                entity.texts.insert("file".to_owned(), file.to_owned());
            }
        }
        look.entities.push(entity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn monitor(words: &[&str]) -> Option<String> {
        let argv: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Some(find_monitor(&argv)?.to_string_lossy().into_owned())
    }

    #[test]
    fn a_monitor_is_found_on_the_command_lines_of_qemu_and_proxmox() {
        let plain = ["qemu", "-qmp", "unix:/run/q,server=on,wait=off"];
        assert_eq!(monitor(&plain).as_deref(), Some("/run/q"));
        let proxmox = [
            "kvm",
            "-id",
            "100",
            "-chardev",
            "socket,id=qmp,path=/var/run/qemu-server/100.qmp,server=on,wait=off",
            "-mon",
            "chardev=qmp,mode=control",
        ];
        assert_eq!(
            monitor(&proxmox).as_deref(),
            Some("/var/run/qemu-server/100.qmp")
        );
        let libvirt = [
            "qemu",
            "-qmp",
            "unix:/var/lib/libvirt/qemu/domain-1-x/monitor.sock",
        ];
        assert_eq!(monitor(&libvirt), None);
        assert_eq!(monitor(&["qemu", "-qmp", "tcp:localhost:4444"]), None);
    }

    #[test]
    fn counters_and_limits_become_numbers_of_a_disk() {
        let stats = json!([{"device": "virtio0", "stats": {"rd_operations": 10, "rd_total_time_ns": 2_000_000_000_u64,
            "flush_operations": 3}}, {"device": "", "node-name": "#block1"}, 7]);
        let blocks =
            json!([{"device": "virtio0", "inserted": {"iops": 50, "bps": 0, "file": "/i/d.raw"}}]);
        let mut look = MachineSnapshot::default();
        add_disks(&mut look, "db", "12", &stats, &blocks);
        let disk = &look.entities[0];
        assert_eq!(
            (
                disk.numbers["read.ops_total"],
                disk.numbers["read.wait_total"]
            ),
            (10.0, 2.0)
        );
        assert_eq!(disk.numbers["limit.ops"], 50.0);
        assert!(!disk.numbers.contains_key("limit.bytes"));
        assert_eq!(disk.texts["file"], "/i/d.raw");
    }
}
