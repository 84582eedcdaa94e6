//! Lays out a file: writes every block with data that neither compresses nor repeats.
//!
//! A benchmark on a sparse or fallocated file measures how fast the file system returns zeroes. A benchmark on
//! compressible data measures the compressor. The page cache is bypassed if the file system permits this. The file is
//! synced while it grows, so that the reported progress is the progress of the device.

use crate::Cancel;
use assay_host::HostError;
use assay_host::held::Held;
use assay_model::{Bytes, Nanos};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use rustix::fs::OFlags;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::time::{Duration, Instant};

/// Number of bytes that are written between two syncs.
pub const CHUNK: Bytes = Bytes(64 << 20);
/// Number of bytes that are written at once, which is also the distance after which data repeats. This distance is
/// larger than the window of any file system's compressor (1 MiB records on ZFS, 128 KiB on btrfs).
const BUFFER: usize = 4 << 20;
/// Size of a block in bytes. Each block contains its own number, so that deduplication finds no equal blocks.
const BLOCK: usize = 4096;
/// Value of `f_type` for ZFS (`ZFS_SUPER_MAGIC` of OpenZFS include/sys/fs/zfs.h).
const ZFS: i64 = 0x2fc1_2fc1;
/// Maximum time to wait until the file has its full size on ZFS. It is longer than two transaction groups by default
/// (zfs(4), zfs_txg_timeout: 5 s). The wait needs a limit, because a compressed file never reaches its full size.
const SETTLING: Duration = Duration::from_secs(12);

/// Reason why a layout ended early.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// The user interrupted the layout.
    #[error("interrupted")]
    Cancelled,
    /// The file cannot be opened for writing. Nothing was written.
    #[error("before it began: {0}")]
    Open(#[from] HostError),
    /// The file system or device reported an error.
    #[error("after {written} of {size}: {source}")]
    Io {
        /// Number of bytes written before the error.
        written: Bytes,
        /// Number of bytes to write.
        size: Bytes,
        /// Error of the kernel.
        source: io::Error,
    },
}

/// Fills the first `size` bytes of an open file or device. After every [`CHUNK`], calls `progress` with the number of
/// bytes on the device and the time since the start.
///
/// # Errors
/// The user interrupted, or the kernel reported an error (no space, I/O error).
pub fn fill(
    held: &Held,
    size: Bytes,
    seed: u64,
    cancel: &Cancel,
    progress: &mut dyn FnMut(Bytes, Nanos),
) -> Result<(), LayoutError> {
    let cached = held.reopen(OFlags::WRONLY)?;
    // Not every file system supports O_DIRECT.
    let direct = held.reopen(OFlags::WRONLY | OFlags::DIRECT).ok();
    write(&cached, direct, size, seed, cancel, progress)
}

fn write(
    cached: &File,
    mut direct: Option<File>,
    size: Bytes,
    seed: u64,
    cancel: &Cancel,
    progress: &mut dyn FnMut(Bytes, Nanos),
) -> Result<(), LayoutError> {
    let io = |written: u64| {
        move |source: io::Error| LayoutError::Io {
            written: Bytes(written),
            size,
            source,
        }
    };
    let mut data = Data::new(seed);
    let start = Instant::now();
    let mut written = 0u64;
    while written < size.0 {
        let end = size.0.min(written + CHUNK.0);
        while written < end {
            if cancel.is_cancelled() {
                return Err(LayoutError::Cancelled);
            }
            let length = (end - written).min(BUFFER as u64) as usize;
            let block = data.next(written, length);
            let aligned = length.is_multiple_of(BLOCK);
            match &direct {
                Some(file) if aligned => match file.write_all_at(block, written) {
                    // Some network and stacked file systems permit O_DIRECT at open and refuse the first
                    // write.
                    Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                        direct = None;
                        continue;
                    }
                    other => other.map_err(io(written))?,
                },
                _ => cached.write_all_at(block, written).map_err(io(written))?,
            }
            written += length as u64;
        }
        cached.sync_data().map_err(io(written))?;
        // The data must not be read from the page cache later.
        let _ = rustix::fs::fadvise(cached, 0, None, rustix::fs::Advice::DontNeed);
        progress(Bytes(written), start.elapsed().into());
    }
    settle(cached, size, cancel)
}

