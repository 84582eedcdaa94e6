//! Time: what a step takes, what is spent, what has to be left for the end.

use crate::candidate::Candidate;
use assay_model::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Candidates that are on, by their index.
pub type Row = BTreeSet<usize>;

/// What steps take, as far as it is known before the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Costs {
    /// Measured time of a slot.
    pub slot: Nanos,
    /// Load before a slot is measured.
    pub washout: Nanos,
    /// Starting and ending the load.
    pub start: Nanos,
    /// Scratch files, journal, stand-by process.
    pub set_up: Nanos,
    /// Reverting everything and removing scratch files.
    pub set_back: Nanos,
}

impl Costs {
    /// One slot without any switch.
    #[must_use]
    pub fn slot(&self) -> Nanos {
        add(self.slot, add(self.washout, self.start))
    }

    /// A pair of so many alternations between rows that differ in these candidates.
    #[must_use]
    pub fn pair(&self, candidates: &[Candidate], differ: &Row, alternations: u32) -> Nanos {
        let switches = differ.iter().map(|at| candidates[*at].switch.0).sum();
        let side = add(self.slot(), Nanos(switches));
        times(side, 2 * alternations.max(1))
    }
}

/// The budget and what is spent of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// All that may be spent, set-up and setting back included.
    pub budget: Nanos,
    /// Spent so far.
    pub spent: Nanos,
    /// Spent on steps whose time was foreseen, and what was foreseen for them.
    foreseen: [Nanos; 2],
}

impl Clock {
    /// Nothing is spent.
    #[must_use]
    pub fn new(budget: Nanos) -> Self {
        Self {
            budget,
            spent: Nanos(0),
            foreseen: [Nanos(0), Nanos(0)],
        }
    }

    /// Counts a step that took so long where `expected` was foreseen.
    pub fn count(&mut self, took: Nanos, expected: Nanos) {
        self.spent = add(self.spent, took);
        self.foreseen[0] = add(self.foreseen[0], took);
        self.foreseen[1] = add(self.foreseen[1], expected);
    }

    /// How much longer steps take than foreseen; at least 1.
    #[must_use]
    pub fn pace(&self) -> f64 {
        let [took, expected] = self.foreseen.map(|time| time.0 as f64);
        if expected > 0.0 {
            (took / expected).max(1.0)
        } else {
            1.0
        }
    }

    /// What is left when `reserve` is set aside, in time as it was foreseen.
    #[must_use]
    pub fn left(&self, reserve: Nanos) -> Nanos {
        let left = self.budget.0.saturating_sub(self.spent.0) as f64 / self.pace();
        Nanos((left as u64).saturating_sub(reserve.0))
    }
}

/// Sum that does not overflow.
pub(crate) fn add(one: Nanos, other: Nanos) -> Nanos {
    Nanos(one.0.saturating_add(other.0))
}

/// Product that does not overflow.
pub(crate) fn times(one: Nanos, n: u32) -> Nanos {
    Nanos(one.0.saturating_mul(u64::from(n)))
}
