//! Who carries steps out: what the planner needs from the machine, and the loop around it.

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

/// A machine with a load, or a stand-in with a known truth.
///
/// Every method leaves the machine with nothing on but what was kept. A row names candidates by their
/// index in the plan; the driver holds a reversible switch for each and puts a row into effect by
/// setting every candidate of the pair, also the ones that are so already, so that both sides have the
/// same history.
pub trait Driver {
    /// What makes going on impossible.
    type Error: From<Unexpected>;

    /// Time since the session began, pauses excluded.
    fn elapsed(&self) -> Nanos;

    /// Creates scratch files, opens the journal, starts the stand-by process.
    ///
    /// # Errors
    /// The target cannot be used.
    fn set_up(&mut self) -> Result<(), Self::Error>;

    /// Waits, then measures all wishes with nothing on.
    ///
    /// # Errors
    /// The load cannot be started.
    fn visit(&mut self, wants: &[Want], wait: Nanos, rounds: u32) -> Result<Visit, Self::Error>;

    /// Finds out what limits the load as it is, and measures the lowest layer for so many rounds; none for 0.
    ///
    /// # Errors
    /// The load cannot be started. A lowest layer that cannot be measured is no error.
    fn diagnose(&mut self, objective: &Want, rounds: u32) -> Result<Diagnosis, Self::Error>;

    /// Runs the load for one slot with one candidate on; returns what the load reported if it failed.
    ///
    /// # Errors
    /// The candidate cannot be switched off again.
    fn try_alone(&mut self, candidate: usize) -> Result<Option<String>, Self::Error>;

    /// Measures one pair. [`crate::combine`] joins its alternations. Returns the outcome with the
    /// worsening of each guardrail in this order, and `metric` on both sides.
    ///
    /// # Errors
    /// A row cannot be put into effect or taken out of it.
    fn measure(
        &mut self,
        order: &PairOrder,
        metric: Metric,
        guards: &[Guard],
    ) -> Result<(PairOutcome, Option<[f64; 2]>), Self::Error>;

    /// Applies a row permanently, as one session that one command undoes.
    ///
    /// # Errors
    /// It cannot be kept; then it was reverted.
    fn keep(&mut self, row: &Row) -> Result<(), Self::Error>;

    /// Reverts everything and removes scratch files.
    ///
    /// # Errors
    /// Something cannot be reverted; the journal holds it.
    fn revert(&mut self) -> Result<(), Self::Error>;

    /// Looks between steps for what ends a session: a signal, the guard command, a setting that
    /// somebody else changed.
    fn incident(&mut self) -> Option<Incident>;

    /// Stores what was seen before the next step begins; a resume replays it.
    ///
    /// # Errors
    /// It cannot be stored.
    fn record(&mut self, seen: &StepOutcome) -> Result<(), Self::Error>;
}

/// Carries a session out to its end.
///
/// # Errors
/// The driver's. The session can be resumed from what was recorded.
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
    // Every way into `Done` passes an ending.
    Ok(session.ending().cloned().unwrap_or(Ending::NothingProved))
}
