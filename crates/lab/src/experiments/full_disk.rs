//! The host runs out of space under a guest: what the guest sees, whether it goes on once there is
//! space again, and whether all that was acknowledged is still there.

mod nested;
mod observations;
mod zfs;

pub use crate::experiments::small_filesystem::HostFs;
pub use observations::{Ending, FullDiskOutcome, RefusedWrite};
pub use zfs::{ZFS_CASES, ZfsTrial, run as run_zfs};

use crate::Guest;
use crate::GuestOptions;
use crate::GuestRegistry;
use crate::Image;
use crate::LabError;
use crate::Sync;
use crate::disk::{Disk, DiskFormat};
use crate::experiments::powercut;
use crate::experiments::small_filesystem::Room;
use crate::record::SIZE;
use assay_loads::Cancel;
use assay_qemu::Qmp;
use serde_json::json;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// What is tried.
#[derive(Clone, Debug)]
pub struct FullDiskTrial {
    /// The disks, each written to in turn. Their files lie on the small file system.
    pub disks: Vec<Disk>,
    /// How the guest asks for durability.
    pub sync: Sync,
    /// The host's file system.
    pub host: HostFs,
    /// Bytes that are free when the writing begins.
    pub room: u64,
    /// Records to write once there is space again.
    pub after: u64,
    /// Chooses the records' content.
    pub seed: u64,
}

/// What was found, and what ended it before everything was tried.
pub type FullDiskFindings = (Vec<FullDiskOutcome>, Option<LabError>);

/// Gets each outcome as it comes, before the records were looked for.
pub type Told<'a> = &'a mut (dyn FnMut(&FullDiskOutcome) + Send);

/// Boots a guest with its disks on a small file system, fills that up under one disk after the
/// other, frees it again, and looks for what was acknowledged.
///
/// # Errors
/// Not root, a tool that is missing, as [`Guest::boot`]. Nothing is left behind.
pub fn run(
    image: &Image,
    options: &GuestOptions,
    trial: &FullDiskTrial,
    state: &GuestRegistry,
    cancel: &Cancel,
    told: Told<'_>,
) -> Result<FullDiskFindings, LabError> {
    for disk in &trial.disks {
        if disk.size < 4 * trial.room {
            return Err(LabError::Disk {
                name: disk.name.clone(),
                source: "it has to be four times as large as the space that is left".into(),
            });
        }
    }
    // The mounts of a thread of its own end with it.
    std::thread::scope(|scope| {
        let inside = scope.spawn(|| on_a_room(image, options, trial, state, cancel, told));
        inside
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn on_a_room(
    image: &Image,
    options: &GuestOptions,
    trial: &FullDiskTrial,
    state: &GuestRegistry,
    cancel: &Cancel,
    told: Told<'_>,
) -> Result<FullDiskFindings, LabError> {
    let room = Room::make(state, &format!("{}-room", options.name), trial.host)?;
    let mut options = options.clone();
    options.disks.clone_from(&trial.disks);
    for disk in &mut options.disks {
        disk.dir = Some(room.path().to_owned());
    }
    let mut guest = Guest::boot(image, &options, state, cancel)?;
    let names: Vec<_> = trial.disks.iter().map(|disk| disk.name.as_str()).collect();
    let devices = guest.devices(&names)?;
    let mut outcomes = Vec::new();
    let mut early = None;
    for (disk, device) in trial.disks.iter().zip(&devices) {
        match fill(&guest, disk, device, trial, &room) {
            Ok(outcome) => {
                told(&outcome);
                outcomes.push(outcome);
            }
            Err(error) => {
                early = Some(error);
                break;
            }
        }
    }
    if outcomes.is_empty() {
        return early.map_or(Ok((outcomes, None)), Err);
    }
    // QEMU writes what it still has: this is not about power cuts.
    guest.quit(Duration::from_secs(60))?;
    for (disk, outcome) in options.disks.iter().zip(&mut outcomes) {
        let (file, plain) = (guest.disk_file(disk), guest.dir().join("full.raw"));
        let content = match disk.format {
            DiskFormat::Raw => &file,
            DiskFormat::Qcow2 { .. } | DiskFormat::Luks => {
                powercut::convert(disk, &file, &plain)?;
                &plain
            }
        };
        let lost = powercut::count_missing(content, trial.seed, outcome.acknowledged);
        outcome.lost = lost.map_err(LabError::io(content))?;
    }
    Ok((outcomes, early))
}

/// What the one who watches QEMU shares with the one who listens to the guest.
struct Shared {
    done: AtomicBool,
    /// Records acknowledged so far.
    acknowledged: AtomicU64,
    /// Records acknowledged when the guest was paused; the greatest number before that.
    paused_at: AtomicU64,
}

/// What was seen of QEMU.
#[derive(Default)]
struct Watched {
    pauses: u32,
    events: Vec<RefusedWrite>,
}

/// Writes to one disk until the host has no space, frees it, and writes on.
fn fill(
    guest: &Guest,
    disk: &Disk,
    device: &Path,
    trial: &FullDiskTrial,
    room: &Room,
) -> Result<FullDiskOutcome, LabError> {
    let free = room.leave(trial.room)?;
    let shared = Shared {
        done: AtomicBool::new(false),
        acknowledged: AtomicU64::new(0),
        paused_at: AtomicU64::new(u64::MAX),
    };
    let whole = match trial.sync {
        // The guest's memory takes it all: enough to run out of space when it is written back.
        Sync::Never => 2 * trial.room / SIZE as u64,
        Sync::Dsync | Sync::Fsync => disk.size / SIZE as u64 - trial.after,
    };
    let (written, watched) = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(guest, room, &shared));
        let written = write(guest, device, trial, 0..whole, &shared);
        shared.done.store(true, Ordering::Relaxed);
        let watched = watcher
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (written, watched)
    });
    let watched = watched?;
    let mut outcome = FullDiskOutcome {
        disk: disk.name.clone(),
        what: disk.describe(),
        sync: trial.sync,
        free,
        before: shared.acknowledged.load(Ordering::Relaxed),
        pauses: watched.pauses,
        events: watched.events,
        error: None,
        after: 0,
        acknowledged: 0,
        lost: 0,
    };
    if let Err(error) = written {
        let LabError::Refused { errno, reason, .. } = error else {
            return Err(error);
        };
        outcome.error = Some((errno, reason));
    }
    if watched.pauses > 0 {
        outcome.before = shared.paused_at.load(Ordering::Relaxed);
    }
    outcome.acknowledged = shared.acknowledged.load(Ordering::Relaxed);
    outcome.after = outcome.acknowledged - outcome.before;
    // Not paused: there is space again now. Does the guest go on?
    if watched.pauses == 0 {
        room.free()?;
        let from = outcome.acknowledged;
        let upto = from + trial.after;
        let again = write(guest, device, trial, from..upto, &shared);
        if let Err(error) = again
            && !matches!(error, LabError::Refused { .. })
        {
            return Err(error);
        }
        outcome.acknowledged = shared.acknowledged.load(Ordering::Relaxed).max(from);
        outcome.after = outcome.acknowledged - from;
    }
    Ok(outcome)
}

