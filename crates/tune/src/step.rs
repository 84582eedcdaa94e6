//! The interface between the planner and whoever carries its steps out: a step, and what was seen.

use crate::baseline::Visit;
use crate::budget::Row;
use crate::diagnosis::Diagnosis;
use assay_model::Nanos;
use assay_model::trial::{PairOutcome, Side};
use serde::{Deserialize, Serialize};

/// What to do next. Rows are absolute: whatever was on before, exactly these are on while measuring.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "step")]
pub enum Step {
    /// Create scratch files, open the journal, start the stand-by process.
    SetUp,
    /// Measure all wishes with nothing changed.
    Visit {
        /// Wait so long before.
        wait: Nanos,
        /// Rounds.
        rounds: u32,
    },
    /// Find out what limits the load, and what its lowest layer reaches, with nothing changed.
    Diagnose {
        /// Rounds of the lowest layer; none where the wish has no threshold.
        rounds: u32,
    },
    /// Switch one candidate on, run the load for one slot, switch it off.
    TryAlone {
        /// Its index.
        candidate: usize,
    },
    /// Measure one pair.
    Pair(PairOrder),
    /// Apply these permanently, as one session that one command undoes.
    Keep {
        /// What is kept.
        row: Row,
    },
    /// Revert everything.
    Revert,
    /// Nothing more.
    Done,
}

/// One pair to measure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairOrder {
    /// Which stage it belongs to.
    pub stage: Stage,
    /// 1-based within the stage.
    pub number: u32,
    /// What is on in A.
    pub now: Row,
    /// What is on in B.
    pub changed: Row,
    /// Which side is measured first.
    pub first: Side,
    /// Times both sides are measured: with 3, A B B A A B or B A A B B A.
    pub alternations: u32,
}

impl PairOrder {
    /// The sides in the order in which they are measured.
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

    /// What is on in a side.
    #[must_use]
    pub fn row(&self, side: Side) -> &Row {
        match side {
            Side::Now => &self.now,
            Side::Changed => &self.changed,
        }
    }
}

/// A stage of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "stage")]
pub enum Stage {
    /// All cheap candidates in the same pairs; chooses, proves nothing.
    Screen {
        /// 0-based round.
        round: u32,
    },
    /// One candidate against all that was accepted before.
    Proof {
        /// 0-based round.
        round: u32,
        /// Its index.
        candidate: usize,
    },
    /// All that was accepted against the machine as it was.
    Whole {
        /// 0-based attempt.
        attempt: u32,
    },
}

/// What was seen of a step, with the time it took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "seen")]
pub enum StepOutcome {
    /// `SetUp` is done.
    SetUp {
        /// Time.
        took: Nanos,
    },
    /// A visit was measured.
    Visit {
        /// Its figures.
        visit: Visit,
        /// Time, the wait included.
        took: Nanos,
    },
    /// What limits the load was measured.
    Diagnosed {
        /// What was found out.
        diagnosis: Box<Diagnosis>,
        /// Time.
        took: Nanos,
    },
    /// A candidate was tried alone.
    Alone {
        /// What the load reported, if it failed.
        error: Option<String>,
        /// Time.
        took: Nanos,
    },
    /// A pair was measured.
    Pair {
        /// As the judge sees it: with several alternations, see [`combine`].
        outcome: PairOutcome,
        /// The objective in A and in B, base units; none where the pair is left out.
        figures: Option<[f64; 2]>,
        /// Time, switching included.
        took: Nanos,
    },
    /// Kept.
    Kept {
        /// Time.
        took: Nanos,
    },
    /// Reverted.
    Reverted {
        /// Time.
        took: Nanos,
    },
}

/// What ends a session from outside. The machine is reverted after each but `Finish`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "incident")]
pub enum Incident {
    /// The user stops.
    Stop,
    /// The user wants the best that is proved, now.
    Finish,
    /// The user's guard command failed twice.
    GuardCommand {
        /// What it printed.
        error: String,
    },
    /// Somebody else changed a setting of the session. That setting is left alone.
    Meddled {
        /// The setting.
        setting: String,
        /// What was found.
        found: String,
    },
    /// The target or the load cannot be used any more.
    TargetGone {
        /// What happened.
        error: String,
    },
}

/// Joins the alternations of one pair: the mean of the log ratios, the sums of the work. The coin of the
/// pair decided the order of all of them, so the pair counts once. The first that was not measured
/// stands for the pair.
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
