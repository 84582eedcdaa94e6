//! Runs the load that creates files with an extended attribute, on a file system that assay created.

use crate::engine::{EngineError, LoadTarget, Meter};
use assay_loads::{LoadError, LoadResult, Timing, attributes};
use assay_model::Bytes;

pub(super) fn run(
    files: u32,
    size: Bytes,
    place: &LoadTarget,
    timing: Timing,
    meter: &Meter<'_>,
) -> Result<Result<LoadResult, LoadError>, EngineError> {
    let LoadTarget::File { dir: Some(dir), .. } = place else {
        return Err(EngineError::Unfit("a file system of assay's own"));
    };
    let request = attributes::AttributesRequest {
        dir: dir.clone(),
        files,
        size,
        timing,
    };
    Ok(attributes::run(&request, meter.cancel))
}