/// Writes records until the guest's kernel refuses, or enough were written after a pause. Without
/// durability it is asked for it once, at the end: else nobody would hear of an error.
fn write(
    guest: &Guest,
    device: &Path,
    trial: &FullDiskTrial,
    records: std::ops::Range<u64>,
    shared: &Shared,
) -> Result<(), LabError> {
    guest.log_records(device, trial.sync, trial.seed, records, &mut |count| {
        shared.acknowledged.store(count, Ordering::Relaxed);
        let paused_at = shared.paused_at.load(Ordering::Relaxed);
        count < paused_at.saturating_add(trial.after)
    })?;
    match trial.sync {
        Sync::Never => sync_data(guest, device),
        Sync::Dsync | Sync::Fsync => Ok(()),
    }
}

/// Asks for durability of all that was written to a file or device.
fn sync_data(guest: &Guest, path: &Path) -> Result<(), LabError> {
    let text = path.to_string_lossy();
    let synced = crate::experiments::pool::run_command(guest, &["sync", "--data", &text]);
    synced.map(drop).map_err(|error| match error {
        // `/usr/bin/sync: error syncing '/dev/vdb': Input/output error`
        LabError::Refused { reason, .. } => {
            let why = reason.rsplit(": ").next().unwrap_or(&reason);
            crate::experiments::pool::refused_path(path, &format!("{why} (at the fsync)"))
        }
        other => other,
    })
}

/// Watches QEMU until the writing is done. A guest that is paused gets space and goes on.
fn watch(guest: &Guest, room: &Room, shared: &Shared) -> Result<Watched, LabError> {
    /// More pauses than one after space was freed say that something else is wrong.
    const ENOUGH: u32 = 8;
    let mut watched = Watched::default();
    let mut qmp = guest.monitor()?;
    loop {
        let done = shared.done.load(Ordering::Relaxed);
        let status = qmp.execute("query-status", json!({}))?;
        if status["status"] == "io-error" {
            watched.pauses += 1;
            let now = shared.acknowledged.load(Ordering::Relaxed);
            shared.paused_at.fetch_min(now, Ordering::Relaxed);
            if watched.pauses > ENOUGH {
                return Err(LabError::Gone {
                    why: "QEMU paused it again and again although there was space".to_owned(),
                    console: guest.console(),
                });
            }
            room.free()?;
            go_on(&mut qmp)?;
        }
        watched.events.extend(RefusedWrite::all(&qmp.take_events()));
        if done {
            return Ok(watched);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn go_on(qmp: &mut Qmp) -> Result<(), LabError> {
    Ok(qmp.execute("cont", json!({})).map(drop)?)
}
