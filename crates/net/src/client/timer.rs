//! Waiting for a time.

use std::thread;
use std::time::{Duration, Instant};

/// How often a wait looks whether to end.
const SLICE: Duration = Duration::from_millis(50);

/// Sleeps until then, or until `stop` says so.
pub fn sleep_until(time: Instant, stop: &dyn Fn() -> bool) {
    loop {
        let left = time.saturating_duration_since(Instant::now());
        if left.is_zero() || stop() {
            return;
        }
        thread::sleep(left.min(SLICE));
    }
}

/// Timers of the kernel may be 50 µs late for the sake of power (prctl(2)); this thread's are not.
pub fn exact() {
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

/// Microseconds from one time to another; 0 when it is earlier.
pub fn micros(from: Instant, to: Instant) -> u64 {
    u64::try_from(to.saturating_duration_since(from).as_micros()).unwrap_or(u64::MAX)
}
