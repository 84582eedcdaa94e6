//! Users that are close to the kernel's limit of inotify instances or watches per user.

use super::MachineReader;
use crate::machine_snapshot::MachineSnapshot;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

/// Maximum number of processes that are examined; [`MOST_LINKS`] limits the links of open files.
const MOST_PROCESSES: usize = 2000;
const MOST_LINKS: usize = 20_000;
/// Maximum bytes of the lists of watches; a watch takes about 100 bytes.
const MOST_BYTES: usize = 8 << 20;

/// inotify instances and watches of one user.
#[derive(Default)]
struct Usage {
    instances: f64,
    watches: f64,
    /// Number of instances by process.
    processes: BTreeMap<u32, f64>,
}

/// Adds the usage of the user that is closest to a limit.
pub(super) fn read(reader: &mut MachineReader, look: &mut MachineSnapshot) {
    const LIMITS: &str = "/proc/sys/fs/inotify";
    let (Some(instances), Some(watches)) = (
        reader.number(&format!("{LIMITS}/max_user_instances")),
        reader.number(&format!("{LIMITS}/max_user_watches")),
    ) else {
        return;
    };
    let users = count_users(reader);
    let share = |usage: &Usage| {
        let of = |used: f64, most: f64| used / most.max(1.0);
        of(usage.instances, instances).max(of(usage.watches, watches))
    };
    let Some((uid, usage)) = users
        .iter()
        .max_by(|a, b| share(a.1).total_cmp(&share(b.1)))
    else {
        return;
    };
    for (key, value) in [
        ("inotify.share", share(usage)),
        ("inotify.instances", usage.instances),
        ("inotify.most_instances", instances),
        ("inotify.watches", usage.watches),
        ("inotify.most_watches", watches),
    ] {
        look.set(key, value);
    }
    look.texts
        .insert("inotify.user".to_owned(), uid.to_string());
    let first = usage.processes.iter().max_by(|a, b| a.1.total_cmp(b.1));
    if let Some((pid, _)) = first {
        let label = reader.label_process(*pid);
        look.texts.insert("inotify.process".to_owned(), label);
    }
}

fn count_users(reader: &mut MachineReader) -> BTreeMap<u32, Usage> {
    let mut users: BTreeMap<u32, Usage> = BTreeMap::new();
    let (mut links, mut bytes) = (0, MOST_BYTES);
    let names = reader.names("/proc");
    let pids = names.iter().filter_map(|name| name.parse::<u32>().ok());
    for pid in pids.take(MOST_PROCESSES) {
        for number in reader.names(&format!("/proc/{pid}/fd")) {
            links += 1;
            if links > MOST_LINKS {
                return users;
            }
            let link = reader.link(&format!("/proc/{pid}/fd/{number}"));
            if link.as_deref() != Some("anon_inode:inotify") {
                continue;
            }
            let Some(uid) = reader.owner(Path::new(&format!("/proc/{pid}"))) else {
                continue;
            };
            let usage = users.entry(uid).or_default();
            usage.instances += 1.0;
            *usage.processes.entry(pid).or_default() += 1.0;
            let info = format!("/proc/{pid}/fdinfo/{number}");
            usage.watches += count_watches(reader, Path::new(&info), &mut bytes);
        }
    }
    users
}

/// Counts the watches of an instance (lines `inotify wd:…`) until `bytes` is used up.
fn count_watches(reader: &mut MachineReader, info: &Path, bytes: &mut usize) -> f64 {
    let (mut count, mut repeated) = (0_u32, 0);
    reader.scan(info, &mut |piece| {
        let new = &piece[repeated..];
        repeated = piece.len().min(assay_host::REPEATED);
        *bytes = bytes.saturating_sub(new.len());
        let lines = new.iter().filter(|byte| **byte == b'\n').count();
        count = count.saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
        match *bytes {
            0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    });
    // pos, flags, mnt_id, ino
    f64::from(count.saturating_sub(4))
}
