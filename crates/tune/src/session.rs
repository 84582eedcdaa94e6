//! The session as a state machine: `next` returns the next step, and `observe` updates the state with the outcome of a
//! step. Both are free of side effects, so a session that was stored and loaded continues in the same way.

mod baseline_result;
mod flow;
mod holding;
mod sizes;
mod whole;

pub use flow::SessionPhase;

use crate::baseline::{GoalState, ROUNDS, Visit};
use crate::budget::{Clock, Row, times};
use crate::diagnosis::Diagnosis;
use crate::hold::Hold;
use crate::left_out::LeftOut;
use crate::outcome::{Ending, Gain};
use crate::plan::{TunePlan, TunePlanError};
use crate::proof::{Proof, Terms};
use crate::screen::Screen;
use crate::step::{Incident, Step, StepOutcome};
use assay_model::Nanos;
use assay_model::advice::Guard;
use assay_model::criterion::Metric;
use assay_model::trial::Judgement;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A tuning session: the plan, and the state that follows from the outcomes until now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TuneSession {
    plan: TunePlan,
    clock: Clock,
    phase: SessionPhase,
    visits: Vec<Visit>,
    standings: Vec<GoalState>,
    #[serde(default)]
    diagnosis: Option<Diagnosis>,
    /// Index of the sub-goal that the session improves.
    objective: usize,
    /// Figures that must not get worse: guardrails of the goal, and sub-goals that are met.
    guards: Vec<Guard>,
    /// Candidates to try, in the order of their expected gain per minute.
    order: Vec<usize>,
    left_out: BTreeMap<usize, LeftOut>,
    /// Candidates that were proved alone, in the order of their proofs.
    accepted: Vec<usize>,
    round: u32,
    /// Part of the error level that the proofs have not spent. A proof that accepts a candidate gives its level back.
    /// Only a proof of a useless change can be a false acceptance, and the level of that proof stays spent. Therefore
    /// all proofs together accept a useless change with at most this probability, whatever the selection of the
    /// candidates was (Wiens 2003, the fallback procedure).
    level_left: f64,
    screens: Vec<Screen>,
    proofs: Vec<Proof>,
    wholes: Vec<Proof>,
    #[serde(default)]
    hold: Option<Hold>,
    ending: Option<Ending>,
}

/// Error: the outcome does not belong to the step that was due.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("the step that is due is {due:?}; what was seen belongs to another one")]
pub struct Unexpected {
    /// Step that was due.
    pub due: Box<Step>,
}

impl TuneSession {
    /// Begins a session.
    ///
    /// # Errors
    /// The plan cannot prove anything: see [`TunePlan::check`].
    pub fn begin(plan: TunePlan) -> Result<Self, TunePlanError> {
        let plan = plan.check()?;
        let (order, left_out) = plan.diagnose(0);
        Ok(Self {
            clock: Clock::new(plan.budget),
            phase: SessionPhase::SetUp,
            visits: Vec::new(),
            standings: Vec::new(),
            diagnosis: None,
            objective: 0,
            guards: plan.goal.guards.clone(),
            order,
            left_out,
            accepted: Vec::new(),
            round: 0,
            level_left: sizes::LEVEL,
            screens: Vec::new(),
            proofs: Vec::new(),
            wholes: Vec::new(),
            hold: None,
            ending: None,
            plan,
        })
    }

    /// Rebuilds a session from all stored outcomes.
    ///
    /// # Errors
    /// See [`TuneSession::begin`]; or an outcome does not fit the plan.
    pub fn replay(plan: TunePlan, seen: &[StepOutcome]) -> Result<Self, ReplayError> {
        let mut session = Self::begin(plan)?;
        for seen in seen {
            session.observe(seen.clone())?;
        }
        Ok(session)
    }

