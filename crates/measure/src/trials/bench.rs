//! What the pairs need from the machine.

use crate::trials::TrialError;
use assay_model::Nanos;
use assay_model::sample::Sample;
use assay_model::trial::Side;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// The machine, or a stand-in with a known truth.
pub trait TrialBench {
    /// Puts a side into effect, also when it is in effect already, so that both sides have the same
    /// history; returns what was read back.
    ///
    /// # Errors
    /// The change cannot be made, or does not do what it says.
    fn enter(&mut self, side: Side) -> Result<String, TrialError>;

    /// Does the load to a side that was entered.
    ///
    /// # Errors
    /// The load generator cannot be started at all; a load that fails is a sample that says so.
    fn load(&mut self, side: Side, pair: u32, slot: u32) -> Result<Sample, TrialError>;

    /// How long the slots from now on measure.
    fn slots_last(&mut self, length: Nanos);

    /// The three clocks, read together.
    fn clocks(&self) -> Clocks;
}

/// Three clocks that run alike unless the machine is suspended or somebody sets the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// Time of day.
    pub wall: jiff::Timestamp,
    /// CLOCK_MONOTONIC: stands still while the machine is suspended (clock_gettime(2)).
    pub monotonic: Duration,
    /// CLOCK_BOOTTIME: goes on.
    pub boottime: Duration,
}

/// Disagreement of clocks that is no longer ordinary slewing.
const TOLERANCE: Duration = Duration::from_millis(500);

impl Clocks {
    /// Reads all three; `now` is the time of day.
    pub(crate) fn read(now: &dyn Fn() -> jiff::Timestamp) -> Self {
        Self {
            wall: now(),
            monotonic: monotonic_time(),
            boottime: read_clock(ClockId::Boottime),
        }
    }

    /// What went wrong between two readings, when something did.
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

/// Time since some moment before assay began, without the time that the machine slept.
pub(crate) fn monotonic_time() -> Duration {
    read_clock(ClockId::Monotonic)
}

/// What the clocks say happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disagreement {
    /// The machine was suspended this long.
    Suspended(Duration),
    /// The time of day was set by this much.
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
        // Suspended before, not in between.
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
