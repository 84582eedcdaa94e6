//! Examines the tested file: whether its blocks are written, unwritten or sparse, and whether its data compresses.

use assay_model::Bytes;
use assay_model::target::FileState;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};

/// Number of windows of the file whose compressibility is measured.
const WINDOWS: u64 = 16;
/// Size of a window in bytes. It equals the default recordsize of ZFS and the maximum compression unit of btrfs.
const WINDOW: u64 = 128 << 10;

/// Examines an open regular file. Reads at most 2 MiB of it, and drops this data from the page cache again.
///
/// # Errors
/// The file cannot be read.
pub fn look(file: &File) -> io::Result<FileState> {
    let meta = file.metadata()?;
    let (written, unwritten) = read_extents(file).map_or((None, None), |(w, u)| (Some(w), Some(u)));
    Ok(FileState {
        size: Bytes(meta.len()),
        allocated: Bytes(meta.blocks() * 512),
        written,
        unwritten,
        compress_ratio: compress_ratio(file, meta.len())?,
    })
}

/// Returns the number of bytes in written extents, and in allocated but unwritten extents; `None` if the file system
/// does not support FIEMAP (tmpfs, ZFS before 2.x, NFS).
fn read_extents(file: &File) -> Option<(Bytes, Bytes)> {
    let (mut written, mut unwritten) = (0u64, 0u64);
    for extent in fiemap::Fiemap::new(file) {
        let extent = extent.ok()?;
        if extent
            .fe_flags
            .contains(fiemap::FiemapExtentFlags::UNWRITTEN)
        {
            unwritten += extent.fe_length;
        } else {
            written += extent.fe_length;
        }
    }
    Some((Bytes(written), Bytes(unwritten)))
}

/// Returns the compression ratio at zstd level 1 over evenly distributed windows; `None` for an empty file.
fn compress_ratio(file: &File, size: u64) -> io::Result<Option<f64>> {
    let length = size.min(WINDOW) as usize;
    if length == 0 {
        return Ok(None);
    }
    let windows = (size / WINDOW).clamp(1, WINDOWS);
    let mut buffer = vec![0u8; length];
    let (mut before, mut after) = (0usize, 0usize);
    for window in 0..windows {
        let offset = (size - length as u64) / windows * window;
        file.read_exact_at(&mut buffer, offset)?;
        before += length;
        // A window that does not compress is stored uncompressed.
        after += zstd::bulk::compress(&buffer, 1)?.len().min(length);
        let _ = rustix::fs::fadvise(
            file,
            offset,
            std::num::NonZeroU64::new(WINDOW),
            rustix::fs::Advice::DontNeed,
        );
    }
    Ok(Some(before as f64 / after.max(1) as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn zeroes_compress_and_random_data_does_not() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&vec![0u8; 1 << 20]).unwrap();
        file.as_file().sync_all().unwrap();
        let state = look(file.as_file()).unwrap();
        assert!(state.compress_ratio.unwrap() > 100.0);
        let random = tempfile::NamedTempFile::new().unwrap();
        crate::layout::fill(
            &assay_host::held::Held::open(random.path(), assay_host::held::Access::ReadWrite)
                .unwrap(),
            Bytes(1 << 20),
            3,
            &crate::Cancel::default(),
            &mut |_, _| {},
        )
        .unwrap();
        assert_eq!(look(random.as_file()).unwrap().compress_ratio, Some(1.0));
    }

    #[test]
    fn a_hole_is_not_written() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        let state = look(file.as_file()).unwrap();
        assert_eq!(state.size, Bytes(1 << 20));
        // tmpfs has no FIEMAP.
        assert!(matches!(state.written, None | Some(Bytes(0))));
        assert_eq!(state.allocated, Bytes(0));
    }

    #[test]
    fn an_empty_file_is_no_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(look(file.as_file()).unwrap().compress_ratio, None);
    }
}
