//! Decides after the baseline whether the goal is met, whether it is out of reach, or whether the search begins.

use super::{SessionPhase, TuneSession};
use crate::baseline::{self, GoalState, judge_visits};
use crate::budget::{add, times};
use crate::outcome::Ending;
use assay_model::advice::Guard;

impl TuneSession {
    /// Decides after a visit. Either all criteria are met, or the goal is out of reach, or the first missed sub-goal
    /// becomes the objective.
    pub(super) fn judge_baseline(&mut self) {
        let wants = &self.plan.goal.wants;
        self.standings = (wants.iter().enumerate())
            .map(|(at, want)| judge_visits(want, at, &self.visits))
            .collect();
        let unmet =
            |standing: &GoalState| matches!(standing, GoalState::Missed { .. } | GoalState::Open);
        let Some(objective) = self.standings.iter().position(unmet) else {
            self.judge_met();
            return;
        };
        self.objective = objective;
        if self.plan.diagnose && self.diagnosis.is_none() {
            self.phase = SessionPhase::Diagnosing;
            return;
        }
        (self.order, self.left_out) = self.plan.diagnose(objective);
        let want = &self.plan.goal.wants[objective];
        if let (Some(rung), Some(criterion)) = (&self.plan.bottom, want.criterion())
            && !self.plan.anyway
            && rung.is_short_of(criterion, self.plan.hope_below_bottom(&self.order))
        {
            let (what, figure) = (rung.what.clone(), rung.figure);
            return self.end(Ending::Beyond { what, figure });
        }
        self.guard_other_wishes();
        match self.order.is_empty() {
            true => self.end(Ending::NoCandidate),
            false => self.phase = SessionPhase::Alone { at: 0 },
        }
    }

    /// Returns the number of rounds in which the lowest layer is measured. Returns 0 if the session continues in any
    /// case, or if the objective is `more` or `less`, which have no threshold that the lowest layer could miss.
    pub(super) fn bottom_rounds(&self) -> u32 {
        let want = &self.plan.goal.wants[self.objective];
        match want.criterion() {
            Some(_) if !self.plan.anyway => baseline::ROUNDS,
            _ => 0,
        }
    }

    /// Handles the case that all criteria seem to be met: decides "met", requests another visit, or ends the session if
    /// there is no time for another visit.
    fn judge_met(&mut self) {
        let probability = |standing: &GoalState| match standing {
            GoalState::Met { probability } | GoalState::MetForNow { probability } => *probability,
            GoalState::Missed { .. } | GoalState::Open => 0.0,
        };
        let least = self.standings.iter().map(probability).fold(1.0, f64::min);
        if self
            .standings
            .iter()
            .all(|standing| matches!(standing, GoalState::Met { .. }))
        {
            return self.end(Ending::Met { probability: least });
        }
        let visit = add(
            self.plan.between_visits,
            times(self.plan.costs.slot(), baseline::ROUNDS),
        );
        if self.clock.left(self.plan.costs.set_back) < visit {
            let more = baseline::VISITS.saturating_sub(self.visits.len()) as u32;
            self.end(Ending::MetForNow {
                probability: least,
                needs: times(visit, more),
            });
        }
    }

    /// Converts the sub-goals that are met into guardrails. Each figure may get worse only as far as its criterion
    /// remains met.
    fn guard_other_wishes(&mut self) {
        self.guards = self.plan.goal.guards.clone();
        for (at, want) in self.plan.goal.wants.iter().enumerate() {
            let known = |metric| self.guards.iter().any(|guard| guard.metric == metric);
            let met = matches!(
                self.standings[at],
                GoalState::Met { .. } | GoalState::MetForNow { .. }
            );
            let (Some(criterion), false) = (want.criterion(), at == self.objective) else {
                continue;
            };
            if criterion.metric == self.metric() || known(criterion.metric) {
                continue;
            }
            let values: Vec<f64> = (self.visits.iter())
                .filter_map(|visit| baseline::mean(visit.figures.get(at)?))
                .collect();
            let spare = baseline::mean(&values)
                .map_or(0.0, |mean| (mean / criterion.threshold).ln().abs().exp_m1());
            let margin = if met { spare } else { 0.0 }.max(self.plan.goal.margin);
            self.guards.push(Guard {
                metric: criterion.metric,
                margin,
            });
        }
        let deciding = self.metric();
        self.guards.retain(|guard| guard.metric != deciding);
    }
}
