//! Files with an extended attribute, on a file system that assay made.

use crate::engine::{EngineError, Meter, Place};
use assay_loads::{LoadError, Measured, Timing, attributes};
use assay_model::Bytes;

pub(super) fn run(
    files: u32,
    size: Bytes,
    place: &Place,
    timing: Timing,
    meter: &Meter<'_>,
) -> Result<Result<Measured, LoadError>, EngineError> {
    let Place::File { dir: Some(dir), .. } = place else {
        return Err(EngineError::Unfit("a file system of assay's own"));
    };
    let request = attributes::Request {
        dir: dir.clone(),
        files,
        size,
        timing,
    };
    Ok(attributes::run(&request, meter.cancel))
}
