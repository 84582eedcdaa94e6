//! The plan of a session, which is fixed before the session begins, and the errors of a plan.

use crate::baseline::{BottomRung, ROUNDS};
use crate::budget::{Costs, Row, add, times};
use crate::candidate::{Candidate, LoadShape};
use crate::goal::{Goal, GoalError};
use crate::left_out::{Allowed, LeftOut, leave_out};
use assay_model::Nanos;
use assay_model::result::LimitKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Minimum number of pairs with which a proof can decide.
const LEAST_PROOF: u32 = 11;
/// Number of pairs for which time is reserved for the proof of all accepted changes, before its size is known.
pub(crate) const RESERVED: u32 = 20;
/// Divisor of the budget: the part that is reserved to hold the proved changes.
const HOLD_SHARE: u64 = 8;
/// Maximum time to hold the proved changes.
const LONGEST_HOLD: Nanos = Nanos(600_000_000_000);

/// Plan of a session, fixed before the first step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TunePlan {
    /// Goal of the user: sub-goals, guardrails and margin.
    pub goal: Goal,
    /// All changes for which the catalogue has a trial, including the ones that are left out.
    pub candidates: Vec<Candidate>,
    /// What the session may change, as far as the user restricts it.
    pub allowed: Allowed,
    /// Properties of the load that decide which candidates make sense.
    pub load: LoadShape,
    /// Resource that limits the load according to the diagnosis; `None` if unknown.
    pub limit: Option<LimitKind>,
    /// Figure of the lowest layer alone, if it was measured.
    pub bottom: Option<BottomRung>,
    /// Whether to find the limiting resource after the baseline. False for stored sessions of earlier versions.
    #[serde(default)]
    pub diagnose: bool,
    /// Whether to continue even if the lowest layer misses the goal.
    pub anyway: bool,
    /// Expected durations of the parts of a step.
    pub costs: Costs,
    /// Total time of the session, including setting up and reverting.
    pub budget: Nanos,
    /// Time between two visits of the baseline.
    pub between_visits: Nanos,
    /// Whether to prove only all candidates together. Used for changes that were already proved elsewhere.
    #[serde(default)]
    pub together: bool,
    /// Whether to revert all changes at the end, even proved changes.
    #[serde(default)]
    pub keep_nothing: bool,
    /// Time to hold the proved changes at the end: see `hold.rs`. It is 0 for stored sessions of earlier versions,
    /// which held nothing.
    #[serde(default)]
    pub hold: Nanos,
    /// Whether a screen may precede the proofs. The screen also needs enough candidates.
    pub screen: bool,
    /// Seed of all random choices.
    pub seed: u64,
}

/// Reason why a session cannot begin.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TunePlanError {
    /// The goal cannot be used.
    #[error(transparent)]
    Goal(#[from] GoalError),
    /// A margin, guardrail or prior is not a finite number in its range.
    #[error("{what} is {value}, which is not a share above 0")]
    Figure {
        /// Name of the figure.
        what: String,
        /// Value of the figure.
        value: f64,
    },
    /// The budget is too short to prove anything.
    #[error("nothing can be proved within {budget}: the shortest session takes about {needs}")]
    TooShort {
        /// Budget that the user gave.
        budget: Nanos,
        /// Smallest budget that is sufficient.
        needs: Nanos,
    },
}

impl TunePlan {
    /// Returns the usual time to hold the proved changes: an eighth of the budget, at most ten minutes.
    #[must_use]
    pub fn usual_hold(budget: Nanos) -> Nanos {
        Nanos(budget.0 / HOLD_SHARE).min(LONGEST_HOLD)
    }

    /// Checks that a session with this plan can prove a change.
    ///
    /// # Errors
    /// The goal contradicts itself, a figure is not a number, or the budget is too short.
    pub fn check(self) -> Result<Self, TunePlanError> {
        let goal = self.goal.check()?;
        let shares = goal
            .guards
            .iter()
            .map(|guard| ("a guardrail's margin", guard.margin));
        for (what, value) in shares.chain([("the margin", goal.margin)]) {
            if !(value > 0.0 && value.is_finite()) {
                return Err(TunePlanError::Figure {
                    what: what.to_owned(),
                    value,
                });
            }
        }
        let plan = Self { goal, ..self };
        let needs = plan.shortest();
        match needs > plan.budget {
            true => Err(TunePlanError::TooShort {
                budget: plan.budget,
                needs,
            }),
            false => Ok(plan),
        }
    }

    /// Returns the duration of the shortest session that can prove a change.
    #[must_use]
    pub fn shortest(&self) -> Nanos {
        // The candidate with the fastest switch.
        let (order, _) = self.diagnose(0);
        let fastest = order
            .into_iter()
            .min_by_key(|at| self.candidates[*at].switch);
        let differ: Row = fastest.into_iter().collect();
        let pairs = self.costs.pair(&self.candidates, &differ, 1);
        let visit = times(self.costs.slot(), ROUNDS);
        let ends = add(self.costs.set_up, self.costs.set_back);
        let created = times(self.costs.creation(&self.candidates, &differ), 2);
        let proofs = add(created, times(pairs, LEAST_PROOF + RESERVED));
        add(add(ends, visit), proofs)
    }

    /// Returns the candidates to try, ordered by expected gain per minute. Also returns the reason for each candidate
    /// that is left out.
    #[must_use]
    pub fn diagnose(&self, objective: usize) -> (Vec<usize>, BTreeMap<usize, LeftOut>) {
        let metric = self.goal.wants[objective].metric();
        let mut left_out = BTreeMap::new();
        let mut order = Vec::new();
        for (at, candidate) in self.candidates.iter().enumerate() {
            match leave_out(
                candidate,
                &self.allowed,
                &self.load,
                metric,
                self.goal.margin,
            ) {
                Some(reason) => {
                    left_out.insert(at, reason);
                }
                None => order.push(at),
            }
        }
        let rate = |at: usize| {
            let pair = self.costs.pair(&self.candidates, &Row::from([at]), 1);
            self.candidates[at].worth(self.limit) / pair.as_secs_f64().max(1e-9)
        };
        // The sort is stable: candidates with equal rates keep the order of the catalogue.
        order.sort_by(|a, b| rate(*b).total_cmp(&rate(*a)));
        (order, left_out)
    }
}
