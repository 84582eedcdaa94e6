//! Measures steps in sequence. Each result is stored before the next step begins.

use crate::engine::Tell;
use assay_loads::Cancel;

/// How a sequence of steps ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// All steps were measured.
    Complete,
    /// The user interrupted the sequence before its end.
    Interrupted,
}

/// A sequence of steps: the slots of a plan, the sides of pairs, or the steps of a study.
pub trait Steps<E> {
    /// What a step measures, such as a slot of a plan.
    type Step;
    /// What a step results in, such as a sample.
    type Taken;

    /// Returns the next step; `None` if no step is left.
    ///
    /// # Errors
    /// The next step cannot be determined.
    fn next(&mut self, tell: &mut Tell<'_>) -> Result<Option<Self::Step>, E>;

    /// Measures a step. Returns `None` if the user interrupted, because the result of an interrupted step is invalid.
    ///
    /// # Errors
    /// The load cannot begin. If the load begins and fails later, the sample contains the error.
    fn take(&mut self, step: &Self::Step) -> Result<Option<Self::Taken>, E>;

    /// Stores the result durably.
    ///
    /// # Errors
    /// The store fails, or later steps cannot succeed.
    fn keep(&mut self, step: Self::Step, taken: Self::Taken, tell: &mut Tell<'_>) -> Result<(), E>;
}

/// Measures all steps in sequence.
///
/// # Errors
/// Returns the first error of a step. Results stored before the error remain.
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
