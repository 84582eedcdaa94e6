//! The interface of the driver that executes the steps, and the loop over the steps.

use crate::baseline::Visit;
use crate::budget::Row;
use crate::diagnosis::Diagnosis;
use crate::goal::Want;
use crate::outcome::Ending;
use crate::session::{TuneSession, Unexpected};
use crate::step::{Incident, PairOrder, Step, StepOutcome};
use assay_model::Nanos;
use assay_model::advice::Guard;
use assay_model::criterion::Metric;
use assay_model::trial::PairOutcome;

/// Executes steps on a machine with a load, or on a simulation with known effects.
///
/// When a method returns, only the kept changes are in effect. A row contains indices of candidates of the plan. The
/// driver can apply and revert each candidate. To apply a row, the driver changes the setting of every candidate of the
/// pair, even if the setting already has the right value, so that both sides have the same history.
pub trait Driver {
    /// Error that ends the session.
    type Error: From<Unexpected>;

    /// Returns the time since the session began. The time between an interruption and its resume does not count.
    fn elapsed(&self) -> Nanos;

    /// Creates scratch files, opens the journal and starts the watchdog process.
    ///
    /// # Errors
    /// The target cannot be used.
    fn set_up(&mut self) -> Result<(), Self::Error>;

    /// Waits for `wait`, then measures all sub-goals on the unchanged machine.
    ///
    /// # Errors
    /// The load cannot be started.
    fn visit(&mut self, wants: &[Want], wait: Nanos, rounds: u32) -> Result<Visit, Self::Error>;

    /// Finds the resource that limits the load on the unchanged machine. Also measures the lowest layer for `rounds`
    /// rounds; 0 skips the lowest layer.
    ///
    /// # Errors
    /// The load cannot be started. A lowest layer that cannot be measured is not an error.
    fn diagnose(&mut self, objective: &Want, rounds: u32) -> Result<Diagnosis, Self::Error>;

    /// Runs the load for one slot with only this candidate in effect. Returns the error message of the load if the load
    /// failed, otherwise `None`.
    ///
    /// # Errors
    /// The candidate cannot be reverted.
    fn try_alone(&mut self, candidate: usize) -> Result<Option<String>, Self::Error>;

    /// Measures one pair. Returns the outcome, which contains the worsening of each guardrail in the given order, and
    /// the value of `metric` on both sides. Joins alternations with [`crate::combine`].
    ///
    /// # Errors
    /// A row cannot be applied or reverted.
    fn measure(
        &mut self,
        order: &PairOrder,
        metric: Metric,
        guards: &[Guard],
    ) -> Result<(PairOutcome, Option<[f64; 2]>), Self::Error>;

    /// Applies a row permanently, as one journal session that one command reverts.
    ///
    /// # Errors
    /// The row cannot be kept; its changes were reverted.
    fn keep(&mut self, row: &Row) -> Result<(), Self::Error>;

    /// Reverts everything and removes scratch files.
    ///
    /// # Errors
    /// A change cannot be reverted; it stays in the journal.
    fn revert(&mut self) -> Result<(), Self::Error>;

    /// Returns an event that ends the session, such as a signal, a failed guard command, or a setting that another
    /// program changed. Called between steps.
    fn incident(&mut self) -> Option<Incident>;

    /// Stores the outcome of a step before the next step begins, so that the session can be resumed.
    ///
    /// # Errors
    /// The outcome cannot be stored.
    fn record(&mut self, seen: &StepOutcome) -> Result<(), Self::Error>;
}

/// Executes a session to its end.
///
/// # Errors
/// The driver failed. The session can be resumed from the stored outcomes.
pub fn carry_out<D: Driver>(session: &mut TuneSession, driver: &mut D) -> Result<Ending, D::Error> {
    loop {
        if let Some(incident) = driver.incident() {
            session.interrupt(incident);
        }
        let began = driver.elapsed();
        let took = |driver: &D| Nanos(driver.elapsed().0.saturating_sub(began.0));
        let seen = match session.next() {
            Step::Done => break,
            Step::SetUp => {
                driver.set_up()?;
                StepOutcome::SetUp { took: took(driver) }
            }
            Step::Visit { wait, rounds } => {
                let visit = driver.visit(&session.plan().goal.wants, wait, rounds)?;
                let took = took(driver);
                StepOutcome::Visit { visit, took }
            }
            Step::Diagnose { rounds } => {
                let want = &session.plan().goal.wants[session.objective()];
                let diagnosis = Box::new(driver.diagnose(want, rounds)?);
                let took = took(driver);
                StepOutcome::Diagnosed { diagnosis, took }
            }
            Step::TryAlone { candidate } => {
                let error = driver.try_alone(candidate)?;
                let took = took(driver);
                StepOutcome::Alone { error, took }
            }
            Step::Pair(order) => {
                let (outcome, figures) =
                    driver.measure(&order, session.metric(), session.guards())?;
                StepOutcome::Pair {
                    outcome,
                    figures,
                    took: took(driver),
                }
            }
            Step::Keep { row } => {
                driver.keep(&row)?;
                StepOutcome::Kept { took: took(driver) }
            }
            Step::Revert => {
                driver.revert()?;
                StepOutcome::Reverted { took: took(driver) }
            }
        };
        driver.record(&seen)?;
        session.observe(seen)?;
    }
    // `Done` is only reached after an ending was set.
    Ok(session.ending().cloned().unwrap_or(Ending::NothingProved))
}
