//! Writes the durability log: numbered records. Each record is acknowledged when the kernel reports that it is durable.

use crate::Answer;
use crate::record::{SIZE, record};
use crate::protocol::{Reply, Sync};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::{Arc, Weak};

/// `O_DSYNC` on x86-64, from <asm-generic/fcntl.h>.
const O_DSYNC: i32 = 0o10_000;

/// Stops the log when it is dropped.
pub struct Stop(#[allow(dead_code, reason = "held, not read")] Arc<()>);

/// Starts a thread that writes records.
pub fn start(sync: Sync, records: Range<u64>, seed: u64, path: &[u8], answer: Answer) -> Stop {
    let stop = Arc::new(());
    let wanted = Arc::downgrade(&stop);
    let path = Path::new(OsStr::from_bytes(path)).to_owned();
    std::thread::spawn(move || match write(sync, records, seed, &path, &answer, &wanted) {
        Ok(()) => answer.send(&Reply::Done(Vec::new())),
        Err(error) => answer.refuse(&error),
    });
    Stop(stop)
}

fn write(
    sync: Sync,
    records: Range<u64>,
    seed: u64,
    path: &Path,
    answer: &Answer,
    wanted: &Weak<()>,
) -> io::Result<()> {
    let flags = match sync {
        Sync::Dsync => O_DSYNC,
        Sync::Fsync | Sync::Never => 0,
    };
    let file = File::options().write(true).custom_flags(flags).open(path)?;
    for number in records {
        if wanted.strong_count() == 0 {
            break;
        }
        file.write_all_at(&record(seed, number), number * SIZE as u64)?;
        if sync == Sync::Fsync {
            file.sync_all()?;
        }
        answer.send(&Reply::Logged(number + 1));
    }
    Ok(())
}
