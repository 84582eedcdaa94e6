//! Runs the load that does nothing, to measure the overhead of a sample.

use crate::engine::Meter;
use assay_loads::{LoadError, LoadResult, Timing, null};

pub(super) fn run(timing: Timing, meter: &Meter<'_>) -> Result<LoadResult, LoadError> {
    null::run(&timing, meter.cancel)
}
