//! Copies of disk images that take no more room than their data.

use crate::error::LabError;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Copies content and length into `to`, which may exist; where there are only zeros in 64 KiB,
/// nothing is written, so `to` has to be empty or hold zeros there.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), LabError> {
    let mut source = File::open(from).map_err(LabError::io(from))?;
    let length = source.metadata().map_err(LabError::io(from))?.len();
    let target = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(to)
        .map_err(LabError::io(to))?;
    target.set_len(length).map_err(LabError::io(to))?;
    let mut buffer = vec![0; 64 << 10];
    let mut at = 0;
    loop {
        let count = source.read(&mut buffer).map_err(LabError::io(from))?;
        if count == 0 {
            return Ok(());
        }
        if buffer[..count].iter().any(|byte| *byte != 0) {
            target
                .write_all_at(&buffer[..count], at)
                .map_err(LabError::io(to))?;
        }
        at += count as u64;
    }
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
