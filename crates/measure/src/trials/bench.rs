//! Interface through which a trial applies a side, runs the load and reads clocks, on a machine or in a simulation.

use crate::trials::TrialError;
use assay_model::Nanos;
use assay_model::sample::Sample;
use assay_model::trial::Side;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// What a trial needs to measure pairs. Implemented by the machine, and by a simulation with a known effect.
pub trait TrialBench {
    /// Applies a side. Even a side that is already in effect is applied again, so that both sides have the same
    /// history. Returns the value that was read back.
    ///
    /// # Errors
    /// The change cannot be applied, or has no effect.
    fn enter(&mut self, side: Side) -> Result<String, TrialError>;

    /// Runs the load on the current side.
    ///
    /// # Errors
    /// The load generator cannot be started. If the load starts and fails, the sample contains the error.
    fn load(&mut self, side: Side, pair: u32, slot: u32) -> Result<Sample, TrialError>;

    /// Sets the length of the following slots.
    fn slots_last(&mut self, length: Nanos);

    /// Returns three clocks, read at the same time.
    fn clocks(&self) -> Clocks;
}

/// Readings of three clocks that advance equally, unless the machine is suspended or the time of day is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// Time of day (CLOCK_REALTIME).
    pub wall: jiff::Timestamp,
    /// CLOCK_MONOTONIC, which stands still while the machine is suspended (clock_gettime(2)).
    pub monotonic: Duration,
    /// CLOCK_BOOTTIME, which continues while the machine is suspended.
    pub boottime: Duration,
}

/// Maximum difference between the clocks that normal slewing can cause.
const TOLERANCE: Duration = Duration::from_millis(500);

impl Clocks {
    /// Reads all three clocks; `now` returns the time of day.
    pub(crate) fn read(now: &dyn Fn() -> jiff::Timestamp) -> Self {
        Self {
            wall: now(),
            monotonic: monotonic_time(),
            boottime: read_clock(ClockId::Boottime),
        }
    }

    /// Returns the event that explains why the clocks advanced differently between two readings; `None` if they agree.
    #[must_use]
    pub fn disagree(&self, later: &Self) -> Option<Disagreement> {
        let elapsed = later.monotonic.saturating_sub(self.monotonic);
        let slept = later
            .boottime
            .saturating_sub(self.boottime)
            .saturating_sub(elapsed);
        if slept > TOLERANCE {
            return Some(Disagreement::Suspended(slept));
        }
        let wall = later.wall.duration_since(self.wall);
        let elapsed = jiff::SignedDuration::try_from(elapsed).ok()?;
        let jump = wall - elapsed;
        (jump.unsigned_abs() > TOLERANCE).then_some(Disagreement::Jumped(jump))
    }
}

fn read_clock(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Returns the time since an arbitrary start. Does not advance while the machine is suspended.
pub(crate) fn monotonic_time() -> Duration {
    read_clock(ClockId::Monotonic)
}

/// Event that explains why clocks advanced differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disagreement {
    /// The machine was suspended for this long.
    Suspended(Duration),
    /// The time of day was changed by this amount.
    Jumped(jiff::SignedDuration),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(wall: i64, monotonic: u64, boottime: u64) -> Clocks {
        Clocks {
            wall: jiff::Timestamp::from_millisecond(wall).unwrap(),
            monotonic: Duration::from_millis(monotonic),
            boottime: Duration::from_millis(boottime),
        }
    }

    #[test]
    fn clocks_that_run_alike_say_nothing() {
        assert_eq!(at(0, 0, 0).disagree(&at(5_100, 5_000, 5_000)), None);
        // Suspended before the interval, not within it.
        assert_eq!(at(0, 0, 9_000).disagree(&at(5_000, 5_000, 14_000)), None);
    }

    #[test]
    fn sleep_and_a_set_clock_are_told_apart() {
        assert_eq!(
            at(0, 0, 0).disagree(&at(65_000, 5_000, 65_000)),
            Some(Disagreement::Suspended(Duration::from_secs(60)))
        );
        assert_eq!(
            at(0, 0, 0).disagree(&at(-3_595_000, 5_000, 5_000)),
            Some(Disagreement::Jumped(jiff::SignedDuration::from_secs(
                -3_600
            )))
        );
    }
}
