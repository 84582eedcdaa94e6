//! The session: a state, `next` that reads the next step off it, and `observe` that takes in what was
//! seen. Both are pure, so a session that was stored and read back goes on as if nothing had happened.

mod baseline_result;
mod flow;
mod sizes;
mod whole;

pub use flow::SessionPhase;

use crate::baseline::{ROUNDS, Standing, Visit};
use crate::budget::{Clock, Row, times};
use crate::diagnosis::Diagnosis;
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

/// A session of tuning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TuneSession {
    plan: TunePlan,
    clock: Clock,
    phase: SessionPhase,
    visits: Vec<Visit>,
    standings: Vec<Standing>,
    #[serde(default)]
    diagnosis: Option<Diagnosis>,
    /// Which wish is tuned for.
    objective: usize,
    /// Figures that must not get worse, by the goal and by wishes that are met.
    guards: Vec<Guard>,
    /// Who may be tried, in order.
    order: Vec<usize>,
    left_out: BTreeMap<usize, LeftOut>,
    /// Proved by itself, in the order in which it was accepted.
    accepted: Vec<usize>,
    round: u32,
    /// Level that no proof has spent. A proof that accepts gives its level back: only proofs of useless
    /// pieces can accept one, and what those spend stays spent, so that all of them together accept one
    /// with at most this probability, however they were chosen (Wiens 2003, the fallback procedure).
    level_left: f64,
    screens: Vec<Screen>,
    proofs: Vec<Proof>,
    wholes: Vec<Proof>,
    ending: Option<Ending>,
}

/// What was seen does not belong to the step that was due.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("the step that is due is {due:?}; what was seen belongs to another one")]
pub struct Unexpected {
    /// The step.
    pub due: Box<Step>,
}

impl TuneSession {
    /// Begins a session.
    ///
    /// # Errors
    /// The plan cannot prove anything: see [`Plan::check`].
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
            ending: None,
            plan,
        })
    }

    /// A session with all that was seen so far.
    ///
    /// # Errors
    /// See [`Session::begin`]; what was seen does not fit the plan.
    pub fn replay(plan: TunePlan, seen: &[StepOutcome]) -> Result<Self, ReplayError> {
        let mut session = Self::begin(plan)?;
        for seen in seen {
            session.observe(seen.clone())?;
        }
        Ok(session)
    }

    /// The next step. The same until something is seen.
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
            SessionPhase::Keeping => Step::Keep {
                row: self.accepted_row(),
            },
            SessionPhase::Reverting => Step::Revert,
            SessionPhase::Done => Step::Done,
        }
    }

    /// Takes in what was seen of the step that was due.
    ///
    /// # Errors
    /// It belongs to another step; then nothing changes.
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
                self.note_pair(outcome, figures);
            }
            StepOutcome::Kept { took } | StepOutcome::Reverted { took } => {
                self.clock.count(took, expected);
                self.phase = SessionPhase::Done;
            }
        }
        Ok(())
    }

    /// Ends the session from outside. Nothing changes once it keeps, reverts or is over.
    pub fn interrupt(&mut self, incident: Incident) {
        if matches!(
            self.phase,
            SessionPhase::Keeping | SessionPhase::Reverting | SessionPhase::Done
        ) {
            return;
        }
        match incident {
            Incident::Finish if !matches!(self.phase, SessionPhase::Whole { .. }) => {
                self.finish_search()
            }
            Incident::Finish => {}
            incident => self.end(Ending::Stopped { incident }),
        }
    }

    /// What the step that is due will take, as foreseen.
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
                costs.pair(&self.plan.candidates, &differ, order.alternations)
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
            by_latency: self.metric().quantity.is_latency(),
            noise: self.noise(),
        }
    }

    /// What was settled before the first step.
    #[must_use]
    pub fn plan(&self) -> &TunePlan {
        &self.plan
    }

    /// The budget and what is spent of it.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The figure that decides.
    #[must_use]
    pub fn metric(&self) -> Metric {
        self.plan.goal.wants[self.objective].metric()
    }

    /// The guardrails, in the order in which a pair has their worsening.
    #[must_use]
    pub fn guards(&self) -> &[Guard] {
        &self.guards
    }

    /// The place of the deciding wish among the wishes.
    #[must_use]
    pub fn objective(&self) -> usize {
        self.objective
    }

    /// What the visits of the baseline measured.
    #[must_use]
    pub fn visits(&self) -> &[Visit] {
        &self.visits
    }

    /// Attempts at the proof of the whole.
    #[must_use]
    pub fn wholes(&self) -> &[Proof] {
        &self.wholes
    }

    /// What the pairs of a proof amount to, with an interval of 90 %.
    #[must_use]
    pub fn judge(&self, proof: &Proof) -> Judgement {
        proof.judgement(self.terms())
    }

    /// What limits the load; none before it was measured.
    #[must_use]
    pub fn diagnosis(&self) -> Option<&Diagnosis> {
        self.diagnosis.as_ref()
    }

    /// How each wish stood after the last visit.
    #[must_use]
    pub fn standings(&self) -> &[Standing] {
        &self.standings
    }

    /// Who may be tried, in order.
    #[must_use]
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// Why the others are not tried, by index.
    #[must_use]
    pub fn left_out(&self) -> &BTreeMap<usize, LeftOut> {
        &self.left_out
    }

    /// Proved by itself so far, in order.
    #[must_use]
    pub fn accepted(&self) -> &[usize] {
        &self.accepted
    }

    /// Proofs that ended.
    #[must_use]
    pub fn proofs(&self) -> &[Proof] {
        &self.proofs
    }

    /// Screens that ended.
    #[must_use]
    pub fn screens(&self) -> &[Screen] {
        &self.screens
    }

    /// How it ended; none while it goes on.
    #[must_use]
    pub fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    /// What is shown as the gain: the proof of the whole, and nothing of the search.
    #[must_use]
    pub fn gain(&self) -> Option<Gain> {
        let whole = self.wholes.last()?;
        Some(Gain::of(
            &whole.judgement(self.terms()),
            self.proved_one_by_one(),
        ))
    }

    /// Product of the accepted gains one by one, as ln.
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

/// Why a stored session cannot be read back.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReplayError {
    /// The plan.
    #[error(transparent)]
    Plan(#[from] TunePlanError),
    /// The record.
    #[error(transparent)]
    Unexpected(#[from] Unexpected),
}
