//! Executes the planner's steps on this machine: visits, slots and pairs under the load of the goal, with rows of
//! candidates switched on.

use super::error::TuneError;
use super::switch_board::{SwitchBoard, find_meddling};
use super::{TellTune, TuneEvent};
use crate::engine::{Environment, LoadTarget};
use crate::runner::Ground;
use crate::trials::TrialError;
use crate::trials::bench::{Clocks, TrialBench, monotonic_time};
use crate::trials::loader::{Loader, On};
use crate::trials::pairs::one_slot;
use assay_changes::{ChangeError, ChangeSession};
use assay_host::{Host, Limits};
use assay_judge::trial::{judge_pairs, judge_slots_for_display};
use assay_loads::scratch::{Scratch, ScratchSession};
use assay_model::advice::Guard;
use assay_model::criterion::{Direction, Metric, Quantity};
use assay_model::sample::{Outcome, Sample};
use assay_model::trial::{PairOutcome, Side, Slot, Trial, TrialPlan};
use assay_model::{Load, Nanos};
use assay_store::Store;
use assay_tune::{
    Driver, Incident, KeptState, PairOrder, Row, Step, StepOutcome, TuneRecord, Visit, Want,
    combine,
};
use std::ffi::OsStr;
use std::time::Duration;

/// Number of consecutive pairs with a failed load on both sides after which the load counts as
/// broken.
const BROKEN: u32 = 3;
/// Longest run time of the guard command.
const GUARD_LIMIT: Duration = Duration::from_secs(60);
/// Time after which a failed guard command is run again.
const GUARD_AGAIN: Duration = Duration::from_secs(1);

/// References that a session lends to its driver.
pub(super) struct Lent<'a> {
    pub(super) env: Environment<'a>,
    pub(super) session: &'a ChangeSession,
    pub(super) ground: Option<&'a Ground>,
    pub(super) scratch: &'a ScratchSession,
    pub(super) made: &'a mut Option<Scratch>,
    pub(super) record: &'a mut TuneRecord,
    pub(super) store: &'a mut Store,
    pub(super) tell: &'a mut TellTune<'a>,
}

/// The driver of a session on this machine.
pub(super) struct MachineDriver<'a> {
    lent: Lent<'a>,
    /// Trial that describes the load and the figures to the judge.
    trial: Trial,
    board: SwitchBoard<'a>,
    /// Loader and target, once the load is prepared.
    ready: Option<(Loader<'a>, LoadTarget)>,
    began: Duration,
    /// Number of pairs measured so far: each has separate offsets and data.
    pairs: u32,
    /// Number of consecutive pairs whose load failed.
    broken: u32,
    /// Whether an event ended the session. Later outcomes are not stored for a resume.
    stopped: bool,
}

impl<'a> MachineDriver<'a> {
    pub(super) fn new(lent: Lent<'a>, trial: Trial, began: Duration) -> Self {
        let board = SwitchBoard::new(lent.session, lent.env.host, &lent.record.changes);
        Self {
            trial,
            board,
            ready: None,
            began,
            pairs: lent.record.seen.len() as u32,
            broken: 0,
            stopped: false,
            lent,
        }
    }

    /// Notes what ended the session. Later outcomes are not stored for a resume.
    pub(super) fn stop(&mut self, incident: &Incident) {
        self.lent.record.incident = Some(incident.clone());
        self.stopped = true;
    }

    fn is_cancelled(&self) -> bool {
        self.lent.env.cancel.is_cancelled()
    }

    /// Prepares the load: finds its tools and creates the scratch file.
    fn make_ready(&mut self) -> Result<(), TuneError> {
        if self.ready.is_some() {
            return Ok(());
        }
        let loader = Loader::new(&self.trial, &self.lent.env, self.lent.scratch.dir(), false)?;
        let mut on = On {
            ground: self.lent.ground,
            scratch: self.lent.scratch,
            made: self.lent.made,
        };
        let tell = &mut self.lent.tell;
        let mut tell = |event: crate::engine::MeasureEvent<'_>| tell(TuneEvent::Measuring(event));
        let place = loader.find_own_place(&self.trial.plan, &mut on, &mut tell);
        let place = match place {
            Err(_) if self.is_cancelled() => return Err(TuneError::Stopped(Incident::Stop)),
            place => place?,
        };
        self.ready = Some((loader, place));
        Ok(())
    }

    /// Runs the load once with the row in effect.
    fn slot(
        &mut self,
        pair: u32,
        side: Side,
        reads: String,
        since: Clocks,
    ) -> Result<Slot, TuneError> {
        self.make_ready()?;
        let host: &dyn Host = self.lent.env.host;
        let Some((loader, place)) = &self.ready else {
            return Err(TrialError::Unfit("a load that is ready").into());
        };
        let mut bench = SlotBench {
            loader,
            place,
            plan: &self.trial.plan,
        };
        let number = 2 * pair + u32::from(side == Side::Changed);
        let slot = one_slot(
            (pair, side, side, number),
            reads,
            since,
            &mut bench,
            Some(host),
        )?;
        if self.is_cancelled() {
            return Err(TuneError::Stopped(Incident::Stop));
        }
        self.board.check()?;
        Ok(slot)
    }