/// Waits on ZFS until the data of the file is at its final location. ZFS first stores synced data in the intent log,
/// and moves the data some seconds later. Until then, the file looks sparse and the disks are busy.
fn settle(file: &File, size: Bytes, cancel: &Cancel) -> Result<(), LayoutError> {
    let on_zfs = rustix::fs::fstatfs(file).is_ok_and(|found| found.f_type == ZFS);
    let start = Instant::now();
    while on_zfs && start.elapsed() < SETTLING {
        if cancel.is_cancelled() {
            return Err(LayoutError::Cancelled);
        }
        let found = file.metadata();
        if found.is_ok_and(|found| !found.is_file() || found.blocks() * 512 >= size.0) {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Random bytes with the alignment that O_DIRECT needs. They are generated once, because generating new random data
/// costs one second of CPU time per gigabyte.
pub struct Data {
    bytes: Vec<u8>,
    start: usize,
}

impl Data {
    /// Creates the data that belongs to a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut bytes = vec![0u8; BUFFER + BLOCK];
        let start = bytes.as_ptr().align_offset(BLOCK).min(BLOCK);
        // From the aligned start, so that a seed gives the same data wherever the buffer is.
        ChaCha8Rng::seed_from_u64(seed).fill_bytes(&mut bytes[start..start + BUFFER]);
        Self { bytes, start }
    }

    /// Returns `length` bytes of data for the file position `offset`. `length` is at most 4 MiB.
    pub fn next(&mut self, offset: u64, length: usize) -> &[u8] {
        let data = &mut self.bytes[self.start..self.start + length];
        for (index, block) in data.chunks_exact_mut(BLOCK).enumerate() {
            let number = offset / BLOCK as u64 + index as u64;
            block[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
        }
        data
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::held::Access;
    use std::collections::BTreeSet;

    fn held(file: &tempfile::NamedTempFile) -> Held {
        Held::open(file.path(), Access::ReadWrite).unwrap()
    }

    #[test]
    fn data_is_all_there_does_not_compress_and_no_block_repeats() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut seen = Vec::new();
        let size = Bytes((9 << 20) + 12345);
        let cancel = Cancel::default();
        fill(&held(&file), size, 1, &cancel, &mut |bytes, _| {
            seen.push(bytes)
        })
        .unwrap();
        assert_eq!(seen, [size]);
        let data = std::fs::read(file.path()).unwrap();
        assert_eq!(data.len() as u64, size.0);
        for record in data.chunks(1 << 20) {
            assert!(zstd::bulk::compress(record, 1).unwrap().len() >= record.len());
        }
        let blocks: BTreeSet<&[u8]> = data.chunks(BLOCK).collect();
        assert_eq!(blocks.len(), data.len().div_ceil(BLOCK));
    }

    #[test]
    fn a_full_device_says_how_far_it_got() {
        let cancel = Cancel::default();
        let full = File::options().write(true).open("/dev/full").unwrap();
        let error = write(&full, None, Bytes(4095), 1, &cancel, &mut |_, _| {}).unwrap_err();
        insta::assert_snapshot!(error, @"after 0 B of 4 KiB: No space left on device (os error 28)");
    }

    #[test]
    fn stops_when_asked() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let cancel = Cancel::default();
        cancel.cancel();
        let error = fill(&held(&file), Bytes(1 << 30), 1, &cancel, &mut |_, _| {}).unwrap_err();
        assert!(matches!(error, LayoutError::Cancelled));
        assert_eq!(file.as_file().metadata().unwrap().len(), 0);
    }
}
