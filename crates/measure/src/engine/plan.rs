//! Measures the slots of a plan as steps, for runs, stack measurements and the disks of a guest.

use crate::engine::step_loop::{Carried, Steps, carry_out};
use crate::engine::{LoadTarget, MeasureEvent, MeterSlot, OPERATION_LIMIT, Tell};
use assay_loads::Cancel;
use assay_loads::counters::Sources;
use assay_model::sample::Outcome;
use assay_model::{Bytes, Nanos, Plan, Sample, plan};

/// Number of consecutive failed samples after which a run stops.
const FAILURES: u32 = 3;

/// Error: several consecutive samples failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{count} {} failed, so the run ended; the last one: {last}", if *count == 1 { "sample" } else { "samples in a row" })]
pub struct Stopped {
    /// Number of consecutive failed samples.
    pub count: u32,
    /// Error of the last failed sample.
    pub last: String,
}

/// The next slot of a plan, with its workload and target.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// Position of the slot in the plan's order.
    pub number: u32,
    /// Round, workload and target of the slot, as in the plan.
    pub slot: &'a plan::Slot,
    /// Workload that runs during the slot.
    pub workload: &'a plan::Planned,
    /// Name of the target.
    pub target: &'a str,
}

impl<'a> Turn<'a> {
    /// Returns the slot in the form that the meter expects. `size` is the number of bytes of the target that the load
    /// uses.
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

/// Measures the slots of a plan and stores their samples. Runs, stack measurements and guests implement this trait.
pub trait SampleSink<E> {
    /// Takes the sample of a slot.
    ///
    /// # Errors
    /// The load cannot begin. If the load begins and fails later, the sample contains the error.
    fn take(&mut self, turn: Turn<'_>) -> Result<Sample, E>;

    /// Stores the sample durably before the next one begins.
    ///
    /// # Errors
    /// The store fails.
    fn keep(&mut self, turn: Turn<'_>, sample: &Sample) -> Result<(), E>;

    /// Estimates how long the remaining slots `todo` take. After the last slot, `todo` is empty.
    fn left(&self, todo: &[(u32, plan::Slot)]) -> Nanos;
}

/// Measures the slots `todo` of a plan in order.
///
/// # Errors
/// A load cannot begin, a sample cannot be stored, or too many consecutive samples failed. Stored
/// samples are kept.
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
        // All samples failed, or enough consecutive ones.
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
