//! Steps and their outcomes: the interface between the planner and the driver that executes the steps.

use crate::baseline::Visit;
use crate::budget::Row;
use crate::diagnosis::Diagnosis;
use assay_model::Nanos;
use assay_model::trial::{PairOutcome, Side};
use serde::{Deserialize, Serialize};

/// The next step. A row is complete: exactly its candidates are in effect during the measurement, and no others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "step")]
pub enum Step {
    /// Create scratch files, open the journal and start the watchdog process.
    SetUp,
    /// Measure all sub-goals on the unchanged machine.
    Visit {
        /// Time to wait before the visit.
        wait: Nanos,
        /// Number of rounds to measure.
        rounds: u32,
    },
    /// Find the resource that limits the load, and measure the lowest layer, both on the unchanged machine.
    Diagnose {
        /// Number of rounds for the lowest layer; 0 if the sub-goal has no threshold.
        rounds: u32,
    },
    /// Apply one candidate, run the load for one slot, and revert the candidate.
    TryAlone {
        /// Index of the candidate in the plan.
        candidate: usize,
    },
    /// Measure one pair in the given order.
    Pair(PairOrder),
    /// Apply these changes permanently, as one journal session that one command reverts.
    Keep {
        /// Indices of the candidates to keep.
        row: Row,
    },
    /// Revert all changes and remove scratch files.
    Revert,
    /// The session has ended.
    Done,
}

/// A pair to measure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairOrder {
    /// Stage of the search to which the pair belongs.
    pub stage: Stage,
    /// Number of the pair within the stage, from 1.
    pub number: u32,
    /// Candidates that are in effect on side A.
    pub now: Row,
    /// Candidates that are in effect on side B.
    pub changed: Row,
    /// Side that is measured first.
    pub first: Side,
    /// How often both sides are measured alternately: 3 means A B B A A B or B A A B B A.
    pub alternations: u32,
    /// Number of slots with side B in effect before its measured slots. It is 0 except in a hold, which measures all
    /// slots of B before those of A.
    #[serde(default)]
    pub held: u32,
}

impl PairOrder {
    /// Returns the sides in the order of measurement.
    #[must_use]
    pub fn sides(&self) -> Vec<Side> {
        let first = self.first;
        let alternation = |at: u32| match at % 2 {
            0 => [first, first.other()],
            _ => [first.other(), first],
        };
        (0..self.alternations.max(1))
            .flat_map(alternation)
            .collect()
    }

    /// Returns the candidates that are in effect on a side.
    #[must_use]
    pub fn row(&self, side: Side) -> &Row {
        match side {
            Side::Now => &self.now,
            Side::Changed => &self.changed,
        }
    }
}

/// Stage of the search to which a pair belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "stage")]
pub enum Stage {
    /// All cheap candidates are measured in the same pairs. This stage selects candidates, but proves nothing.
    Screen {
        /// Number of the round, from 0.
        round: u32,
    },
    /// One candidate is compared with all changes that were accepted before.
    Proof {
        /// Number of the round, from 0.
        round: u32,
        /// Index of the candidate in the plan.
        candidate: usize,
    },
    /// All accepted changes are compared with the machine without changes.
    Whole {
        /// Number of the attempt, from 0.
        attempt: u32,
    },
    /// All accepted changes are compared with the machine without changes, after they were in effect for a while.
    Hold,
}

/// Outcome of a step, with the duration of the step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "seen")]
pub enum StepOutcome {
    /// Everything is set up, after [`Step::SetUp`].
    SetUp {
        /// Duration of the step.
        took: Nanos,
    },
    /// A visit was measured.
    Visit {
        /// Figures that were measured in each round.
        visit: Visit,
        /// Duration of the step, including the wait.
        took: Nanos,
    },
    /// The diagnosis is complete.
    Diagnosed {
        /// Result of the diagnosis.
        diagnosis: Box<Diagnosis>,
        /// Duration of the step.
        took: Nanos,
    },
    /// A candidate was tried alone.
    Alone {
        /// Error message of the load; `None` if the load succeeded.
        error: Option<String>,
        /// Duration of the step.
        took: Nanos,
    },
    /// A pair was measured.
    Pair {
        /// Outcome for the judge. Several alternations are joined by [`combine`].
        outcome: PairOutcome,
        /// Value of the objective in A and in B in base units; `None` if the pair does not count.
        figures: Option<[f64; 2]>,
        /// Duration of the step, including the time to change settings.
        took: Nanos,
    },
    /// The changes are kept.
    Kept {
        /// Duration of the step.
        took: Nanos,
    },
    /// All changes are reverted.
    Reverted {
        /// Duration of the step.
        took: Nanos,
    },
}

/// An event that ends a session. All changes are reverted, except after [`Incident::Finish`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "incident")]
pub enum Incident {
    /// The user stopped the session.
    Stop,
    /// The user ended the search, and wants to keep the changes that are proved until now.
    Finish,
    /// The user's guard command failed twice.
    GuardCommand {
        /// Output of the guard command.
        error: String,
    },
    /// Another program changed a setting of the session. assay does not touch that setting any more.
    Meddled {
        /// Name of the setting.
        setting: String,
        /// Current value of the setting.
        found: String,
    },
    /// The target or the load cannot be used any longer.
    TargetGone {
        /// Error message of the load or of the target.
        error: String,
    },
}

/// Joins the alternations of one pair into one outcome, which contains the mean of the log ratios and the sum of the
/// work. The pair counts once, because one random choice decided the order of all alternations. If an alternation was
/// not measured, the outcome of this alternation is the outcome of the pair.
#[must_use]
pub fn combine(alternations: &[PairOutcome]) -> PairOutcome {
    let n = alternations.len() as f64;
    let (mut sum, mut worsening, mut total) = (0.0, Vec::new(), [0.0, 0.0]);
    for outcome in alternations {
        let PairOutcome::Measured {
            effect,
            guards,
            work,
        } = outcome
        else {
            return outcome.clone();
        };
        sum += effect;
        total = [total[0] + work[0], total[1] + work[1]];
        worsening.resize(guards.len(), 0.0);
        for (all, guard) in worsening.iter_mut().zip(guards) {
            *all += guard / n;
        }
    }
    match alternations.is_empty() {
        true => PairOutcome::Void {
            reason: "nothing was measured".to_owned(),
        },
        false => PairOutcome::Measured {
            effect: sum / n,
            guards: worsening,
            work: total,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Side::{Changed, Now};

    #[test]
    fn alternations_mirror_each_other() {
        let order = |first, alternations| PairOrder {
            stage: Stage::Whole { attempt: 0 },
            number: 1,
            now: Row::new(),
            changed: Row::from([0]),
            first,
            alternations,
            held: 0,
        };
        assert_eq!(order(Now, 1).sides(), [Now, Changed]);
        assert_eq!(
            order(Changed, 3).sides(),
            [Changed, Now, Now, Changed, Changed, Now]
        );
    }

    #[test]
    fn one_coin_makes_one_pair() {
        let pair = |effect: f64, work| PairOutcome::Measured {
            effect,
            guards: vec![2.0 * effect],
            work,
        };
        let joined = combine(&[pair(0.1, [10.0, 11.0]), pair(0.3, [10.0, 13.0])]);
        assert_eq!(joined, pair(0.2, [20.0, 24.0]));
        let failed = PairOutcome::FailedChanged {
            error: "no".to_owned(),
        };
        assert_eq!(combine(&[pair(0.1, [1.0, 1.0]), failed.clone()]), failed);
        assert!(matches!(combine(&[]), PairOutcome::Void { .. }));
    }
}
