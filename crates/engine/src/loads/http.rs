//! HTTP requests.

use crate::Meter;
use assay_instruments::{LoadError, Measured, Timing, http};

pub(super) fn run(
    url: &str,
    connections: u32,
    keep_alive: bool,
    timing: Timing,
    meter: &Meter<'_>,
) -> Result<Measured, LoadError> {
    let request = http::Request {
        url: url.to_owned(),
        connections,
        keep_alive,
        timing,
    };
    http::run(&request, meter.cancel)
}
