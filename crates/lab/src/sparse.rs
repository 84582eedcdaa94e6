//! Copies disk images without allocating their holes.

use crate::error::LabError;
use assay_host::held::{Access, Held};
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Copies content and length to `to`, but does not write holes. Therefore `to` must be empty, or contain zeros where
/// `from` has holes.
pub fn copy(from: &Path, to: &Path) -> Result<(), LabError> {
    let source = Held::follow(from, Access::Read)?;
    let source = source.file();
    let length = source.metadata().map_err(LabError::io(from))?.len();
    let target = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(to)
        .map_err(LabError::io(to))?;
    target.set_len(length).map_err(LabError::io(to))?;
    let mut end = 0;
    loop {
        let start = match seek(source, SeekFrom::Data(end)) {
            Ok(start) => start,
            // No data from there on (lseek(2)).
            Err(Errno::NXIO) => return Ok(()),
            Err(error) => return Err(LabError::io(from)(error.into())),
        };
        end = seek(source, SeekFrom::Hole(start))
            .map_err(|error| LabError::io(from)(error.into()))?;
        copy_range(source, start, &target, start, end - start).map_err(LabError::io(to))?;
    }
}

/// Copies `length` bytes from one file to another.
pub fn copy_range(source: &File, from: u64, target: &File, to: u64, length: u64) -> io::Result<()> {
    const PIECE: u64 = 1 << 20;
    let mut buffer = vec![0; usize::try_from(length.min(PIECE)).unwrap_or(0)];
    let mut done = 0;
    while done < length {
        let count = usize::try_from((length - done).min(PIECE)).unwrap_or(0);
        source.read_exact_at(&mut buffer[..count], from + done)?;
        target.write_all_at(&buffer[..count], to + done)?;
        done += count as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn holes_stay_holes() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        let file = File::create(&from).unwrap();
        file.set_len(8 << 20).unwrap();
        file.write_all_at(b"data", (5 << 20) + 17).unwrap();
        copy(&from, &to).unwrap();
        assert!(std::fs::read(&from).unwrap() == std::fs::read(&to).unwrap());
        assert!(to.metadata().unwrap().blocks() * 512 <= 128 << 10);
    }
}
