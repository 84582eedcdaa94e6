//! One step after the other. What was taken is kept before the next begins.

use crate::engine::Tell;
use assay_loads::Cancel;

/// How far it got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// Every step was done.
    Complete,
    /// The user interrupted it.
    Interrupted,
}

/// Things that are measured one after the other: the slots of a plan, the sides of pairs, the steps of a
/// study.
pub trait Steps<E> {
    /// What is done next.
    type Step;
    /// What it gives.
    type Taken;

    /// Says what comes next; none when nothing is left to do.
    ///
    /// # Errors
    /// Nothing can come next.
    fn next(&mut self, tell: &mut Tell<'_>) -> Result<Option<Self::Step>, E>;

    /// Measures it; none when the user interrupted, so that it says nothing.
    ///
    /// # Errors
    /// The load cannot begin. One that fails is a sample that says so.
    fn take(&mut self, step: &Self::Step) -> Result<Option<Self::Taken>, E>;

    /// Stores what was taken, durably.
    ///
    /// # Errors
    /// The store refuses, or going on is pointless.
    fn keep(&mut self, step: Self::Step, taken: Self::Taken, tell: &mut Tell<'_>) -> Result<(), E>;
}

/// Does one step after the other.
///
/// # Errors
/// What a step says. What was kept until then stays.
pub fn carry_out<E, S: Steps<E> + ?Sized>(
    steps: &mut S,
    cancel: &Cancel,
    tell: &mut Tell<'_>,
) -> Result<Carried, E> {
    loop {
        let Some(step) = steps.next(tell)? else {
            return Ok(Carried::Complete);
        };
        if cancel.is_cancelled() {
            return Ok(Carried::Interrupted);
        }
        let Some(taken) = steps.take(&step)? else {
            return Ok(Carried::Interrupted);
        };
        steps.keep(step, taken, tell)?;
    }
}
