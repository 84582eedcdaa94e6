//! Detects whether the machine slept. CLOCK_MONOTONIC, the clock of all measurements, stops during sleep;
//! CLOCK_BOOTTIME continues (clock_gettime(2)).

use rustix::time::{ClockId, clock_gettime};

/// Minimum duration of a sleep in microseconds. A smaller difference is only the time between the readings of the two
/// clocks.
const LEAST: i64 = 100_000;

/// Total time asleep and current time at the last check, in microseconds.
#[derive(Debug, Default)]
pub struct Sleeps(Option<(i64, i64)>);

impl Sleeps {
    /// Compares the total sleep since boot (`slept`) with the value of the last check. `now` is the current time. All
    /// times are in microseconds. If the machine slept, returns the times of the last check and of this check.
    pub fn look(&mut self, slept: i64, now: i64) -> Option<(i64, i64)> {
        let (before, at) = self.0.replace((slept, now))?;
        (slept - before > LEAST).then_some((at, now))
    }
}

/// Returns how long the machine has slept since boot, in microseconds.
pub fn slept() -> i64 {
    let micros = |clock| {
        let time = clock_gettime(clock);
        time.tv_sec * 1_000_000 + time.tv_nsec / 1000
    };
    let monotonic = micros(ClockId::Monotonic);
    micros(ClockId::Boottime) - monotonic
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_is_between_two_looks() {
        let mut sleeps = Sleeps::default();
        assert_eq!(sleeps.look(5_000_000, 0), None);
        assert_eq!(sleeps.look(5_000_100, 500), None);
        assert_eq!(sleeps.look(65_000_100, 900), Some((500, 900)));
        assert_eq!(sleeps.look(65_000_100, 1000), None);
        // The machine does not sleep between two lines.
        let mut here = Sleeps::default();
        here.look(slept(), 0);
        assert_eq!(here.look(slept(), 1), None);
    }
}
