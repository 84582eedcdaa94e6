//! Power-cut test for zvols and files on ZFS in the guest, for each value of the property `sync`.
//!
//! The pool's disk is rebuilt as after a power cut, many times, each for another point in time. A second guest has all
//! these disks. It imports the pool from each disk, which replays the intent log, and reads the records.

use super::{PowerCutOutcome, PowerCutTrial, choose_cuts, count_missing, write};
use crate::Guest;
use crate::GuestOptions;
use crate::GuestRegistry;
use crate::Image;
use crate::LabError;
use crate::disk::{Bus, CacheMode, Disk, DiskFormat};
use crate::experiments::pool::{ZFS_COMMAND_LIMIT, copy_out, run_command, wait_for};
use crate::experiments::writelog::{self, Unflushed};
use crate::record::SIZE;
use assay_loads::Cancel;
use std::path::{Path, PathBuf};

/// Directory in the second guest below which it mounts the imported pools (`altroot`).
const ALTROOT: &str = "/cut";
/// Maximum number of disks that are attached to the second guest at once, because the guest needs time to detect each
/// disk.
const MOST: usize = 128;

/// Targets that are written in turn on each pool.
const TARGETS: [Target; 4] = [
    Target {
        volume: true,
        sync: "standard",
    },
    Target {
        volume: true,
        sync: "always",
    },
    Target {
        volume: true,
        sync: "disabled",
    },
    Target {
        volume: false,
        sync: "standard",
    },
];

/// What the test writes to: a zvol, or a file on a dataset.
#[derive(Clone, Copy, Debug)]
struct Target {
    volume: bool,
    sync: &'static str,
}

impl Target {
    fn dataset(self, pool: &str) -> String {
        let kind = if self.volume { "volume" } else { "files" };
        format!("{pool}/{kind}-{}", self.sync)
    }

    fn path(self, pool: &str, root: &str) -> PathBuf {
        let dataset = self.dataset(pool);
        match self.volume {
            true => Path::new("/dev/zvol").join(dataset),
            false => PathBuf::from(format!("{root}/{dataset}/file")),
        }
    }

    fn describe(self, disk: &Disk) -> String {
        let kind = if self.volume { "zvol" } else { "file on ZFS" };
        format!("{kind} sync={} on {}", self.sync, disk.describe())
    }
}

/// Result of writing to one target.
struct Written {
    disk: usize,
    target: Target,
    /// Length of the write log in bytes when writing to the target starts. `moments` contains the length at each
    /// acknowledgement.
    begin: u64,
    moments: Vec<u64>,
}

/// A simulated power cut: the disk that was rebuilt, and the number of records that were acknowledged before the cut.
struct Cut {
    written: usize,
    acknowledged: u64,
    disk: Disk,
}

