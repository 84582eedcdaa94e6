//! Writes numbered blocks for the power-cut test. Each write returns only after the file system has acknowledged the
//! block as durable.

use crate::side_by_side::ArmError;
use assay_loads::{Cancel, layout};
use std::fs::File;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Size of a block in bytes.
pub(crate) const BLOCK: usize = 4096;
/// Number of blocks that the test writes.
pub(crate) const WRITES: u64 = 60;

/// Writes [`WRITES`] blocks with data derived from `seed` to an existing file. The blocks go repeatedly over the first
/// `blocks` blocks of the file, in turn with fsync, fdatasync and O_DSYNC.
pub(crate) fn write(path: &Path, blocks: u64, seed: u64, cancel: &Cancel) -> Result<(), ArmError> {
    let fail = |source| ArmError::Io {
        path: path.to_owned(),
        source,
    };
    let flags = i32::try_from(rustix::fs::OFlags::DSYNC.bits()).unwrap_or(0);
    let mut options = File::options();
    options.write(true);
    let file = options.open(path).map_err(fail)?;
    let durable = options.custom_flags(flags).open(path).map_err(fail)?;
    let mut data = layout::Data::new(seed);
    for index in 0..WRITES {
        if cancel.is_cancelled() {
            return Err(ArmError::Cancelled);
        }
        let offset = (index % blocks.max(1)) * BLOCK as u64;
        let block = data.next(offset, BLOCK);
        let written = match index % 3 {
            0 => file
                .write_all_at(block, offset)
                .and_then(|()| file.sync_all()),
            1 => file
                .write_all_at(block, offset)
                .and_then(|()| file.sync_data()),
            _ => durable.write_all_at(block, offset),
        };
        written.map_err(fail)?;
    }
    Ok(())
}
