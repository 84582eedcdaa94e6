//! Waits until a given time.

use std::thread;
use std::time::{Duration, Instant};

/// Interval at which `stop` is checked.
const SLICE: Duration = Duration::from_millis(50);

/// Sleeps until a time, or until `stop` returns true.
pub fn sleep_until(time: Instant, stop: &dyn Fn() -> bool) {
    loop {
        let left = time.saturating_duration_since(Instant::now());
        if left.is_zero() || stop() {
            return;
        }
        thread::sleep(left.min(SLICE));
    }
}

/// Disables timer slack for this thread. By default the kernel may delay timers by 50 µs to save power
/// (prctl(2)).
pub fn exact() {
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

/// Returns the microseconds from `from` to `to`; 0 if `to` is earlier.
pub fn micros(from: Instant, to: Instant) -> u64 {
    u64::try_from(to.saturating_duration_since(from).as_micros()).unwrap_or(u64::MAX)
}