/// Like [`super::run`], but for zvols and files on pools; each pool is on one of the trial's disks. Calls `told` with
/// the number of checked cuts and the total number of cuts.
///
/// # Errors
/// As [`Guest::boot`], or ZFS in the guest refuses. The guests are always removed.
pub fn run(
    image: &Image,
    options: &GuestOptions,
    trial: &PowerCutTrial,
    state: &GuestRegistry,
    cancel: &Cancel,
    told: &mut dyn FnMut(u64, u64),
) -> Result<Vec<PowerCutOutcome>, LabError> {
    let most = (MOST / TARGETS.len() / trial.disks.len().max(1)) as u64;
    let trial = PowerCutTrial {
        cuts: trial.cuts.min(most),
        ..trial.clone()
    };
    let mut options = options.clone();
    options.disks.clone_from(&trial.disks);
    for disk in &mut options.disks {
        disk.logged = true;
    }
    let mut guest = Guest::boot(image, &options, state, cancel)?;
    let written = write_all(&guest, &options.disks, &trial)?;
    guest.cut_power();

    let mut outcomes = Vec::new();
    let mut images = Vec::new();
    for (index, one) in written.iter().enumerate() {
        let disk = &options.disks[one.disk];
        let (_, log) = guest.disk_log(disk).ok_or_else(|| super::no_log(disk))?;
        let entries = writelog::read(&log)?;
        let last = one.moments.last().copied().unwrap_or(one.begin);
        outcomes.push(PowerCutOutcome {
            disk: disk.name.clone(),
            what: one.target.describe(disk),
            claims: one.target.sync != "disabled" && disk.cache != CacheMode::Unsafe,
            acknowledged: one.moments.len() as u64,
            flushes: writelog::count_flushes(&entries, one.begin + 1..last + 1),
            cuts: 0,
            lossy: 0,
            lost: 0,
            note: None,
        });
        for (acknowledged, moment) in choose_cuts(&one.moments, trial.cuts) {
            let left = (trial.unflushed, trial.seed);
            let path = match rebuild_disk(&guest, disk, (&entries, moment, left), images.len()) {
                Ok(path) => path,
                // An image that can no longer be opened has lost all records.
                Err(error @ LabError::Disk { .. }) => {
                    if let Some(outcome) = outcomes.last_mut() {
                        outcome.note = Some(error.to_string());
                        outcome.cut(acknowledged);
                    }
                    continue;
                }
                Err(error) => return Err(error),
            };
            images.push(Cut {
                written: index,
                acknowledged,
                disk: Disk {
                    bus: Bus::VirtioScsi,
                    content: Some(path),
                    ..Disk::scratch(&format!("cut{}", images.len()), disk.size)
                },
            });
        }
    }
    options.name = format!("{}-again", options.name);
    options.disks = images.iter().map(|cut| cut.disk.clone()).collect();
    let again = Guest::boot(image, &options, state, cancel)?;
    let names: Vec<_> = options
        .disks
        .iter()
        .map(|disk| disk.name.as_str())
        .collect();
    let devices = again.devices(&names)?;
    for (index, (cut, device)) in images.iter().zip(&devices).enumerate() {
        told(index as u64, images.len() as u64);
        let one = &written[cut.written];
        let pool = pool_name(&trial.disks[one.disk]);
        let outcome = &mut outcomes[cut.written];
        let found = guest.dir().join("found");
        match look(&again, device, &pool, one.target, cut.acknowledged, &found) {
            Ok(()) => {
                let lost = count_missing(&found, trial.seed, cut.acknowledged);
                outcome.cut(lost.map_err(LabError::io(&found))?);
            }
            // Without a pool nothing can be read.
            Err(LabError::Refused { reason, .. }) => {
                outcome.note = Some(reason);
                outcome.cut(cut.acknowledged);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(outcomes)
}

fn pool_name(disk: &Disk) -> String {
    format!("lab-{}", disk.name)
}

/// Creates the pools and writes to each target, one after the other. The power cut interrupts the writer of the last
/// target.
fn write_all(
    guest: &Guest,
    disks: &[Disk],
    trial: &PowerCutTrial,
) -> Result<Vec<Written>, LabError> {
    let names: Vec<_> = disks.iter().map(|disk| disk.name.as_str()).collect();
    let devices = guest.devices(&names)?;
    // Volumes are thin; the size is a multiple of every volblocksize up to 1 MiB.
    let size = (2 * trial.records * SIZE as u64).next_multiple_of(1 << 20);
    let size = size.to_string();
    let mut written = Vec::new();
    for (index, (disk, device)) in disks.iter().zip(&devices).enumerate() {
        let pool = pool_name(disk);
        let device = device.to_string_lossy();
        guest.create_pool(&[&pool, &device], ZFS_COMMAND_LIMIT)?;
        for target in TARGETS {
            make(guest, target, &pool, &size)?;
        }
        for target in TARGETS {
            let path = target.path(&pool, "");
            if target.volume {
                wait_for(guest, &path)?;
            }
            let (_, log) = guest.disk_log(disk).ok_or_else(|| super::no_log(disk))?;
            let begin = log.metadata().map_err(LabError::io(&log))?.len();
            let moments = write(guest, disk, &path, trial)?;
            written.push(Written {
                disk: index,
                target,
                begin,
                moments,
            });
        }
    }
    Ok(written)
}

/// Creates a thin volume, or a dataset with an empty file.
fn make(guest: &Guest, target: Target, pool: &str, size: &str) -> Result<(), LabError> {
    let (dataset, sync) = (target.dataset(pool), format!("sync={}", target.sync));
    let mut argv = vec!["zfs", "create", "-o", &sync];
    if target.volume {
        argv.extend(["-s", "-V", size]);
    }
    argv.push(&dataset);
    run_command(guest, &argv)?;
    match target.volume {
        true => Ok(()),
        false => guest.push_bytes(&[], &target.path(pool, ""), 0o600),
    }
}

/// Rebuilds the disk as it is after a power cut at this length of the write log.
fn rebuild_disk(
    guest: &Guest,
    disk: &Disk,
    (entries, moment, left): (&[writelog::LoggedRequest], u64, (Unflushed, u64)),
    number: usize,
) -> Result<PathBuf, LabError> {
    let (first, log) = guest.disk_log(disk).ok_or_else(|| super::no_log(disk))?;
    let image = guest.dir().join(format!("cut{number}"));
    crate::sparse::copy(&first, &image)?;
    writelog::replay(&log, entries, moment, left, &image)?;
    if disk.format == DiskFormat::Raw {
        return Ok(image);
    }
    let plain = guest.dir().join(format!("cut{number}.raw"));
    super::convert(disk, &image, &plain)?;
    Ok(plain)
}

/// Imports the pool from one disk alone, copies the records out, and exports the pool.
fn look(
    guest: &Guest,
    device: &Path,
    pool: &str,
    target: Target,
    records: u64,
    found: &Path,
) -> Result<(), LabError> {
    // ZFS created a partition table on the disk; its data is in the first partition.
    let part = format!("{}1", device.display());
    run_command(
        guest,
        &[
            "zpool",
            "import",
            "-f",
            "-R",
            ALTROOT,
            "-o",
            "cachefile=none",
            "-d",
            &part,
            pool,
        ],
    )?;
    let copied = copy_out(guest, &target.path(pool, ALTROOT), records, found);
    run_command(guest, &["zpool", "export", "-f", pool])?;
    copied
}
