//! Tests a full ZFS pool in the guest, with a thin zvol and with files on a dataset. The records are written by a
//! program or by a QEMU in the guest.
//!
//! The reservation of another dataset makes the pool full. ZFS then refuses the next byte by the same rule as in a pool
//! whose disks are full (`dsl_dir_tempreserve_impl`). Removing the reservation frees the space immediately.

use super::nested::{Done, Drive};
use super::{FullDiskFindings, FullDiskOutcome, RefusedWrite, Told};
use crate::Disk;
use crate::Guest;
use crate::GuestOptions;
use crate::GuestRegistry;
use crate::Image;
use crate::LabError;
use crate::Sync;
use crate::experiments::pool::{ZFS_COMMAND_LIMIT, copy_out, run_command, wait_for};
use crate::experiments::powercut::count_missing;
use crate::record::SIZE;
use assay_loads::Cancel;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How much the test writes.
#[derive(Clone, Debug)]
pub struct ZfsTrial {
    /// Free bytes in the pool when writing starts.
    pub room: u64,
    /// Number of records to write after space was freed.
    pub after: u64,
    /// Seed from which the content of the records is derived.
    pub seed: u64,
}

const POOL: &str = "lab";
const BALLAST: &str = "lab/ballast";

/// Target that the records are written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum On {
    /// A thin zvol.
    Volume,
    /// A raw image on a dataset.
    Raw,
    /// A qcow2 image on a dataset.
    Qcow2,
}

/// What writes the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// A program in the guest.
    Program(Sync),
    /// A QEMU in the guest with the default error policy; `direct` bypasses the page cache.
    Qemu { direct: bool },
}

const CASES: [(On, By); 10] = [
    (On::Volume, By::Program(Sync::Dsync)),
    (On::Volume, By::Program(Sync::Fsync)),
    (On::Volume, By::Program(Sync::Never)),
    (On::Raw, By::Program(Sync::Dsync)),
    (On::Volume, By::Qemu { direct: true }),
    (On::Volume, By::Qemu { direct: false }),
    (On::Raw, By::Qemu { direct: true }),
    (On::Raw, By::Qemu { direct: false }),
    (On::Qcow2, By::Qemu { direct: true }),
    (On::Qcow2, By::Qemu { direct: false }),
];

/// Number of tested cases. Each case gives one outcome.
pub const ZFS_CASES: usize = CASES.len();

impl On {
    fn path(self) -> PathBuf {
        match self {
            Self::Volume => PathBuf::from("/dev/zvol/lab/volume"),
            Self::Raw => PathBuf::from("/lab/files/raw"),
            Self::Qcow2 => PathBuf::from("/lab/files/qcow2"),
        }
    }

    fn node(self, direct: bool) -> Value {
        let cache = json!({ "direct": direct });
        let driver = match self {
            Self::Volume => "host_device",
            Self::Raw | Self::Qcow2 => "file",
        };
        let protocol = json!({ "driver": driver, "filename": self.path(), "cache": cache });
        let format = if self == Self::Qcow2 { "qcow2" } else { "raw" };
        json!({ "driver": format, "file": protocol, "cache": cache })
    }

    fn describe(self) -> &'static str {
        match self {
            Self::Volume => "thin zvol",
            Self::Raw => "raw file on a dataset",
            Self::Qcow2 => "qcow2 on a dataset",
        }
    }
}

impl By {
    fn describe(self) -> String {
        match self {
            Self::Program(sync) => format!("program, {}", sync.name()),
            Self::Qemu { direct } => {
                format!("QEMU, cache={}", if direct { "none" } else { "writeback" })
            }
        }
    }
}

/// Boots a guest with a pool. For each case, fills the pool, frees the space, and checks the acknowledged records.
///
/// # Errors
/// As [`Guest::boot`], or ZFS in the guest refuses. Nothing remains.
pub fn run(
    image: &Image,
    options: &GuestOptions,
    trial: &ZfsTrial,
    state: &GuestRegistry,
    cancel: &Cancel,
    told: Told<'_>,
) -> Result<FullDiskFindings, LabError> {
    let mut options = options.clone();
    options.disks = vec![Disk::scratch("pool", 512 << 20)];
    let guest = Guest::boot(image, &options, state, cancel)?;
    let devices = guest.devices(&["pool"])?;
    let device = devices[0].to_string_lossy();
    guest.create_pool(&[POOL, &device], ZFS_COMMAND_LIMIT)?;
    run_command(&guest, &["zfs", "create", BALLAST])?;
    let mut outcomes = Vec::new();
    for (on, by) in CASES {
        match run_trial(&guest, on, by, trial) {
            Ok(outcome) => {
                told(&outcome);
                outcomes.push(outcome);
            }
            Err(error) if outcomes.is_empty() => return Err(error),
            Err(error) => return Ok((outcomes, Some(error))),
        }
    }
    Ok((outcomes, None))
}