    fn clocks(&self) -> Clocks {
        Clocks::read(self.lent.env.now)
    }

    /// Measures one alternation: each side once. Returns its outcome, and the figure on both sides.
    fn alternation(
        &mut self,
        order: &PairOrder,
        first: Side,
    ) -> Result<(PairOutcome, Option<[f64; 2]>), TuneError> {
        let differ: Row = order
            .now
            .symmetric_difference(&order.changed)
            .copied()
            .collect();
        self.pairs += 1;
        let (pair, since) = (self.pairs, self.clocks());
        let mut slots = Vec::new();
        for side in [first, first.other()] {
            let reads = match self.board.enter(order.row(side), &differ) {
                Ok(reads) => reads,
                Err(error) => return Ok((self.failed_switch(error, side)?, None)),
            };
            let slot = self.slot(pair, side, reads, since)?;
            if side == Side::Changed
                && let Some(error) = self.ask_guard_command()?
            {
                return Err(TuneError::Stopped(Incident::GuardCommand { error }));
            }
            slots.push(Slot { pair: 1, ..slot });
        }
        let outcome = judge_pairs(&self.trial, &slots)
            .pop()
            .unwrap_or_else(|| void("the pair has no outcome"));
        let figures = match outcome {
            PairOutcome::Measured { .. } => self.figures_of(&slots),
            _ => None,
        };
        self.count_broken(&outcome)?;
        Ok((outcome, figures))
    }

    /// Returns the deciding figure of A and B.
    fn figures_of(&self, slots: &[Slot]) -> Option<[f64; 2]> {
        let judged = judge_slots_for_display(&self.trial, slots, &[]).samples;
        let of = |side| {
            let at = slots.iter().position(|slot| slot.side == side)?;
            judged[at].figures.get(&self.trial.plan.metric).copied()
        };
        Some([of(Side::Now)?, of(Side::Changed)?])
    }

    /// Handles an error of a switch. A change that fails is a failure of its side; a change by
    /// another program ends the session.
    fn failed_switch(&mut self, error: ChangeError, side: Side) -> Result<PairOutcome, TuneError> {
        if let Some(incident) = find_meddling(&error) {
            return Err(TuneError::Stopped(incident));
        }
        if matches!(error, ChangeError::Twice { .. }) {
            return Err(error.into());
        }
        self.board.revert_all()?;
        let error = error.to_string();
        Ok(match side {
            Side::Now => PairOutcome::Failed { error },
            Side::Changed => PairOutcome::FailedChanged { error },
        })
    }

    /// Ends the session if the load failed without the change in several consecutive pairs.
    fn count_broken(&mut self, outcome: &PairOutcome) -> Result<(), TuneError> {
        let PairOutcome::Failed { error } = outcome else {
            self.broken = 0;
            return Ok(());
        };
        self.broken += 1;
        match self.broken >= BROKEN {
            true => Err(TuneError::Stopped(Incident::TargetGone {
                error: error.clone(),
            })),
            false => Ok(()),
        }
    }

    /// Runs the guard command of the user, and again after a failure. Returns the error of the
    /// second failure.
    fn ask_guard_command(&self) -> Result<Option<String>, TuneError> {
        let Some(argv) = &self.lent.record.guard_command else {
            return Ok(None);
        };
        let mut failure = None;
        for attempt in 0..2 {
            if attempt > 0 {
                std::thread::sleep(GUARD_AGAIN);
            }
            failure = run_guard_command(self.lent.env.host, argv);
            if failure.is_none() {
                break;
            }
            if self.is_cancelled() {
                return Err(TuneError::Stopped(Incident::Stop));
            }
        }
        Ok(failure)
    }

    /// Waits, and checks for signals.
    fn wait(&self, time: Nanos) -> Result<(), TuneError> {
        let until = monotonic_time() + Duration::from(time);
        loop {
            if self.is_cancelled() {
                return Err(TuneError::Stopped(Incident::Stop));
            }
            let left = until.saturating_sub(monotonic_time());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(Duration::from_millis(100)));
        }
    }

    fn store(&mut self) -> Result<(), TuneError> {
        self.lent.store.put_tune(self.lent.record)?;
        Ok(())
    }
}

/// The load, ready to run; the row is already in effect.
struct SlotBench<'b, 'a> {
    loader: &'b Loader<'a>,
    place: &'b LoadTarget,
    plan: &'b TrialPlan,
}

impl TrialBench for SlotBench<'_, '_> {
    fn enter(&mut self, _: Side) -> Result<String, TrialError> {
        Ok(String::new())
    }

    fn load(&mut self, _: Side, pair: u32, slot: u32) -> Result<Sample, TrialError> {
        self.loader
            .take(self.plan, self.plan.slot, self.place, pair, slot)
    }

    fn slots_last(&mut self, _: Nanos) {}

    fn clocks(&self) -> Clocks {
        Clocks::read(self.loader.env.now)
    }
}

fn void(reason: &str) -> PairOutcome {
    PairOutcome::Void {
        reason: reason.to_owned(),
    }
}

