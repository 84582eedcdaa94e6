//! Tests whether durable data still exists after a power cut.
//!
//! Killing QEMU alone loses nothing, because QEMU's writes are in the host's page cache. So QEMU logs every write and
//! flush that it sends to the host (`blklogwrites`), in one log per disk. From the log, assay rebuilds the disk as it
//! would be after a power cut: flushed data exists, all other data is lost. assay repeats this for many points in time.
//! Each point is an acknowledgement; the last one is the kill.

mod zfs;

pub use zfs::run as run_zfs;

use crate::Guest;
use crate::GuestOptions;
use crate::GuestRegistry;
use crate::Image;
use crate::LabError;
use crate::Sync;
use crate::disk::{CacheMode, Disk, DiskFormat, SECRET};
use crate::experiments::writelog::{self, Unflushed};
use crate::qemu_img;
use crate::record::{SIZE, record};
use assay_loads::Cancel;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// What the test writes, and how often it cuts the power.
#[derive(Clone, Debug)]
pub struct PowerCutTrial {
    /// Disks of the guest, which are tested one after the other.
    pub disks: Vec<Disk>,
    /// How the guest requests durability.
    pub sync: Sync,
    /// Number of acknowledgements to wait for, on each disk.
    pub records: u64,
    /// Number of power cuts, evenly distributed over the acknowledgements.
    pub cuts: u64,
    /// Which unflushed writes survive a power cut.
    pub unflushed: Unflushed,
    /// Seed of the records' content and of the unflushed writes.
    pub seed: u64,
}

/// Outcome of the test for one disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PowerCutOutcome {
    /// Name of the disk that was tested.
    pub disk: String,
    /// Format, bus, cache mode and I/O method of the disk, as text.
    pub what: String,
    /// Whether the disk's cache mode promises durability; the cache mode `unsafe` does not.
    pub claims: bool,
    /// Number of records that the guest's kernel reported as durable.
    pub acknowledged: u64,
    /// Number of flushes that QEMU sent to the host before the kill.
    pub flushes: u64,
    /// Number of simulated power cuts.
    pub cuts: u64,
    /// Number of power cuts after which an acknowledged record was missing.
    pub lossy: u64,
    /// Largest number of acknowledged records missing after one power cut.
    pub lost: u64,
    /// Why the records could not be checked; `None` if they were checked.
    pub note: Option<String>,
}

impl PowerCutOutcome {
    /// Returns whether the disk kept its promise: nothing is lost, or its cache mode promises no durability.
    #[must_use]
    pub fn as_promised(&self) -> bool {
        self.lost == 0 || !self.claims
    }

    /// Counts a power cut after which `lost` acknowledged records were missing.
    fn cut(&mut self, lost: u64) {
        self.cuts += 1;
        self.lossy += u64::from(lost > 0);
        self.lost = self.lost.max(lost);
    }
}

/// Boots a guest with the disks, writes, cuts the power, and counts the missing records. Calls `told` with the number
/// of disks that were written, later with the number of disks that were checked, each time with the total.
///
/// # Errors
/// As [`Guest::boot`], or a file cannot be read. The guest is always removed.
pub fn run(
    image: &Image,
    options: &GuestOptions,
    trial: &PowerCutTrial,
    state: &GuestRegistry,
    cancel: &Cancel,
    told: &mut dyn FnMut(u64, u64),
) -> Result<Vec<PowerCutOutcome>, LabError> {
    let all = 2 * trial.disks.len() as u64;
    let mut done = 0;
    let mut one_more = || {
        done += 1;
        told(done, all);
    };
    let mut options = options.clone();
    options.disks.clone_from(&trial.disks);
    for disk in &mut options.disks {
        disk.logged = true;
        let room = disk.size / SIZE as u64;
        if room < 2 * trial.records {
            return Err(LabError::Disk {
                name: disk.name.clone(),
                source: format!("too small for twice {} records of 4 KiB", trial.records).into(),
            });
        }
    }
    let mut guest = Guest::boot(image, &options, state, cancel)?;
    let names: Vec<_> = options
        .disks
        .iter()
        .map(|disk| disk.name.as_str())
        .collect();
    let devices = guest.devices(&names)?;
    let mut moments = Vec::new();
    for (disk, device) in options.disks.iter().zip(&devices) {
        moments.push(write(&guest, disk, device, trial)?);
        one_more();
    }
    // The last writer still runs: the cut interrupts it.
    guest.cut_power();
    let judged = options.disks.iter().zip(&moments);
    judged
        .map(|(disk, moments)| {
            let outcome = judge(&guest, disk, moments, trial);
            one_more();
            outcome
        })
        .collect()
}

/// Writes to one disk. Returns the length of its log at each acknowledgement.
fn write(
    guest: &Guest,
    disk: &Disk,
    device: &Path,
    trial: &PowerCutTrial,
) -> Result<Vec<u64>, LabError> {
    let (_, log) = guest.disk_log(disk).ok_or_else(|| no_log(disk))?;
    let mut moments = Vec::new();
    let mut failed = None;
    guest.log(device, trial.sync, trial.seed, &mut |_| {
        match fs::metadata(&log) {
            Ok(found) => moments.push(found.len()),
            Err(error) => failed = Some(error),
        }
        failed.is_none() && (moments.len() as u64) < trial.records
    })?;
    match failed {
        Some(error) => Err(LabError::io(&log)(error)),
        None => Ok(moments),
    }
}

