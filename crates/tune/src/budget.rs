//! Time budget of a session: expected durations of the steps, time spent, and the reserve for the end.

use crate::candidate::{Candidate, Toggle};
use assay_model::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Indices of the candidates that are in effect at the same time.
pub type Row = BTreeSet<usize>;

/// Expected durations of the parts of a step, estimated before the first step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Costs {
    /// Duration of the measured part of a slot.
    pub slot: Nanos,
    /// Duration of the load before the measured part of a slot.
    pub washout: Nanos,
    /// Time that the load needs to start and end.
    pub start: Nanos,
    /// Time to create scratch files, to open the journal and to start the watchdog process.
    pub set_up: Nanos,
    /// Time to revert everything and to remove scratch files.
    pub set_back: Nanos,
}

impl Costs {
    /// Returns the expected time of one slot: start of the load, washout, and measured time. The time to change
    /// settings is not included.
    #[must_use]
    pub fn slot(&self) -> Nanos {
        add(self.slot, add(self.washout, self.start))
    }

    /// Returns the expected time of a pair with `alternations` alternations. `differ` contains the candidates that
    /// differ between the sides.
    #[must_use]
    pub fn pair(&self, candidates: &[Candidate], differ: &Row, alternations: u32) -> Nanos {
        let side = add(self.slot(), switches(candidates, differ));
        times(side, 2 * alternations.max(1))
    }

    /// Returns the expected time of a pair of a hold, with `slots` slots on both sides together.
    #[must_use]
    pub fn hold(&self, candidates: &[Candidate], differ: &Row, slots: u32) -> Nanos {
        add(
            times(self.slot(), slots),
            times(switches(candidates, differ), 2),
        )
    }
}

/// Returns the time to change the settings of these candidates once.
fn switches(candidates: &[Candidate], differ: &Row) -> Nanos {
    let switches = differ.iter().map(|at| &candidates[*at]);
    let switches = switches.filter(|one| one.toggle != Toggle::Remake);
    Nanos(switches.map(|one| one.switch.0).sum())
}

impl Costs {
    /// Returns the expected time to create the objects of both sides, before the first of several pairs. Returns 0 if
    /// the sides differ only in settings.
    #[must_use]
    pub fn creation(&self, candidates: &[Candidate], differ: &Row) -> Nanos {
        let remade = differ.iter().map(|at| &candidates[*at]);
        let remade = remade.filter(|one| one.toggle == Toggle::Remake);
        // The sides have one object each, whatever the number of differences.
        times(remade.map(|one| one.switch).max().unwrap_or_default(), 2)
    }
}

/// Time budget of a session, and how much of it is spent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// Whole budget, including the time to set up and to revert.
    pub budget: Nanos,
    /// Time that the steps have taken until now.
    pub spent: Nanos,
    /// Sum of the actual durations and sum of the expected durations, over all steps with an expectation.
    foreseen: [Nanos; 2],
}

impl Clock {
    /// Creates a clock of which no time is spent.
    #[must_use]
    pub fn new(budget: Nanos) -> Self {
        Self {
            budget,
            spent: Nanos(0),
            foreseen: [Nanos(0), Nanos(0)],
        }
    }

    /// Adds a step that took `took` and was expected to take `expected`.
    pub fn count(&mut self, took: Nanos, expected: Nanos) {
        self.spent = add(self.spent, took);
        self.foreseen[0] = add(self.foreseen[0], took);
        self.foreseen[1] = add(self.foreseen[1], expected);
    }

    /// Returns the ratio of actual to expected durations until now; at least 1.
    #[must_use]
    pub fn pace(&self) -> f64 {
        let [took, expected] = self.foreseen.map(|time| time.0 as f64);
        if expected > 0.0 {
            (took / expected).max(1.0)
        } else {
            1.0
        }
    }

    /// Returns the remaining time after subtracting `reserve` for the end. The result is in expected time: if steps
    /// take longer than expected, less time remains.
    #[must_use]
    pub fn left(&self, reserve: Nanos) -> Nanos {
        let left = self.budget.0.saturating_sub(self.spent.0) as f64 / self.pace();
        Nanos((left as u64).saturating_sub(reserve.0))
    }
}

/// Adds two durations. Returns the maximum on overflow.
pub(crate) fn add(one: Nanos, other: Nanos) -> Nanos {
    Nanos(one.0.saturating_add(other.0))
}

/// Multiplies a duration. Returns the maximum on overflow.
pub(crate) fn times(one: Nanos, n: u32) -> Nanos {
    Nanos(one.0.saturating_mul(u64::from(n)))
}
