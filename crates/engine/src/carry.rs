//! One slot after the other. What was taken is kept before the next begins.

use crate::{Event, Tell};
use assay_instruments::Cancel;
use assay_model::sample::Outcome;
use assay_model::{Nanos, Plan, Sample, plan};

/// Failures in a row after which going on is pointless.
const FAILURES: u32 = 3;

/// How far it got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// Every slot was done.
    Complete,
    /// The user interrupted it.
    Interrupted,
}

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

/// What whoever keeps samples does with them.
pub trait Kept<E> {
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
pub fn carry_out<E: From<Stopped>>(
    plan: &Plan,
    todo: &[(u32, plan::Slot)],
    cancel: &Cancel,
    by: &mut dyn Kept<E>,
    tell: &mut Tell<'_>,
) -> Result<Carried, E> {
    let mut failures = 0;
    for (done, (number, slot)) in todo.iter().enumerate() {
        if cancel.is_cancelled() {
            return Ok(Carried::Interrupted);
        }
        let turn = Turn {
            number: *number,
            slot,
            workload: &plan.workloads[slot.workload],
            target: &plan.targets[slot.target],
        };
        tell(Event::Left(by.left(&todo[done..])));
        tell(Event::Begin {
            done,
            of: todo.len(),
            workload: &turn.workload.name,
            target: turn.target,
            round: slot.round,
        });
        let sample = by.take(turn)?;
        if sample.outcome == Outcome::Interrupted {
            return Ok(Carried::Interrupted);
        }
        by.keep(turn, &sample)?;
        tell(Event::Stored(&sample));
        failures = match &sample.outcome {
            Outcome::Completed => 0,
            _ => failures + 1,
        };
        // All of them failed, or enough of them in a row.
        if failures == FAILURES || failures as usize == todo.len() {
            return Err(E::from(Stopped {
                count: failures,
                last: why(sample.outcome),
            }));
        }
    }
    tell(Event::Left(Nanos(0)));
    Ok(Carried::Complete)
}

fn why(outcome: Outcome) -> String {
    match outcome {
        Outcome::Failed { error } => error,
        Outcome::TimedOut { after } => {
            format!("the load did not end and was stopped after {after}")
        }
        Outcome::Completed | Outcome::Interrupted => String::new(),
    }
}
