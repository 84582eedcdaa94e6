//! Decides from the baseline whether the goal is already met, and whether any change can reach it.
//!
//! A *visit* is several consecutive rounds. On a machine with other load, consecutive rounds are correlated: in
//! simulations on recorded foreign load, a decision "met with 95 %" from five such rounds was wrong in 39 of 100
//! sessions. A goal therefore counts as met only after several visits with pauses between them. Each visit is one
//! observation.

use crate::goal::Want;
use assay_judge::{is_steady, probability_met};
use assay_model::criterion::{Comparison, Criterion};
use assay_model::result::Interval;
use serde::{Deserialize, Serialize};

/// Probability from which a goal counts as met, 0 to 1.
pub const SURE: f64 = 0.95;
/// Number of visits needed to decide "met" if the rounds of a visit are not in a steady state.
pub const VISITS: usize = 6;
/// Number of visits needed to decide "met" if the rounds of each visit are in the steady state that SNIA defines.
pub const STEADY_VISITS: usize = 3;
/// Number of rounds of a visit. The steady-state window of SNIA has five rounds.
pub const ROUNDS: u32 = 8;

/// Result of one visit to the baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Visit {
    /// For each sub-goal, the figure of each round in base units.
    pub figures: Vec<Vec<f64>>,
}

/// How a sub-goal compares with the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "standing")]
pub enum GoalState {
    /// The criterion is met with sufficient probability.
    Met {
        /// Probability that the criterion is met, 0 to 1.
        probability: f64,
    },
    /// The criterion seems to be met, but there are too few visits for this decision.
    MetForNow {
        /// Probability that the criterion is met, 0 to 1.
        probability: f64,
    },
    /// The criterion is missed, or the figure is too close to the threshold to count as met.
    Missed {
        /// Probability that the criterion is met, 0 to 1.
        probability: f64,
    },
    /// The sub-goal is `more` or `less`, which has no threshold and is never met.
    Open,
}

/// Compares a sub-goal with these visits. `index` is the position of the sub-goal in the goal.
#[must_use]
pub fn judge_visits(want: &Want, index: usize, visits: &[Visit]) -> GoalState {
    let Some(criterion) = want.criterion() else {
        return GoalState::Open;
    };
    let rounds = |visit: &Visit| visit.figures.get(index).cloned().unwrap_or_default();
    let all: Vec<Vec<f64>> = visits.iter().map(rounds).collect();
    let probability = probability_of(criterion, &all);
    let settled = visits.len() >= VISITS || visits.len() >= STEADY_VISITS && is_steady_across(&all);
    match probability {
        Some(probability) if probability < SURE => GoalState::Missed { probability },
        Some(probability) if settled => GoalState::Met { probability },
        Some(probability) => GoalState::MetForNow { probability },
        None => GoalState::Missed { probability: 0.0 },
    }
}

/// Returns the probability that the criterion is met, 0 to 1. With one visit, each round is one observation. With
/// several visits, each visit is one observation: the geometric mean of its rounds.
fn probability_of(criterion: &Criterion, visits: &[Vec<f64>]) -> Option<f64> {
    match visits {
        [rounds] => probability_met(criterion, rounds),
        _ => {
            let means: Option<Vec<f64>> = visits.iter().map(|rounds| mean(rounds)).collect();
            probability_met(criterion, &means?)
        }
    }
}

/// Returns whether the rounds of each visit are in the steady state that SNIA defines, and also the means of the
/// visits. SNIA's window needs five values; fewer means are repeated.
fn is_steady_across(visits: &[Vec<f64>]) -> bool {
    let means: Vec<f64> = visits.iter().filter_map(|rounds| mean(rounds)).collect();
    let window: Vec<f64> = means
        .iter()
        .copied()
        .cycle()
        .take(means.len().max(5))
        .collect();
    visits.iter().all(|rounds| is_steady(rounds)) && is_steady(&window)
}

/// Returns the geometric mean; `None` if there are no values.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().map(|value| value.ln()).sum();
    (!values.is_empty()).then(|| (sum / values.len() as f64).exp())
}

