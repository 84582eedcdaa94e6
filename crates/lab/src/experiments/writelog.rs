//! Reads the write logs of QEMU's `blklogwrites`, and rebuilds a disk as it would be after a power cut.
//!
//! The format is that of dm-log-writes (Linux Documentation/admin-guide/device-mapper/log-writes.rst; QEMU
//! block/blklogwrites.c). The log begins with a superblock. For each request, a header of one sector follows and, for a
//! write, its data. QEMU adds an entry when the request is complete. A killed QEMU leaves an outdated superblock or
//! none, so the superblock is not used.

use crate::LabError;
use crate::sparse::copy_range;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha12Rng;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// QEMU's default of `log-sector-size`, which assay does not override.
const SECTOR: u64 = 512;
const FLUSH: u64 = 1;
const FUA: u64 = 2;
const DISCARD: u64 = 4;

/// A completed request to a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedRequest {
    /// What was requested.
    pub request: LogRequestKind,
    /// Position in the log, in bytes, at which the entry of this request ends.
    pub end: u64,
}

/// Which unflushed writes survive a simulated power cut. On a real disk, any part of them may have become durable, in
/// any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unflushed {
    /// No unflushed write survives: the worst case for acknowledged data.
    #[default]
    Lost,
    /// A random subset of the unflushed writes survives. This is the worst case for software that relies on the order
    /// of its writes without requesting it.
    Some,
    /// A random subset of the 512-byte sectors survives, so that a single write may be torn.
    Torn,
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogRequestKind {
    /// Flush: all earlier writes are durable.
    Flush,
    /// A write.
    Write {
        /// Position on the disk in bytes.
        offset: u64,
        /// Number of bytes that are written.
        length: u64,
        /// Position of the data in the log, in bytes.
        data: u64,
        /// Whether the write is durable without a flush (forced unit access, FUA).
        durable: bool,
    },
    /// A discard, after which the content is undefined.
    Discard,
}

/// Reads all complete entries.
///
/// # Errors
/// The log cannot be read.
pub fn read(path: &Path) -> Result<Vec<LoggedRequest>, LabError> {
    let file = File::open(path).map_err(LabError::io(path))?;
    let length = file.metadata().map_err(LabError::io(path))?.len();
    let mut found = Vec::new();
    let mut at = SECTOR;
    while at + SECTOR <= length {
        let mut head = [0; 24];
        file.read_exact_at(&mut head, at)
            .map_err(LabError::io(path))?;
        let field = |index: usize| {
            let mut eight = [0; 8];
            eight.copy_from_slice(&head[index * 8..index * 8 + 8]);
            u64::from_le_bytes(eight)
        };
        let (sector, sectors, flags) = (field(0), field(1), field(2));
        let data = at + SECTOR;
        let bytes = sectors.checked_mul(SECTOR);
        let request = match (flags, bytes) {
            (flags, _) if flags & FLUSH != 0 => LogRequestKind::Flush,
            (flags, _) if flags & DISCARD != 0 => LogRequestKind::Discard,
            (_, Some(length)) if length > 0 => LogRequestKind::Write {
                offset: sector.saturating_mul(SECTOR),
                length,
                data,
                durable: flags & FUA != 0,
            },
            // Nothing was written here yet.
            _ => break,
        };
        let end = match request {
            LogRequestKind::Write { length, .. } => data.saturating_add(length),
            _ => data,
        };
        if end > length {
            break;
        }
        found.push(LoggedRequest { request, end });
        at = end;
    }
    Ok(found)
}

/// Returns the number of flushes that completed while the log grew from the start to the end of `span`; both are
/// lengths in bytes.
#[must_use]
pub fn count_flushes(entries: &[LoggedRequest], span: Range<u64>) -> u64 {
    let inside = entries.iter().filter(|entry| span.contains(&entry.end));
    inside
        .filter(|entry| entry.request == LogRequestKind::Flush)
        .count() as u64
}

