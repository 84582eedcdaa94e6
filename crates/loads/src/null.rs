//! Load that does nothing. It measures the overhead of a measurement, and replaces a real load in tests.

use crate::Cancel;
use crate::measured::{LoadError, LoadResult, Tally, Timing, finish, thread_cpu};
use assay_model::sample::Operation;
use std::time::{Duration, Instant};

/// Pause between two operations, which limits them to a few thousand per second.
const REST: Duration = Duration::from_micros(100);

/// Records empty operations until the time is over.
///
/// # Errors
/// This load never fails in practice.
pub fn run(timing: &Timing, cancel: &Cancel) -> Result<LoadResult, LoadError> {
    let begin = Instant::now();
    let used = thread_cpu();
    let mut tally = Tally::new(timing, begin);
    while tally.goes_on(Instant::now()) && !cancel.is_cancelled() {
        let start = Instant::now();
        tally.record(start, Instant::now(), Ok(0));
        std::thread::sleep(REST);
    }
    let cpu = thread_cpu().saturating_sub(used);
    finish(
        ("null", Operation::Nothing),
        vec![tally],
        begin.elapsed(),
        cpu,
        cancel,
    )
}
