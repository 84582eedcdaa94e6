//! Implements the planner's driver on this machine: executes each step that the planner chooses. Slots and pairs are in
//! `pair_slots.rs`, the diagnosis is in `load_limits.rs`.

use super::arm_board::ArmBoard;
use super::error::TuneError;
use super::execute::TuneCommands;
use super::judged_load::name_figures;
use super::switch_board::SwitchBoard;
use super::{TellTune, TuneEvent};
use crate::engine::{Environment, LoadTarget};
use crate::runner::OpenTarget;
use crate::trials::bench::monotonic_time;
use crate::trials::loader::Loader;
use assay_changes::ChangeSession;
use assay_judge::trial::judge_slots_for_display;
use assay_loads::scratch::{Scratch, ScratchSession};
use assay_model::Nanos;
use assay_model::advice::Guard;
use assay_model::criterion::Metric;
use assay_model::sample::{Outcome, Sample};
use assay_model::trial::{PairOutcome, Side, Trial};
use assay_store::Store;
use assay_tune::{
    Diagnosis, Driver, Incident, KeptState, PairOrder, Row, Step, StepOutcome, TuneRecord, Visit,
    Want, combine,
};
use std::time::Duration;

/// Resources of a session that its driver borrows.
pub(super) struct SessionResources<'a> {
    pub(super) env: Environment<'a>,
    pub(super) session: &'a ChangeSession,
    pub(super) ground: Option<&'a OpenTarget>,
    pub(super) scratch: &'a ScratchSession,
    pub(super) made: &'a mut Option<Scratch>,
    pub(super) record: &'a mut TuneRecord,
    /// Commands of the user with all secrets, which the record does not contain.
    pub(super) commands: &'a TuneCommands,
    pub(super) store: &'a mut Store,
    pub(super) tell: &'a mut TellTune<'a>,
}

/// The driver of a session on this machine.
pub(super) struct MachineDriver<'a> {
    pub(super) lent: SessionResources<'a>,
    /// Trial that describes the load and its figures to the judge.
    pub(super) trial: Trial,
    pub(super) board: SwitchBoard<'a>,
    /// Objects that the session compares; `None` if it only changes settings.
    pub(super) arms: Option<ArmBoard<'a>>,
    /// Load and target; `None` until the load was prepared.
    pub(super) ready: Option<(Loader<'a>, LoadTarget)>,
    began: Duration,
    /// Number of pairs that were measured. Each pair uses its own offsets and data.
    pub(super) pairs: u32,
    /// Number of consecutive pairs whose load failed.
    pub(super) broken: u32,
    /// Samples of the last visit to the baseline, the unchanged machine.
    pub(super) baseline: Vec<Sample>,
    /// Whether the load printed an error message on the unchanged machine although it succeeded; `None` until the
    /// baseline is measured.
    pub(super) complains: Option<bool>,
    /// Whether an event ended the session. Outcomes after this event are not stored for a resume.
    stopped: bool,
}

impl<'a> MachineDriver<'a> {
    pub(super) fn new(lent: SessionResources<'a>, trial: Trial, began: Duration) -> Self {
        let board = SwitchBoard::new(lent.session, lent.env.host, &lent.record.changes);
        Self {
            trial,
            board,
            arms: ArmBoard::of(&lent),
            ready: None,
            began,
            pairs: lent.record.seen.len() as u32,
            broken: 0,
            baseline: Vec::new(),
            complains: None,
            stopped: false,
            lent,
        }
    }

    /// Records the event that ended the session. Outcomes after this event are not stored for a resume.
    pub(super) fn stop(&mut self, incident: &Incident) {
        self.lent.record.incident = Some(incident.clone());
        self.stopped = true;
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.lent.env.cancel.is_cancelled()
    }

    /// Runs the load once while the change is in effect. Returns the error if the load failed.
    fn failure_of_load(&mut self, reads: String) -> Result<Option<String>, TuneError> {
        let since = self.clocks();
        let slot = self.slot(self.pairs, Side::Changed, reads, since)?;
        Ok(match slot.sample.outcome {
            Outcome::Failed { error } => Some(error),
            Outcome::TimedOut { after } => Some(format!("the load did not end within {after}")),
            // A program that fails early and returns 0 would count as fast.
            _ if self.complains == Some(false) => complaint_of(&slot.sample)
                .map(|line| format!("exit status 0, but it prints an error: {line}")),
            _ => None,
        })
    }

    fn store(&mut self) -> Result<(), TuneError> {
        self.lent.store.put_tune(self.lent.record)?;
        Ok(())
    }
}

/// Returns the error message that the load printed although it succeeded.
fn complaint_of(sample: &Sample) -> Option<&String> {
    let mut operations = (sample.workers.iter()).flat_map(|worker| worker.operations.values());
    operations.find_map(|done| done.complaint.as_ref())
}