    /// Returns the next step. Repeated calls return the same step until [`TuneSession::observe`] is called.
    #[must_use]
    pub fn next(&self) -> Step {
        match &self.phase {
            SessionPhase::SetUp => Step::SetUp,
            SessionPhase::Visiting => Step::Visit {
                wait: match self.visits.is_empty() {
                    true => Nanos(0),
                    false => self.plan.between_visits,
                },
                rounds: ROUNDS,
            },
            SessionPhase::Diagnosing => Step::Diagnose {
                rounds: self.bottom_rounds(),
            },
            SessionPhase::Alone { at } => Step::TryAlone {
                candidate: self.order[*at],
            },
            SessionPhase::Screening { screen } => Step::Pair(screen.order()),
            SessionPhase::Proving { proof, .. } | SessionPhase::Whole { proof } => {
                Step::Pair(proof.order())
            }
            SessionPhase::Holding { hold } => Step::Pair(hold.order()),
            SessionPhase::Keeping => Step::Keep {
                row: self.accepted_row(),
            },
            SessionPhase::Reverting => Step::Revert,
            SessionPhase::Done => Step::Done,
        }
    }

    /// Updates the state with the outcome of the step that was due.
    ///
    /// # Errors
    /// The outcome belongs to another step; the state is unchanged.
    pub fn observe(&mut self, seen: StepOutcome) -> Result<(), Unexpected> {
        let due = self.next();
        let expected = self.expect(&due);
        let fits = matches!(
            (&due, &seen),
            (Step::SetUp, StepOutcome::SetUp { .. })
                | (Step::Visit { .. }, StepOutcome::Visit { .. })
                | (Step::Diagnose { .. }, StepOutcome::Diagnosed { .. })
                | (Step::TryAlone { .. }, StepOutcome::Alone { .. })
                | (Step::Pair(_), StepOutcome::Pair { .. })
                | (Step::Keep { .. }, StepOutcome::Kept { .. })
                | (Step::Revert, StepOutcome::Reverted { .. })
        );
        if !fits {
            return Err(Unexpected { due: Box::new(due) });
        }
        match seen {
            StepOutcome::SetUp { took } => {
                self.clock.count(took, expected);
                self.phase = SessionPhase::Visiting;
            }
            StepOutcome::Visit { visit, took } => {
                self.clock.count(took, expected);
                self.visits.push(visit);
                self.judge_baseline();
            }
            StepOutcome::Diagnosed { diagnosis, took } => {
                self.clock.count(took, expected);
                self.plan.enter_diagnosis(&diagnosis);
                self.diagnosis = Some(*diagnosis);
                self.judge_baseline();
            }
            StepOutcome::Alone { error, took } => {
                self.clock.count(took, expected);
                self.note_alone(error);
            }
            StepOutcome::Pair {
                outcome,
                figures,
                took,
            } => {
                self.clock.count(took, expected);
                self.note_pair(outcome, figures, took);
            }
            StepOutcome::Kept { took } | StepOutcome::Reverted { took } => {
                self.clock.count(took, expected);
                self.phase = SessionPhase::Done;
            }
        }
        Ok(())
    }

    /// Ends the session because of an event. Has no effect if the session already keeps or reverts changes, or has
    /// ended.
    pub fn interrupt(&mut self, incident: Incident) {
        if matches!(
            self.phase,
            SessionPhase::Keeping | SessionPhase::Reverting | SessionPhase::Done
        ) {
            return;
        }
        match incident {
            Incident::Finish => match self.phase {
                SessionPhase::Whole { .. } | SessionPhase::Holding { .. } => {}
                _ => self.finish_search(),
            },
            incident => self.end(Ending::Stopped { incident }),
        }
    }

    /// Returns the expected duration of the next step.
    #[must_use]
    pub fn foresee(&self) -> Nanos {
        self.expect(&self.next())
    }

    fn expect(&self, step: &Step) -> Nanos {
        let costs = &self.plan.costs;
        match step {
            Step::SetUp => costs.set_up,
            Step::Visit { wait, rounds } => crate::budget::add(*wait, times(costs.slot(), *rounds)),
            Step::Diagnose { rounds } => times(costs.slot(), *rounds),
            Step::TryAlone { candidate } => {
                let switch = self.plan.candidates[*candidate].switch;
                crate::budget::add(costs.slot(), times(switch, 2))
            }
            Step::Pair(order) => {
                let differ = order
                    .now
                    .symmetric_difference(&order.changed)
                    .copied()
                    .collect();
                let created = match order.number {
                    1 => costs.creation(&self.plan.candidates, &differ),
                    _ => Nanos(0),
                };
                let all = &self.plan.candidates;
                let pair = match order.held {
                    0 => costs.pair(all, &differ, order.alternations),
                    held => costs.hold(all, &differ, held + 2 * order.alternations),
                };
                crate::budget::add(pair, created)
            }
            Step::Keep { .. } | Step::Revert => costs.set_back,
            Step::Done => Nanos(0),
        }
    }

