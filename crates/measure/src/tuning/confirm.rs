//! Measures the kept changes of a session again with new pairs, for example after a reboot or a week. Side A is the
//! machine without the changes, side B the machine with them.

use super::driver::{MachineDriver, SessionResources};
use super::error::TuneError;
use super::execute::{StandByStarter, TuneCommands, close_session, journal_target};
use super::judged_load::describe_to_judge;
use super::{TellTune, TuneEvent};
use crate::engine::Environment;
use crate::runner::OpenTarget;
use crate::trials::bench::monotonic_time;
use crate::trials::draw_order;
use assay_judge::trial::{ALPHA, TrialRule, judge_trial_pairs};
use assay_loads::scratch::Scratch;
use assay_model::Nanos;
use assay_model::trial::{Judgement, PairOutcome};
use assay_store::Store;
use assay_tune::{CandidateChange, Driver as _, Incident, PairOrder, Row, Stage, TuneRecord};

/// A finished session whose kept changes are measured again.
#[derive(Clone, Copy, Debug)]
pub struct Confirmation<'a> {
    /// Stored record of the session.
    pub record: &'a TuneRecord,
    /// Commands of the session with all secrets, which the record does not contain.
    pub commands: &'a TuneCommands,
    /// Seed of the randomised order within pairs and of the randomisation test.
    pub seed: u64,
}

/// Compares the machine with and without the kept changes of a session. Returns the result of the pairs; `None` if the
/// session kept nothing.
///
/// # Errors
/// See [`super::execute`]. The kept changes are in effect afterwards.
pub fn confirm_kept(
    confirmation: Confirmation<'_>,
    ground: Option<&OpenTarget>,
    stand_by: &StandByStarter<'_>,
    env: &Environment<'_>,
    store: &mut Store,
    tell: &mut TellTune<'_>,
) -> Result<Option<Judgement>, TuneError> {
    let Confirmation {
        record,
        commands,
        seed,
    } = confirmation;
    let session = record.replay()?;
    let row = &record.row_in_effect(&session);
    let Some(whole) = session.wholes().last().filter(|_| !row.is_empty()) else {
        return Ok(None);
    };
    let began = monotonic_time();
    let _claim = ground.map(OpenTarget::claim).transpose()?;
    let journal = env
        .journal
        .begin("assay tune --confirm", &journal_target(record))?;
    let scratch = env.state.begin(&format!("{}-confirm", record.uid))?;
    let guard = stand_by(journal.uid()).map_err(TuneError::StandBy)?;
    let mut backwards = TuneRecord {
        changes: reverse_changes(record, row),
        seen: Vec::new(),
        ..record.clone()
    };
    let mut made = None;
    let measured = {
        let trial = describe_to_judge(&backwards, &commands.load);
        let lent = SessionResources {
            env: *env,
            session: &journal,
            ground,
            scratch: &scratch,
            made: &mut made,
            record: &mut backwards,
            commands,
            store,
            tell: &mut *tell,
        };
        let mut driver = MachineDriver::new(lent, trial, began);
        let order = PairOrder {
            stage: Stage::Whole { attempt: 0 },
            number: 0,
            now: row.clone(),
            changed: Row::new(),
            first: assay_model::trial::Side::Now,
            alternations: whole.alternations,
            held: 0,
        };
        let within = record.plan.budget;
        measure_pairs(&mut driver, &session, &order, whole.max_pairs, seed, within)
    };
    if let Some(astray) = made.and_then(Scratch::remove) {
        tell(TuneEvent::Measuring(
            crate::engine::MeasureEvent::MovedFile(&astray),
        ));
    }
    match close_session(journal, env.host) {
        Ok(_) => guard.dismiss(),
        Err(error) => {
            drop(guard);
            return Err(error);
        }
    }
    let pairs = measured?;
    let rule = TrialRule {
        margin: record.plan.goal.margin,
        guards: session.guards().to_vec(),
        max_pairs: pairs.len() as u32,
        alpha: ALPHA,
        seed,
        safety_broken: None,
        unproved: None,
        aa: false,
        by_latency: session.metric().quantity.is_lower_better(),
        looks: vec![pairs.len() as u32],
    };
    Ok(Some(judge_trial_pairs(&rule, &pairs)))
}

/// Returns the kept changes in the reverse direction: from the kept values back to the original values.
fn reverse_changes(record: &TuneRecord, row: &Row) -> Vec<Option<CandidateChange>> {
    let reverse = |(at, change): (usize, &Option<CandidateChange>)| {
        let change = change.as_ref().filter(|_| row.contains(&at))?;
        Some(CandidateChange {
            value: change.found.clone(),
            found: change.value.clone(),
            ..change.clone()
        })
    };
    record.changes.iter().enumerate().map(reverse).collect()
}

/// Measures all pairs, or as many pairs as fit into the time budget.
fn measure_pairs(
    driver: &mut MachineDriver<'_>,
    session: &assay_tune::TuneSession,
    order: &PairOrder,
    most: u32,
    seed: u64,
    within: Nanos,
) -> Result<Vec<PairOutcome>, TuneError> {
    driver.set_up()?;
    let mut pairs = Vec::new();
    for (number, first) in (1..).zip(draw_order(seed, most)) {
        if driver.incident().is_some() {
            return Err(TuneError::Stopped(Incident::Stop));
        }
        if driver.elapsed() > within {
            break;
        }
        let order = PairOrder {
            number,
            first,
            ..order.clone()
        };
        let (outcome, _) = driver.measure(&order, session.metric(), session.guards())?;
        pairs.push(outcome);
    }
    Ok(pairs)
}
