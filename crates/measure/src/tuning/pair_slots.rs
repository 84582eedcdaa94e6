//! Measures slots and pairs of a session, in which the load runs with a row of candidates in effect. `driver.rs`
//! decides the order of these measurements.

use super::arm_board::ArmBoard;
use super::driver::MachineDriver;
use super::error::TuneError;
use crate::engine::{LoadTarget, MeasureEvent};
use crate::trials::TrialError;
use crate::trials::bench::{Clocks, TrialBench};
use crate::trials::loader::{Loader, On};
use crate::trials::pairs::one_slot;
use crate::tuning::TuneEvent;
use assay_changes::ChangeError;
use assay_host::Host;
use assay_judge::trial::{judge_pairs, judge_slots_for_display};
use assay_model::Nanos;
use assay_model::sample::{Outcome, Sample};
use assay_model::trial::{PairOutcome, Side, Slot, TrialPlan};
use assay_tune::{Incident, PairOrder, Row, combine};

/// Number of consecutive pairs after which the load counts as broken, if it failed on both sides.
const BROKEN: u32 = 3;

impl MachineDriver<'_> {
    /// Prepares the load: finds its tools and lays out the scratch file.
    pub(super) fn make_ready(&mut self) -> Result<(), TuneError> {
        if self.ready.is_some() {
            return Ok(());
        }
        let over_nbd = self.arms.as_ref().is_some_and(ArmBoard::is_over_nbd);
        let work = self.lent.scratch.dir();
        let loader = Loader::new(&self.trial, &self.lent.env, work, over_nbd)?;
        if self.arms.is_some() {
            // Each row has an object of its own.
            self.ready = Some((loader, LoadTarget::Itself));
            return self.enter_base();
        }
        let mut on = On {
            ground: self.lent.ground,
            scratch: self.lent.scratch,
            made: self.lent.made,
        };
        let tell = &mut self.lent.tell;
        let mut tell = |event: MeasureEvent<'_>| tell(TuneEvent::Measuring(event));
        let place = loader.find_own_place(&self.trial.plan, &mut on, &mut tell);
        let place = match place {
            Err(_) if self.is_cancelled() => return Err(TuneError::Stopped(Incident::Stop)),
            place => place?,
        };
        self.ready = Some((loader, place));
        Ok(())
    }

    /// Runs the load once as a slot of a pair. The caller must have applied the row of candidates.
    pub(super) fn slot(
        &mut self,
        pair: u32,
        side: Side,
        reads: String,
        since: Clocks,
    ) -> Result<Slot, TuneError> {
        self.make_ready()?;
        let Some((loader, place)) = &self.ready else {
            return Err(TrialError::Unfit("a load that is ready").into());
        };
        let place = match &self.arms {
            Some(arms) => arms.place().unwrap_or(place),
            None => place,
        };
        let slot = self.run_load(
            (loader, place, &self.trial.plan),
            (pair, side),
            reads,
            since,
        )?;
        self.board.check()?;
        Ok(slot)
    }

    /// Runs a load once on its target.
    pub(super) fn run_load(
        &self,
        (loader, place, plan): (&Loader<'_>, &LoadTarget, &TrialPlan),
        (pair, side): (u32, Side),
        reads: String,
        since: Clocks,
    ) -> Result<Slot, TuneError> {
        let host: &dyn Host = self.lent.env.host;
        let mut bench = SlotBench {
            loader,
            place,
            plan,
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
        Ok(slot)
    }

    pub(super) fn clocks(&self) -> Clocks {
        Clocks::read(self.lent.env.now)
    }

    /// Measures one pair, that is each side once. Returns the outcome of the pair and the figure of each side.
    pub(super) fn alternation(
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
            let reads = match self.enter_row(order.row(side), &differ, side)? {
                Ok(reads) => reads,
                Err(failed) => return Ok((failed, None)),
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

    /// Measures a pair of a hold: the load runs with the changes in effect for some slots, then both sides are
    /// measured. The last slot of B and the first slot of A are neighbours and form the first alternation.
    pub(super) fn held_pair(&mut self, order: &PairOrder) -> Result<PairOutcome, TuneError> {
        let differ: Row = order
            .now
            .symmetric_difference(&order.changed)
            .copied()
            .collect();
        let reads = match self.enter_row(&order.changed, &differ, Side::Changed)? {
            Ok(reads) => reads,
            Err(failed) => return Ok(failed),
        };
        let (mut since, mut changed) = (self.clocks(), Vec::new());
        for at in 0..order.held + order.alternations {
            if at <= order.held {
                since = self.clocks();
            }
            self.pairs += 1;
            let slot = self.slot(self.pairs, Side::Changed, reads.clone(), since)?;
            if let Some(error) = self.ask_guard_command()? {
                return Err(TuneError::Stopped(Incident::GuardCommand { error }));
            }
            if let Outcome::Failed { error } = slot.sample.outcome {
                return Ok(failed_side(error, Side::Changed));
            }
            if at >= order.held {
                changed.push(slot);
            }
        }
        let reads = match self.enter_row(&order.now, &differ, Side::Now)? {
            Ok(reads) => reads,
            Err(failed) => return Ok(failed),
        };
        let mut outcomes = Vec::new();
        for slot in changed.into_iter().rev() {
            // The same offsets and data as on the other side.
            let now = self.slot(slot.pair, Side::Now, reads.clone(), since)?;
            let slots = [now, slot].map(|slot| Slot { pair: 1, ..slot });
            let outcome = judge_pairs(&self.trial, &slots).pop();
            outcomes.push(outcome.unwrap_or_else(|| void("the pair has no outcome")));
        }
        Ok(combine(&outcomes))
    }

    /// Returns the deciding figures of A and B; `None` if a side has no figure.
    fn figures_of(&self, slots: &[Slot]) -> Option<[f64; 2]> {
        let judged = judge_slots_for_display(&self.trial, slots, &[]).samples;
        let of = |side| {
            let at = slots.iter().position(|slot| slot.side == side)?;
            judged[at].figures.get(&self.trial.plan.metric).copied()
        };
        Some([of(Side::Now)?, of(Side::Changed)?])
    }

    /// Creates the object without any change, if the session compares objects, and directs the load at it.
    pub(super) fn enter_base(&mut self) -> Result<(), TuneError> {
        let Some(arms) = &mut self.arms else {
            return Ok(());
        };
        match arms.enter(&Row::new(), &mut self.lent, &self.trial.plan.load) {
            Ok(_) => Ok(()),
            Err(_) if self.is_cancelled() => Err(TuneError::Stopped(Incident::Stop)),
            Err(error) => Err(error.into()),
        }
    }

    /// Applies a row of candidates. Returns the values of the settings, or the outcome of a pair for which the row of
    /// this side cannot be applied.
    pub(super) fn enter_row(
        &mut self,
        row: &Row,
        differ: &Row,
        side: Side,
    ) -> Result<Result<String, PairOutcome>, TuneError> {
        let mut reads = match self.board.enter(row, differ) {
            Ok(reads) => reads,
            Err(error) => return Ok(Err(self.failed_switch(error, side)?)),
        };
        if let Some(arms) = &mut self.arms {
            match arms.enter(row, &mut self.lent, &self.trial.plan.load) {
                Ok(object) if reads.is_empty() => reads = object,
                Ok(object) => reads = format!("{object}; {reads}"),
                Err(_) if self.is_cancelled() => return Err(TuneError::Stopped(Incident::Stop)),
                Err(error) => {
                    self.board.revert_all()?;
                    return Ok(Err(failed_side(error.to_string(), side)));
                }
            }
        }
        Ok(Ok(reads))
    }

    /// Handles a failed change of a setting. If the change cannot be made, its side of the pair failed. If another
    /// program made a change, the session ends with an error.
    pub(super) fn failed_switch(
        &mut self,
        error: ChangeError,
        side: Side,
    ) -> Result<PairOutcome, TuneError> {
        if matches!(
            error,
            ChangeError::Meanwhile { .. } | ChangeError::Twice { .. }
        ) {
            return Err(error.into());
        }
        self.board.revert_all()?;
        Ok(failed_side(error.to_string(), side))
    }

    /// Counts consecutive pairs in which the load failed without the change. Ends the session after [`BROKEN`] of them.
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
}

/// A bench that only runs the load. The row of candidates was applied before.
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

fn failed_side(error: String, side: Side) -> PairOutcome {
    match side {
        Side::Now => PairOutcome::Failed { error },
        Side::Changed => PairOutcome::FailedChanged { error },
    }
}

fn void(reason: &str) -> PairOutcome {
    PairOutcome::Void {
        reason: reason.to_owned(),
    }
}