/// Runs a guard command; returns its error.
fn run_guard_command(host: &dyn Host, argv: &[String]) -> Option<String> {
    let argv: Vec<&OsStr> = argv.iter().map(OsStr::new).collect();
    let limits = Limits {
        timeout: GUARD_LIMIT,
    };
    match host.run(&argv, limits) {
        Err(error) => Some(error.to_string()),
        Ok(output) => (!output.success()).then(|| output.complaint()),
    }
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
        let mut figures = vec![Vec::new(); wants.len()];
        for _ in 0..rounds {
            self.pairs += 1;
            let since = self.clocks();
            let slot = self.slot(self.pairs, Side::Now, String::new(), since)?;
            if let Outcome::Failed { error } = slot.sample.outcome {
                return Err(TuneError::LoadFails { error });
            }
            let judged = judge_slots_for_display(&self.trial, &[slot], &[]).samples;
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

    fn try_alone(&mut self, candidate: usize) -> Result<Option<String>, TuneError> {
        (self.lent.tell)(TuneEvent::Step(&Step::TryAlone { candidate }));
        let row = Row::from([candidate]);
        self.pairs += 1;
        let reads = match self.board.enter(&row, &Row::new()) {
            Ok(reads) => reads,
            Err(error) => match self.failed_switch(error, Side::Changed)? {
                PairOutcome::FailedChanged { error } => return Ok(Some(error)),
                _ => return Ok(None),
            },
        };
        let since = self.clocks();
        let slot = self.slot(self.pairs, Side::Changed, reads, since)?;
        let guard = self.ask_guard_command()?;
        self.board.revert_all()?;
        Ok(match slot.sample.outcome {
            Outcome::Failed { error } => Some(error),
            Outcome::TimedOut { after } => Some(format!("the load did not end within {after}")),
            _ => guard.map(|error| format!("the guard command failed: {error}")),
        })
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
        self.board.revert_all().map_err(as_incident)?;
        let figures = (counted > 0.0).then(|| sums.map(|sum: f64| (sum / counted).exp()));
        Ok((combine(&outcomes), figures))
    }

    fn keep(&mut self, row: &Row) -> Result<(), TuneError> {
        let step = Step::Keep { row: row.clone() };
        (self.lent.tell)(TuneEvent::Step(&step));
        self.board.leave(row).map_err(as_incident)?;
        self.lent.session.put_by()?;
        self.lent.record.kept = KeptState::Kept {
            journal: self.lent.session.uid().to_owned(),
        };
        self.store()
    }

    fn revert(&mut self) -> Result<(), TuneError> {
        (self.lent.tell)(TuneEvent::Step(&Step::Revert));
        // Settings that another program changed are not reverted, and are listed at the end.
        match self.board.revert_all() {
            Err(error) if find_meddling(&error).is_none() => Err(error.into()),
            _ => Ok(()),
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

fn as_incident(error: ChangeError) -> TuneError {
    match find_meddling(&error) {
        Some(incident) => TuneError::Stopped(incident),
        None => error.into(),
    }
}

/// Formats names of figures for an error.
fn name_figures(metrics: impl Iterator<Item = Metric>) -> String {
    let all = metrics.filter(|metric| metric.direction == Direction::All);
    let mut names: Vec<String> = all.map(|metric| metric.to_string()).collect();
    names.sort();
    names.dedup();
    names.join(", ")
}

/// Returns the trial that describes the load of a session to the judge. Each pair has the deciding
/// figure and the guardrails.
pub(super) fn describe_to_judge(record: &TuneRecord) -> Trial {
    let plan = &record.plan;
    let load = record.load.clone();
    let is_cached = !matches!(&load, Load::Fio { workload, .. } if workload.direct);
    let metric = plan
        .goal
        .wants
        .first()
        .map_or(Metric::all(Quantity::P50), assay_tune::Want::metric);
    let plan = TrialPlan {
        advice: "tune".to_owned(),
        title: String::new(),
        predicts: String::new(),
        parameters: std::collections::BTreeMap::new(),
        target: record.target.clone(),
        // Not used: the rows of each pair define the difference.
        change: assay_model::Change::Set {
            setting: assay_model::change::Setting::Sysctl { key: String::new() },
            value: None,
        },
        aa: false,
        load,
        metric,
        guards: plan.goal.guards.clone(),
        margin: plan.goal.margin,
        slot: record.slot,
        slot_min: None,
        washout: record.washout,
        cached: is_cached,
        safety: None,
        keep: None,
        risk: plan.allowed.risk,
        max_pairs: assay_model::trial::MAX_PAIRS,
        budget: Some(plan.budget),
        alpha: assay_judge::trial::ALPHA,
        seed: plan.seed,
        first: Vec::new(),
    };
    Trial {
        id: assay_model::trial::TrialId(0),
        uid: record.uid.clone(),
        assay_version: record.assay_version.clone(),
        started: record.started,
        ended: None,
        state: assay_model::trial::TrialState::Running,
        plan,
        target: record.target_info.clone(),
        facts: record.facts.clone(),
        durability: Vec::new(),
        kept: None,
        remarks: Vec::new(),
        campaign: Vec::new(),
    }
}