fn run_trial(guest: &Guest, on: On, by: By, trial: &ZfsTrial) -> Result<FullDiskOutcome, LabError> {
    // Twice the available space, plus the records after it.
    let records = 2 * trial.room / SIZE as u64 + trial.after;
    let size = (records * SIZE as u64).next_multiple_of(1 << 20);
    make(guest, on, size)?;
    let pool = Pool { guest };
    let free = pool.leave(trial.room)?;
    let mut outcome = FullDiskOutcome {
        disk: on.describe().to_owned(),
        what: format!("{}: {}", on.describe(), by.describe()),
        sync: match by {
            By::Program(sync) => sync,
            By::Qemu { .. } => Sync::Fsync,
        },
        free,
        before: 0,
        pauses: 0,
        events: Vec::new(),
        error: None,
        after: 0,
        acknowledged: 0,
        lost: 0,
    };
    match by {
        By::Program(sync) => program(&pool, on, sync, trial, records, &mut outcome)?,
        By::Qemu { direct } => {
            std::thread::scope(|scope| {
                let node = on.node(direct);
                let mut drive = Drive::start(scope, guest, &node, records, trial.seed)?;
                let written = drive_on(&mut drive, &pool, trial, records, &mut outcome);
                // QEMU ends with its input in any case.
                let _ = drive.qmp.execute("quit", json!({}));
                outcome.events = RefusedWrite::all(&drive.qmp.take_events());
                // An interruption or an ended guest first appears as a broken pipe.
                written.map_err(|error| guest.watch().err().unwrap_or(error))
            })?;
        }
    }
    let found = guest.dir().join("found");
    let path = match on {
        On::Volume | On::Raw => on.path(),
        On::Qcow2 => {
            let (from, plain) = (on.path(), "/run/plain");
            let from = from.to_string_lossy();
            run_command(
                guest,
                &[
                    "qemu-img", "convert", "-f", "qcow2", "-O", "raw", &from, plain,
                ],
            )?;
            PathBuf::from(plain)
        }
    };
    if on == On::Volume {
        // Data in memory is not on the volume; data that cannot be flushed is lost.
        let _ = run_command(guest, &["blockdev", "--flushbufs", &path.to_string_lossy()]);
    }
    copy_out(guest, &path, outcome.acknowledged, &found)?;
    let lost = count_missing(&found, trial.seed, outcome.acknowledged);
    outcome.lost = lost.map_err(LabError::io(&found))?;
    destroy(guest, on)?;
    Ok(outcome)
}

/// Destroys the target to free its space. Tries several times, because udev may still read a volume that was just
/// closed.
fn destroy(guest: &Guest, on: On) -> Result<(), LabError> {
    const TRIES: u32 = 20;
    let dataset = match on {
        On::Volume => "lab/volume",
        On::Raw | On::Qcow2 => "lab/files",
    };
    let mut tries = 0;
    loop {
        match run_command(guest, &["zfs", "destroy", dataset]) {
            Err(LabError::Refused { reason, .. }) if tries < TRIES && reason.contains("busy") => {
                tries += 1;
                std::thread::sleep(Duration::from_millis(500));
            }
            ended => return ended.map(drop),
        }
    }
}

fn make(guest: &Guest, on: On, size: u64) -> Result<(), LabError> {
    let (path, text) = (on.path(), size.to_string());
    if on == On::Volume {
        run_command(guest, &["zfs", "create", "-s", "-V", &text, "lab/volume"])?;
        return wait_for(guest, &path);
    }
    run_command(guest, &["zfs", "create", "lab/files"])?;
    let format = if on == On::Raw { "raw" } else { "qcow2" };
    let path = path.to_string_lossy();
    run_command(
        guest,
        &["qemu-img", "create", "-q", "-f", format, &path, &text],
    )
    .map(drop)
}

/// The ZFS pool in the guest.
struct Pool<'a> {
    guest: &'a Guest,
}