fn no_log(disk: &Disk) -> LabError {
    LabError::Disk {
        name: disk.name.clone(),
        source: "it has no log of its writes".into(),
    }
}

fn judge(
    guest: &Guest,
    disk: &Disk,
    moments: &[u64],
    trial: &PowerCutTrial,
) -> Result<PowerCutOutcome, LabError> {
    let (first, log) = guest.disk_log(disk).ok_or_else(|| no_log(disk))?;
    let entries = writelog::read(&log)?;
    let (image, plain) = (guest.dir().join("cut"), guest.dir().join("cut.raw"));
    let mut outcome = PowerCutOutcome {
        disk: disk.name.clone(),
        what: disk.describe(),
        claims: disk.cache != CacheMode::Unsafe,
        acknowledged: moments.len() as u64,
        flushes: 0,
        cuts: 0,
        lossy: 0,
        lost: 0,
        note: None,
    };
    outcome.flushes = writelog::count_flushes(&entries, 0..u64::MAX);
    for (count, moment) in choose_cuts(moments, trial.cuts) {
        fs::copy(&first, &image).map_err(LabError::io(&image))?;
        let left = (trial.unflushed, trial.seed);
        writelog::replay(&log, &entries, moment, left, &image)?;
        let content = match disk.format {
            DiskFormat::Raw => &image,
            DiskFormat::Qcow2 { .. } | DiskFormat::Luks => match convert(disk, &image, &plain) {
                Ok(()) => &plain,
                // An image that can no longer be opened has lost all records.
                Err(error @ LabError::Disk { .. }) => {
                    outcome.note = Some(error.to_string());
                    outcome.cut(count);
                    continue;
                }
                Err(error) => return Err(error),
            },
        };
        outcome.cut(count_missing(content, trial.seed, count).map_err(LabError::io(content))?);
    }
    Ok(outcome)
}

/// Selects evenly distributed power cuts from the acknowledgements. Returns, for each cut, the number of acknowledged
/// records and the length of the log in bytes. The last acknowledgement is always included.
fn choose_cuts(moments: &[u64], wanted: u64) -> Vec<(u64, u64)> {
    let count = moments.len() as u64;
    let wanted = wanted.clamp(1, count.max(1));
    let pick = |index: u64| {
        let records = (count * (index + 1)).div_ceil(wanted);
        let moment = moments.get(usize::try_from(records).ok()?.checked_sub(1)?)?;
        Some((records, *moment))
    };
    (0..wanted).filter_map(pick).collect()
}

/// Copies the disk to a raw file, as a guest would read the disk after the cut.
pub(crate) fn convert(disk: &Disk, image: &Path, plain: &Path) -> Result<(), LabError> {
    let mut source = OsString::from(format!("driver={}", disk.format.name()));
    if disk.format == DiskFormat::Luks {
        source.push(",key-secret=secret");
    }
    source.push(",file.driver=file,file.filename=");
    source.push(assay_qemu::escape_path(image));
    let secret = format!("secret,id=secret,data={SECRET}");
    let mut arguments =
        Vec::from(["convert", "--object", &secret, "--image-opts"].map(OsString::from));
    arguments.extend([source, "-O".into(), "raw".into(), plain.into()]);
    qemu_img(&arguments, &disk.name)
}

/// Returns how many of the first `count` records are missing or differ from the written ones.
pub(crate) fn count_missing(path: &Path, seed: u64, count: u64) -> io::Result<u64> {
    let file = File::open(path)?;
    let mut found = vec![0; SIZE];
    let mut missing = 0;
    for number in 0..count {
        let there = match file.read_exact_at(&mut found, number * SIZE as u64) {
            Ok(()) => found == record(seed, number),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => false,
            Err(error) => return Err(error),
        };
        missing += u64::from(!there);
    }
    Ok(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_are_spread_and_end_with_the_last_acknowledgement() {
        let moments: Vec<u64> = (1..=10).map(|count| count * 100).collect();
        assert_eq!(choose_cuts(&moments, 2), [(5, 500), (10, 1000)]);
        assert_eq!(choose_cuts(&moments, 99).len(), 10);
        assert_eq!(choose_cuts(&moments, 0), [(10, 1000)]);
        assert_eq!(choose_cuts(&[], 3), []);
    }

    #[test]
    fn a_missing_a_torn_and_a_misplaced_record_count() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("image");
        let mut bytes: Vec<u8> = (0..4).flat_map(|number| record(1, number)).collect();
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(count_missing(&path, 1, 4).unwrap(), 0);
        assert_eq!(count_missing(&path, 2, 4).unwrap(), 4);
        assert_eq!(count_missing(&path, 1, 6).unwrap(), 2);
        bytes[SIZE + 4000] ^= 1;
        bytes[2 * SIZE..3 * SIZE].copy_from_slice(&record(1, 0));
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(count_missing(&path, 1, 4).unwrap(), 2);
    }
}