    fn accepted_row(&self) -> Row {
        self.accepted.iter().copied().collect()
    }

    fn terms(&self) -> Terms<'_> {
        Terms {
            margin: self.plan.goal.margin,
            guards: &self.guards,
            by_latency: self.metric().quantity.is_lower_better(),
            noise: self.noise(),
        }
    }

    /// Returns the plan of the session.
    #[must_use]
    pub fn plan(&self) -> &TunePlan {
        &self.plan
    }

    /// Returns the time budget and how much of it is spent.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Returns the metric of the objective.
    #[must_use]
    pub fn metric(&self) -> Metric {
        self.plan.goal.wants[self.objective].metric()
    }

    /// Returns the guardrails, in the order of the worsenings of a pair.
    #[must_use]
    pub fn guards(&self) -> &[Guard] {
        &self.guards
    }

    /// Returns the index of the objective among the sub-goals.
    #[must_use]
    pub fn objective(&self) -> usize {
        self.objective
    }

    /// Returns the visits of the baseline.
    #[must_use]
    pub fn visits(&self) -> &[Visit] {
        &self.visits
    }

    /// Returns all attempts to prove the accepted changes together.
    #[must_use]
    pub fn wholes(&self) -> &[Proof] {
        &self.wholes
    }

    /// Returns the judgement of a proof, with an interval of 90 %.
    #[must_use]
    pub fn judge(&self, proof: &Proof) -> Judgement {
        proof.judgement(self.terms())
    }

    /// Returns whether a relevant gain remains possible after the pairs of a proof.
    #[must_use]
    pub fn may_gain(&self, proof: &Proof) -> bool {
        proof.may_gain(self.terms())
    }

    /// Returns the diagnosis; `None` before it was measured.
    #[must_use]
    pub fn diagnosis(&self) -> Option<&Diagnosis> {
        self.diagnosis.as_ref()
    }

    /// Returns the state of each sub-goal after the last visit.
    #[must_use]
    pub fn standings(&self) -> &[GoalState] {
        &self.standings
    }

    /// Returns the candidates to try, in the order of their expected gain per minute.
    #[must_use]
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// Returns for each candidate that is not tried, by its index, the reason.
    #[must_use]
    pub fn left_out(&self) -> &BTreeMap<usize, LeftOut> {
        &self.left_out
    }

    /// Returns the candidates that were proved alone until now, in the order of their proofs.
    #[must_use]
    pub fn accepted(&self) -> &[usize] {
        &self.accepted
    }

    /// Returns the proofs that have ended.
    #[must_use]
    pub fn proofs(&self) -> &[Proof] {
        &self.proofs
    }

    /// Returns the screens that have ended.
    #[must_use]
    pub fn screens(&self) -> &[Screen] {
        &self.screens
    }

    /// Returns how the session ended; `None` while the session runs.
    #[must_use]
    pub fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    /// Returns the reported gain. It comes only from the proof of all accepted changes, because the pairs of the search
    /// overestimate gains. `None` without such a proof, or if the gain does not last.
    #[must_use]
    pub fn gain(&self) -> Option<Gain> {
        let lasts = !matches!(self.ending, Some(Ending::DoesNotLast { .. }));
        let whole = self.wholes.last().filter(|_| lasts)?;
        Some(Gain::of(
            &whole.judgement(self.terms()),
            self.proved_one_by_one(),
        ))
    }

    /// Returns the sum of the gains of the accepted candidates, each as a logarithm.
    fn proved_one_by_one(&self) -> f64 {
        self.accepted_proofs().map(Proof::effect).sum()
    }

    fn accepted_proofs(&self) -> impl Iterator<Item = &Proof> {
        self.proofs.iter().filter(|proof| {
            let accepted = matches!(proof.end, Some(crate::proof::ProofEnd::Better));
            let still = |at: &usize| self.accepted.contains(at);
            accepted && proof.changed.difference(&proof.now).all(still)
        })
    }
}

/// Reason why a stored session cannot be rebuilt.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReplayError {
    /// The plan is invalid.
    #[error(transparent)]
    Plan(#[from] TunePlanError),
    /// An outcome does not fit the plan.
    #[error(transparent)]
    Unexpected(#[from] Unexpected),
}