/// Changes `image` to the content that remains after a power cut at the moment when the log had `moment` bytes. `image`
/// must contain the initial content. Applies all requests up to the last flush, later writes with FUA, and a part of
/// the other writes. `unflushed` determines which part; the random choice depends on `seed` and `moment`.
///
/// # Errors
/// The log cannot be read or the image cannot be written.
pub fn replay(
    log: &Path,
    entries: &[LoggedRequest],
    moment: u64,
    (unflushed, seed): (Unflushed, u64),
    image: &Path,
) -> Result<(), LabError> {
    let source = File::open(log).map_err(LabError::io(log))?;
    let target = File::options()
        .write(true)
        .open(image)
        .map_err(LabError::io(image))?;
    let mut coins = ChaCha12Rng::seed_from_u64(seed ^ moment);
    let past = entries.partition_point(|entry| entry.end <= moment);
    let flushed = entries[..past]
        .iter()
        .rposition(|entry| entry.request == LogRequestKind::Flush)
        .map_or(0, |last| last + 1);
    for (index, entry) in entries[..past].iter().enumerate() {
        let LogRequestKind::Write {
            offset,
            length,
            data,
            durable,
        } = entry.request
        else {
            continue;
        };
        let durable = index < flushed || durable;
        let piece = match unflushed {
            Unflushed::Torn if !durable => SECTOR,
            _ => length,
        };
        let mut stays = || durable || (unflushed != Unflushed::Lost && coins.random());
        for at in (0..length).step_by(usize::try_from(piece).unwrap_or(usize::MAX)) {
            if stays() {
                copy_range(&source, data + at, &target, offset + at, piece)
                    .map_err(LabError::io(image))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Log of qemu-io 7.2.22 after these commands: write -P 0x11 4k 4k; flush; write -P 0x22 8k 512; write -z 16k 4k;
    /// discard 32k 4k; write -f -P 0x33 64k 1k; close, which flushes.
    const LOG: &[u8] = include_bytes!("../../fixtures/qemu-7.2.22-blklogwrites.log");

    fn log(dir: &tempfile::TempDir, bytes: &[u8]) -> std::path::PathBuf {
        let path = dir.path().join("log");
        std::fs::write(&path, bytes).unwrap();
        path
    }

    #[test]
    fn a_real_log_is_understood() {
        let dir = tempfile::tempdir().unwrap();
        let found = read(&log(&dir, LOG)).unwrap();
        let writes: Vec<_> = found
            .iter()
            .map(|entry| match entry.request {
                LogRequestKind::Write {
                    offset,
                    length,
                    durable,
                    ..
                } => (offset, length, durable),
                LogRequestKind::Flush => (0, 0, true),
                LogRequestKind::Discard => (0, 0, false),
            })
            .collect();
        let flush = (0, 0, true);
        let discard = (0, 0, false);
        assert_eq!(
            writes,
            [
                (4096, 4096, false),
                flush,
                (8192, 512, false),
                (16384, 4096, false),
                discard,
                // file-posix has no forced unit access: QEMU flushes after the write instead.
                (65536, 1024, false),
                flush,
                flush
            ]
        );
    }

    #[test]
    fn flushes_are_counted_where_they_were_sent() {
        let dir = tempfile::tempdir().unwrap();
        let entries = read(&log(&dir, LOG)).unwrap();
        assert_eq!(count_flushes(&entries, 0..u64::MAX), 3);
        assert_eq!(count_flushes(&entries, 0..entries[1].end), 0);
        assert_eq!(count_flushes(&entries, 0..entries[1].end + 1), 1);
        assert_eq!(count_flushes(&entries, entries[6].end..u64::MAX), 2);
    }

    #[test]
    fn a_cut_leaves_what_was_flushed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = log(&dir, LOG);
        let entries = read(&path).unwrap();
        let after = |count: usize| {
            let image = dir.path().join("image");
            std::fs::write(&image, vec![0; 1 << 20]).unwrap();
            let moment = entries[..count].last().map_or(0, |entry| entry.end);
            replay(&path, &entries, moment, (Unflushed::Lost, 0), &image).unwrap();
            let bytes = std::fs::read(&image).unwrap();
            [bytes[4096], bytes[8192], bytes[65536]]
        };
        assert_eq!(after(1), [0, 0, 0], "written, not flushed");
        assert_eq!(after(2), [0x11, 0, 0], "flushed");
        assert_eq!(after(6), [0x11, 0, 0], "the rest is still in a cache");
        assert_eq!(after(7), [0x11, 0x22, 0x33]);
    }

    #[test]
    fn what_was_flushed_stays_and_the_rest_is_there_in_parts() {
        let dir = tempfile::tempdir().unwrap();
        let path = log(&dir, LOG);
        let entries = read(&path).unwrap();
        let image = dir.path().join("image");
        // Before the second flush, 512 bytes of 0x22 and 1 KiB of 0x33 are in a cache.
        let moment = entries[5].end;
        let after = |unflushed, seed| {
            std::fs::write(&image, vec![0; 1 << 20]).unwrap();
            replay(&path, &entries, moment, (unflushed, seed), &image).unwrap();
            let bytes = std::fs::read(&image).unwrap();
            assert_eq!(bytes[4096], 0x11, "flushed");
            [8192, 65536, 65536 + 512].map(|at| bytes[at] != 0)
        };
        let all = |unflushed| -> std::collections::BTreeSet<_> {
            (0..200).map(|seed| after(unflushed, seed)).collect()
        };
        assert_eq!(all(Unflushed::Lost).len(), 1);
        let some = all(Unflushed::Some);
        assert_eq!(some.len(), 4);
        assert!(some.iter().all(|[_, first, second]| first == second));
        assert_eq!(all(Unflushed::Torn).len(), 8);
        assert_eq!(after(Unflushed::Torn, 7), after(Unflushed::Torn, 7));
    }

    #[test]
    fn logs_cut_anywhere_are_read_as_far_as_they_go() {
        let dir = tempfile::tempdir().unwrap();
        let whole = read(&log(&dir, LOG)).unwrap();
        for length in (0..LOG.len()).step_by(97) {
            let found = read(&log(&dir, &LOG[..length])).unwrap();
            assert_eq!(found[..], whole[..found.len()], "cut at {length}");
        }
        // No superblock: nothing was ever flushed.
        let mut bytes = LOG.to_vec();
        bytes[..512].fill(0);
        assert_eq!(read(&log(&dir, &bytes)).unwrap(), whole);
    }
}
