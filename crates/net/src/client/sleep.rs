//! Whether the machine slept. CLOCK_MONOTONIC, which everything here is timed with, stands meanwhile, and
//! CLOCK_BOOTTIME goes on (clock_gettime(2)).

use rustix::time::{ClockId, clock_gettime};

/// A difference below is the time between two readings, in microseconds.
const LEAST: i64 = 100_000;

/// What was seen at the last look.
#[derive(Debug, Default)]
pub struct Sleeps(Option<(i64, i64)>);

impl Sleeps {
    /// Takes how long the machine has slept in all, and the time, both in microseconds; gives the time from the
    /// last look to this one when it slept in between.
    pub fn look(&mut self, slept: i64, now: i64) -> Option<(i64, i64)> {
        let (before, at) = self.0.replace((slept, now))?;
        (slept - before > LEAST).then_some((at, now))
    }
}

/// How long this machine has slept since it was started, in microseconds.
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
        // This machine does not sleep between two lines.
        let mut here = Sleeps::default();
        here.look(slept(), 0);
        assert_eq!(here.look(slept(), 1), None);
    }
}
