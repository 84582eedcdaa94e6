//! Tests what happens if a host runs out of space while a guest writes: which error the guest gets, whether the guest
//! continues after space is freed, and whether all acknowledged records are still on the disk.

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

/// What the test writes, and to which disks.
#[derive(Clone, Debug)]
pub struct FullDiskTrial {
    /// Disks of the guest, which are filled one after the other. Their files are on the small file system of the host.
    pub disks: Vec<Disk>,
    /// How the guest requests durability.
    pub sync: Sync,
    /// Type of the small file system on the host that contains the disk files.
    pub host: HostFs,
    /// Free space in bytes on the small file system when writing starts.
    pub room: u64,
    /// Number of records to write after the host has free space again.
    pub after: u64,
    /// Seed from which the content of the records is derived.
    pub seed: u64,
}

/// Outcome of each finished disk, and the error that ended the test early, if any.
pub type FullDiskFindings = (Vec<FullDiskOutcome>, Option<LabError>);

/// Callback that receives the outcome for a disk before its records are checked.
pub type Told<'a> = &'a mut (dyn FnMut(&FullDiskOutcome) + Send);

/// Boots a guest with its disks on a small file system. For each disk, fills the file system, frees the space, and
/// checks the acknowledged records.
///
/// # Errors
/// assay does not run as root, a tool is missing, or as [`Guest::boot`]. The guest and the file system are always
/// removed.
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
    // The mounts of a separate thread end with it.
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
    // QEMU writes its cached data; power cuts are tested elsewhere.
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

/// State that the watcher of QEMU and the writer in the guest share.
struct Shared {
    done: AtomicBool,
    /// Number of records acknowledged so far.
    acknowledged: AtomicU64,
    /// Number of records acknowledged when QEMU first paused the guest; `u64::MAX` before the first pause.
    paused_at: AtomicU64,
}

/// Pauses and failed writes that QEMU reported.
#[derive(Default)]
struct Watched {
    pauses: u32,
    events: Vec<RefusedWrite>,
}

/// Writes to one disk until the host has no space, then frees space and continues to write.
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
        // The guest's memory accepts everything: enough to run out of space at writeback.
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
    // The guest was not paused. Now there is space again: check whether it continues.
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

/// Writes records until the guest's kernel refuses a write, or until `after` records were written after a pause. If the
/// trial requests no durability (`Sync::Never`), syncs once at the end, because a write error would otherwise go
/// unnoticed.
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

/// Syncs all data of a file or device.
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

/// Polls QEMU until the writer is done. If QEMU paused the guest, frees space and resumes it.
fn watch(guest: &Guest, room: &Room, shared: &Shared) -> Result<Watched, LabError> {
    /// Maximum number of pauses. If QEMU pauses more often although space was freed, there is another problem.
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
