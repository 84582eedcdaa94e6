//! The slots of a plan as steps: runs, ladders and disks of a guest.

use crate::engine::step_loop::{Carried, Steps, carry_out};
use crate::engine::{LoadTarget, MeasureEvent, MeterSlot, OPERATION_LIMIT, Tell};
use assay_loads::Cancel;
use assay_loads::counters::Sources;
use assay_model::sample::Outcome;
use assay_model::{Bytes, Nanos, Plan, Sample, plan};

/// Failures in a row after which going on is pointless.
const FAILURES: u32 = 3;

/// Several samples in a row failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{count} {} failed, so the run ended; the last one: {last}", if *count == 1 { "sample" } else { "samples in a row" })]
pub struct Stopped {
    /// How many.
    pub count: u32,
    /// What the last one said.
    pub last: String,
}

/// A slot of a plan whose turn it is.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// Its position in the plan's order.
    pub number: u32,
    /// The slot.
    pub slot: &'a plan::Slot,
    /// What is done.
    pub workload: &'a plan::Planned,
    /// Name of the target.
    pub target: &'a str,
}

impl<'a> Turn<'a> {
    /// What is measured: `size` bytes of a place.
    #[must_use]
    pub fn measured(
        &self,
        place: &'a LoadTarget,
        sources: &'a Sources,
        size: Bytes,
    ) -> MeterSlot<'a> {
        MeterSlot {
            load: &self.workload.load,
            name: &self.workload.name,
            ramp: self.workload.ramp,
            runtime: self.workload.runtime,
            limit: OPERATION_LIMIT,
            size,
            seed: self.slot.seed,
            place,
            sources,
            target: self.target,
            round: self.slot.round,
            number: self.number,
        }
    }
}

/// Where samples go when they are measured.
pub trait SampleSink<E> {
    /// Takes the sample of a slot.
    ///
    /// # Errors
    /// The load cannot begin. One that fails is a sample that says so.
    fn take(&mut self, turn: Turn<'_>) -> Result<Sample, E>;

    /// Stores it, durably.
    ///
    /// # Errors
    /// The store refuses.
    fn keep(&mut self, turn: Turn<'_>, sample: &Sample) -> Result<(), E>;

    /// How long the slots from here on take; the last time none is left.
    fn left(&self, todo: &[(u32, plan::Slot)]) -> Nanos;
}

/// Does the slots `todo` of a plan in order.
///
/// # Errors
/// A load cannot begin, what was taken cannot be kept, or too many samples in a row failed. What was
/// kept until then stays.
pub fn carry_out_plan<E: From<Stopped>>(
    plan: &Plan,
    todo: &[(u32, plan::Slot)],
    cancel: &Cancel,
    by: &mut dyn SampleSink<E>,
    tell: &mut Tell<'_>,
) -> Result<Carried, E> {
    let mut slots = Slots {
        plan,
        todo,
        by,
        done: 0,
        failures: 0,
    };
    carry_out(&mut slots, cancel, tell)
}

struct Slots<'a, 'b, E> {
    plan: &'a Plan,
    todo: &'a [(u32, plan::Slot)],
    by: &'b mut dyn SampleSink<E>,
    done: usize,
    failures: u32,
}

impl<'a, E: From<Stopped>> Steps<E> for Slots<'a, '_, E> {
    type Step = Turn<'a>;
    type Taken = Sample;

    fn next(&mut self, tell: &mut Tell<'_>) -> Result<Option<Turn<'a>>, E> {
        tell(MeasureEvent::Left(self.by.left(&self.todo[self.done..])));
        let Some((number, slot)) = self.todo.get(self.done) else {
            return Ok(None);
        };
        let turn = Turn {
            number: *number,
            slot,
            workload: &self.plan.workloads[slot.workload],
            target: &self.plan.targets[slot.target],
        };
        tell(MeasureEvent::Begin {
            done: self.done,
            of: self.todo.len(),
            workload: &turn.workload.name,
            target: turn.target,
            round: slot.round,
        });
        Ok(Some(turn))
    }

    fn take(&mut self, turn: &Turn<'a>) -> Result<Option<Sample>, E> {
        let sample = self.by.take(*turn)?;
        Ok((sample.outcome != Outcome::Interrupted).then_some(sample))
    }

    fn keep(&mut self, turn: Turn<'a>, sample: Sample, tell: &mut Tell<'_>) -> Result<(), E> {
        self.by.keep(turn, &sample)?;
        tell(MeasureEvent::Stored(&sample));
        self.done += 1;
        self.failures = match &sample.outcome {
            Outcome::Completed => 0,
            _ => self.failures + 1,
        };
        // All of them failed, or enough of them in a row.
        if self.failures == FAILURES || self.failures as usize == self.todo.len() {
            return Err(E::from(Stopped {
                count: self.failures,
                last: describe_outcome(sample.outcome),
            }));
        }
        Ok(())
    }
}

fn describe_outcome(outcome: Outcome) -> String {
    match outcome {
        Outcome::Failed { error } => error,
        Outcome::TimedOut { after } => {
            format!("the load did not end and was stopped after {after}")
        }
        Outcome::Completed | Outcome::Interrupted => String::new(),
    }
}
