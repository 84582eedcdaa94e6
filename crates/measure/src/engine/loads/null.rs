//! Does nothing, which shows the overhead of measuring.

use crate::engine::Meter;
use assay_loads::{LoadError, LoadResult, Timing, null};

pub(super) fn run(timing: Timing, meter: &Meter<'_>) -> Result<LoadResult, LoadError> {
    null::run(&timing, meter.cancel)
}