impl Pool<'_> {
    fn available(&self) -> Result<u64, LabError> {
        let said = run_command(
            self.guest,
            &["zfs", "get", "-Hp", "-o", "value", "available", POOL],
        )?;
        said.trim().parse().map_err(|_| {
            crate::experiments::pool::refused_path(
                Path::new("zfs"),
                &format!("{said:?} is no number of bytes"),
            )
        })
    }

    /// Reserves space until about `left` bytes are free. Returns the number of free bytes.
    fn leave(&self, left: u64) -> Result<u64, LabError> {
        // Freed space counts after the next transaction group.
        run_command(self.guest, &["zpool", "sync", POOL])?;
        let take = self.available()?.saturating_sub(left);
        let reservation = format!("reservation={take}");
        run_command(self.guest, &["zfs", "set", &reservation, BALLAST])?;
        self.available()
    }

    fn free(&self) -> Result<(), LabError> {
        run_command(self.guest, &["zfs", "set", "reservation=none", BALLAST])?;
        run_command(self.guest, &["zpool", "sync", POOL]).map(drop)
    }
}

/// Lets a program in the guest write until it gets an error, then frees space and lets the program continue.
fn program(
    pool: &Pool<'_>,
    on: On,
    sync: Sync,
    trial: &ZfsTrial,
    records: u64,
    outcome: &mut FullDiskOutcome,
) -> Result<(), LabError> {
    let path = on.path();
    let upto = records - trial.after;
    let (reached, error) = write(pool.guest, &path, sync, trial.seed, 0..upto)?;
    (outcome.before, outcome.error) = (reached, error);
    pool.free()?;
    let again = reached..reached + trial.after;
    let (reached, _) = write(pool.guest, &path, sync, trial.seed, again)?;
    outcome.acknowledged = reached;
    outcome.after = reached - outcome.before;
    Ok(())
}

type Refusal = Option<(i32, String)>;

/// Returns the number of the last written record, and the error that stopped the writing.
fn write(
    guest: &Guest,
    path: &Path,
    sync: Sync,
    seed: u64,
    records: std::ops::Range<u64>,
) -> Result<(u64, Refusal), LabError> {
    let mut reached = records.start;
    let mut written = guest.log_records(path, sync, seed, records, &mut |count| {
        reached = count;
        true
    });
    if written.is_ok() && sync == Sync::Never {
        written = super::sync_data(guest, path);
    }
    match written {
        Ok(()) => Ok((reached, None)),
        Err(LabError::Refused { errno, reason, .. }) => Ok((reached, Some((errno, reason)))),
        Err(error) => Err(error),
    }
}

/// Writes records to a drive of the nested QEMU, and flushes after each. If QEMU is paused, frees space and resumes it.
fn drive_on(
    drive: &mut Drive,
    pool: &Pool<'_>,
    trial: &ZfsTrial,
    records: u64,
    outcome: &mut FullDiskOutcome,
) -> Result<(), LabError> {
    /// Maximum number of pauses, because QEMU pauses again each time the retry fails.
    const ENOUGH: u32 = 3;
    let mut freed_at = None;
    for number in 0..records {
        if freed_at.is_some_and(|at| number >= at + trial.after) {
            break;
        }
        for flush in [false, true] {
            match flush {
                false => drive.begin_write(number)?,
                true => drive.begin_flush()?,
            }
            let mut done = drive.wait()?;
            while done == Done::Paused && outcome.pauses < ENOUGH {
                outcome.pauses += 1;
                if freed_at.is_none() {
                    pool.free()?;
                    freed_at = Some(number);
                }
                drive.qmp.execute("cont", json!({}))?;
                done = drive.wait()?;
            }
            let error = match done {
                Done::Fine => continue,
                Done::Paused => (0, "QEMU pauses again although there is space".to_owned()),
                Done::Failed(status, error) => {
                    let what = if flush { "flush" } else { "write" };
                    (
                        5,
                        format!("ATA error at the {what} ({status:#04x}, {error:#04x})"),
                    )
                }
            };
            outcome.error.get_or_insert(error);
            if freed_at.is_some() {
                // The write was refused although there was space.
                return finish(outcome, number, freed_at);
            }
            pool.free()?;
            freed_at = Some(number);
            // Repeat the same record, now that there is space.
            drive.begin_write(number)?;
            let mut again = drive.wait()?;
            if again == Done::Fine {
                drive.begin_flush()?;
                again = drive.wait()?;
            }
            if again != Done::Fine {
                return finish(outcome, number, freed_at);
            }
            break;
        }
        outcome.acknowledged = number + 1;
    }
    let acknowledged = outcome.acknowledged;
    finish(outcome, acknowledged, freed_at)
}

fn finish(
    outcome: &mut FullDiskOutcome,
    acknowledged: u64,
    freed_at: Option<u64>,
) -> Result<(), LabError> {
    outcome.acknowledged = acknowledged;
    outcome.before = freed_at.unwrap_or(acknowledged);
    outcome.after = acknowledged - outcome.before.min(acknowledged);
    Ok(())
}