impl Driver for MachineDriver<'_> {
    type Error = TuneError;

    fn elapsed(&self) -> Nanos {
        Nanos::from(monotonic_time().saturating_sub(self.began))
    }

    fn set_up(&mut self) -> Result<(), TuneError> {
        (self.lent.tell)(TuneEvent::Step(&Step::SetUp));
        self.make_ready()
    }

    fn visit(&mut self, wants: &[Want], wait: Nanos, rounds: u32) -> Result<Visit, TuneError> {
        (self.lent.tell)(TuneEvent::Step(&Step::Visit { wait, rounds }));
        self.wait(wait)?;
        self.baseline.clear();
        self.enter_base()?;
        let mut figures = vec![Vec::new(); wants.len()];
        for _ in 0..rounds {
            self.pairs += 1;
            let since = self.clocks();
            let slot = self.slot(self.pairs, Side::Now, String::new(), since)?;
            if let Outcome::Failed { error } = slot.sample.outcome {
                return Err(TuneError::LoadFails { error });
            }
            let judged =
                judge_slots_for_display(&self.trial, std::slice::from_ref(&slot), &[]).samples;
            let complains = complaint_of(&slot.sample).is_some();
            self.complains = Some(self.complains.unwrap_or(false) || complains);
            self.baseline.push(slot.sample);
            let found = &judged[0].figures;
            for (want, values) in wants.iter().zip(&mut figures) {
                let metric = want.metric();
                let value = found.get(&metric).copied();
                let value = value.ok_or_else(|| TuneError::NoFigure {
                    wanted: metric.to_string(),
                    known: name_figures(found.keys().copied()),
                })?;
                values.push(value);
            }
        }
        Ok(Visit { figures })
    }

    fn diagnose(&mut self, objective: &Want, rounds: u32) -> Result<Diagnosis, TuneError> {
        (self.lent.tell)(TuneEvent::Step(&Step::Diagnose { rounds }));
        self.diagnose_load(objective, rounds)
    }

    fn try_alone(&mut self, candidate: usize) -> Result<Option<String>, TuneError> {
        (self.lent.tell)(TuneEvent::Step(&Step::TryAlone { candidate }));
        let row = Row::from([candidate]);
        self.pairs += 1;
        if self.complains.is_none() {
            // A resumed session has not measured the baseline itself.
            let since = self.clocks();
            let slot = self.slot(self.pairs, Side::Now, String::new(), since)?;
            self.complains = Some(complaint_of(&slot.sample).is_some());
        }
        let reads = match self.enter_row(&row, &Row::new(), Side::Changed)? {
            Ok(reads) => reads,
            Err(PairOutcome::FailedChanged { error }) => return Ok(Some(error)),
            Err(_) => return Ok(None),
        };
        let mut failure = self.failure_of_load(reads.clone())?;
        if failure.is_some() {
            // The load may fail now and then without the change too.
            failure = self.failure_of_load(reads)?;
        }
        if failure.is_none() {
            let guard = self.ask_guard_command()?;
            failure = guard.map(|error| format!("the guard command failed: {error}"));
        }
        self.board.revert_all()?;
        Ok(failure)
    }

    fn measure(
        &mut self,
        order: &PairOrder,
        metric: Metric,
        guards: &[Guard],
    ) -> Result<(PairOutcome, Option<[f64; 2]>), TuneError> {
        (self.lent.tell)(TuneEvent::Step(&Step::Pair(order.clone())));
        self.trial.plan.metric = metric;
        self.trial.plan.guards = guards.to_vec();
        if order.held > 0 {
            let outcome = self.held_pair(order)?;
            self.board.revert_all()?;
            return Ok((outcome, None));
        }
        let (mut outcomes, mut sums, mut counted) = (Vec::new(), [0.0, 0.0], 0.0);
        for two in order.sides().chunks(2) {
            let (outcome, figures) = self.alternation(order, two[0])?;
            let is_measured = matches!(outcome, PairOutcome::Measured { .. });
            outcomes.push(outcome);
            if !is_measured {
                break;
            }
            if let Some([now, changed]) = figures {
                sums = [sums[0] + now.ln(), sums[1] + changed.ln()];
                counted += 1.0;
            }
        }
        self.board.revert_all()?;
        let figures = (counted > 0.0).then(|| sums.map(|sum: f64| (sum / counted).exp()));
        Ok((combine(&outcomes), figures))
    }

    fn keep(&mut self, row: &Row) -> Result<(), TuneError> {
        let step = Step::Keep { row: row.clone() };
        (self.lent.tell)(TuneEvent::Step(&step));
        self.board.leave(row)?;
        self.lent.session.put_by()?;
        self.lent.record.kept = KeptState::Kept {
            journal: self.lent.session.uid().to_owned(),
        };
        self.store()
    }

    fn revert(&mut self) -> Result<(), TuneError> {
        (self.lent.tell)(TuneEvent::Step(&Step::Revert));
        if let Some(arms) = &mut self.arms {
            arms.remove_all();
        }
        // Settings that another program changed are not reverted, and are listed at the end.
        match self.board.revert_all().map_err(TuneError::from) {
            Ok(()) | Err(TuneError::Stopped(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn incident(&mut self) -> Option<Incident> {
        if self.stopped {
            return None;
        }
        let found = self.is_cancelled().then_some(Incident::Stop)?;
        self.stop(&found);
        Some(found)
    }

    fn record(&mut self, seen: &StepOutcome) -> Result<(), TuneError> {
        if !self.stopped {
            self.lent.record.seen.push(seen.clone());
            self.store()?;
        }
        (self.lent.tell)(TuneEvent::Seen(seen));
        Ok(())
    }
}