/// Figure that the lowest layer alone reaches under the same load. A setting of a higher layer cannot improve the
/// figure beyond this value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BottomRung {
    /// Description of what was measured, such as `vda alone` or `the flush of vda`.
    pub what: String,
    /// Figure of the objective in base units, with its uncertainty.
    pub figure: Interval,
    /// Whether candidates also change this figure. This is true for a server, because its settings also affect the
    /// smallest answer, which serves as its lowest layer.
    #[serde(default, skip_serializing_if = "is_no")]
    pub is_tunable: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_no(value: &bool) -> bool {
    !*value
}

impl BottomRung {
    /// Returns whether even the lowest layer misses the criterion. Uses the favourable end of the figure's interval,
    /// improved by `hope`: the gain that candidates may bring to the lowest layer itself (0.2 for 20 %).
    #[must_use]
    pub fn is_short_of(&self, criterion: &Criterion, hope: f64) -> bool {
        let best = match criterion.comparison {
            Comparison::Less | Comparison::AtMost => self.figure.low / (1.0 + hope),
            Comparison::Greater | Comparison::AtLeast => self.figure.high * (1.0 + hope),
        };
        !criterion.comparison.holds(best, criterion.threshold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visits(values: &[[f64; 8]]) -> Vec<Visit> {
        let visit = |rounds: &[f64; 8]| Visit {
            figures: vec![rounds.to_vec()],
        };
        values.iter().map(visit).collect()
    }

    const QUIET: [f64; 8] = [
        10.0e6, 10.1e6, 9.9e6, 10.05e6, 9.95e6, 10.0e6, 10.1e6, 9.9e6,
    ];
    const RESTLESS: [f64; 8] = [10.0e6, 16.0e6, 9.0e6, 12.0e6, 9.5e6, 14.0e6, 8.0e6, 11.0e6];

    #[test]
    fn steady_rounds_need_fewer_visits_than_restless_ones() {
        let want: Want = "w.p99 <= 30ms".parse().unwrap();
        let stand = |rounds, n| judge_visits(&want, 0, &visits(&vec![rounds; n]));
        assert!(matches!(stand(QUIET, 1), GoalState::MetForNow { .. }));
        assert!(matches!(stand(QUIET, STEADY_VISITS), GoalState::Met { .. }));
        assert!(matches!(
            stand(RESTLESS, STEADY_VISITS),
            GoalState::MetForNow { .. }
        ));
        assert!(matches!(stand(RESTLESS, VISITS), GoalState::Met { .. }));
    }

    #[test]
    fn visits_that_differ_are_not_steady() {
        let slower = QUIET.map(|value| 2.0 * value);
        let want: Want = "w.p99 <= 60ms".parse().unwrap();
        let stand = judge_visits(&want, 0, &visits(&[QUIET, slower, QUIET]));
        assert!(!matches!(stand, GoalState::Met { .. }), "{stand:?}");
    }

    #[test]
    fn a_missed_goal_and_one_without_end() {
        let missed = judge_visits(&"w.p99 <= 5ms".parse().unwrap(), 0, &visits(&[QUIET]));
        assert!(matches!(missed, GoalState::Missed { probability } if probability < 0.01));
        let open = judge_visits(&"less w.p99".parse().unwrap(), 0, &visits(&[QUIET]));
        assert_eq!(open, GoalState::Open);
    }

    #[test]
    fn the_bottom_rung_bounds_what_can_be_reached() {
        let rung = BottomRung {
            what: "vda alone".to_owned(),
            figure: Interval {
                low: 8e6,
                high: 9e6,
                confidence: 0.95,
            },
            is_tunable: false,
        };
        let short = |want: &str, hope| rung.is_short_of(&want.parse().unwrap(), hope);
        assert!(short("w.p99 <= 5ms", 0.0));
        assert!(!short("w.p99 <= 8.5ms", 0.0));
        // A scheduler acts below the rung.
        assert!(short("w.p99 <= 5ms", 0.2) && !short("w.p99 <= 7ms", 0.2));
    }
}
