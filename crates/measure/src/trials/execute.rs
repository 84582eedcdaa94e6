//! Executes one trial: creates the objects, measures, judges and reverts the change.

use crate::engine::{Environment, MeasureEvent, Tell};
use crate::runner::OpenTarget;
use crate::trials::TrialError;
use crate::trials::bench::monotonic_time;
use crate::trials::budget::affords_noise;
use crate::trials::loader::On;
use crate::trials::machine::Machine;
use crate::trials::noise::measure_noise;
use crate::trials::pairs::{Stop, measure};
use assay_changes::{Recovered, RecoveryOutcome, Switch, never_kept};
use assay_host::Host;
use assay_loads::scratch::Scratch;
use assay_model::advice::RiskLevel;
use assay_model::change::Setting;
use assay_model::trial::{
    FigureJudgement, Judgement, Kept, Slot, Trial, TrialId, TrialPlan, TrialState, Verdict,
};
use assay_model::{Change, Facts, Nanos, TargetInfo};
use assay_store::Store;
use std::path::Path;

/// A trial at its end, whether complete or not.
#[derive(Debug)]
pub struct Finished {
    /// Trial, as it is stored.
    pub trial: Trial,
    /// All slots of the trial, including slots of an earlier, interrupted call.
    pub slots: Vec<Slot>,
    /// Judgement over all pairs, which contains the verdict.
    pub judgement: Judgement,
    /// Reason why the measuring of pairs ended.
    pub stop: Stop,
}

/// Options of the user about what happens before and after the pairs.
pub struct KeepOptions<'a> {
    /// Whether to keep the change if the verdict is "better".
    pub keep: bool,
    /// Whether to keep the change even if a figure other than the deciding one is clearly worse.
    pub despite_worse: bool,
    /// Whether to measure the noise of the machine before the pairs.
    pub noise: bool,
    /// Asks the user for confirmation of a change that could lock the user out. Without confirmation, the change is
    /// reverted.
    pub confirm: &'a mut dyn FnMut() -> bool,
}

/// Creates the record of a trial that has not begun.
#[must_use]
pub fn new_trial(
    plan: TrialPlan,
    uid: String,
    target: Option<TargetInfo>,
    facts: Facts,
    env: &Environment<'_>,
) -> Trial {
    Trial {
        id: TrialId(0),
        uid,
        assay_version: env.version.to_owned(),
        started: (env.now)(),
        ended: None,
        state: TrialState::Running,
        plan,
        target,
        facts,
        durability: Vec::new(),
        kept: None,
        remarks: Vec::new(),
        kept_in: None,
        campaign: Vec::new(),
    }
}

/// Returns why a change of this kind is never kept; `None` if it may be kept.
#[must_use]
pub fn refuses_to_keep(plan: &TrialPlan) -> Option<String> {
    if plan.aa {
        return Some("in a trial of A against A there is no change to keep".to_owned());
    }
    match &plan.keep {
        _ if plan.safety.is_some() || plan.risk == RiskLevel::DataLoss => Some(
            "it puts data at risk that was acknowledged as safe; no gain makes up for that"
                .to_owned(),
        ),
        None => Some(format!(
            "it is tried on things that assay makes, and doing it to yours is described under \
             \"Undo\" in `assay advice {}`",
            plan.advice
        )),
        Some(Change::Set { setting, value }) => {
            never_kept(setting, value.as_deref()).map(str::to_owned)
        }
        Some(Change::SideBySide { .. }) => {
            Some("its page says to keep something that cannot be kept".to_owned())
        }
    }
}

/// Returns the figures that are clearly worse, whatever the verdict is. A change with such a figure is kept only with
/// `--despite-worse`.
pub fn clearly_worse(judgement: &Judgement) -> impl Iterator<Item = &FigureJudgement> {
    judgement.figures.iter().filter(|figure| figure.worse)
}

/// Executes a trial, or continues a trial whose first slots are in `slots`. `ground` is the open target, if the trial
/// has a storage target.
///
/// # Errors
/// Creating an object, applying or reverting the change, running the load or storing a result failed. Measured slots
/// are stored, and the machine is unchanged unless the error reports otherwise.
pub fn execute(
    mut trial: Trial,
    mut slots: Vec<Slot>,
    ground: Option<&OpenTarget>,
    wish: &mut KeepOptions<'_>,
    env: &Environment<'_>,
    store: &mut Store,
    tell: &mut Tell<'_>,
) -> Result<Finished, TrialError> {
    if trial.target.is_some() && ground.is_none() {
        return Err(TrialError::Unfit("its target, opened"));
    }
    // Locked before anything is stored: another assay on the same target is refused here. Services
    // and commands have no file to lock; the journal distinguishes two trials of them.
    let _claim = ground.map(OpenTarget::claim).transpose()?;
    let session = env
        .journal
        .begin(&session_label(&trial), &target_key(&trial))?;
    let scratch = env.state.begin(&trial.uid)?;
    trial.state = TrialState::Running;
    trial.ended = None;
    // For a continued trial the state is unknown until its end.
    trial.kept = trial.kept.filter(|kept| *kept == Kept::Kept);
    match trial.id.0 {
        0 => store.create_trial(&mut trial)?,
        _ => store.update_trial(&trial)?,
    }
    let mut made = None;
    let on = On {
        ground,
        scratch: &scratch,
        made: &mut made,
    };
    let done = on_machine(&mut trial, &mut slots, wish, env, store, &session, on, tell);
    if let Some(astray) = made.and_then(Scratch::remove) {
        tell(MeasureEvent::MovedFile(&astray));
    }
    tell(MeasureEvent::SettingBack);
    let set_back = session.close(env.host);
    trial.ended = Some((env.now)());
    trial.state = match &done {
        Ok((_, Stop::Verdict, _)) => TrialState::Complete,
        _ => TrialState::Stopped,
    };
    let set_back = set_back
        .map_err(|error| TrialError::NotSetBack {
            what: "a change of the trial".to_owned(),
            error: error.to_string(),
        })
        .and_then(all_set_back);
    // In a session of its own, which `--undo` reverts: the one of the trial holds what was created too.
    let kept = match (&done, &set_back) {
        (Ok((_, _, true)), Ok(())) => keep_change(&mut trial, wish, env).map(Some),
        _ => Ok(None),
    };
    if let Ok(Some(kept)) = &kept {
        trial.kept = Some(*kept);
    }
    if trial.kept.is_none() && set_back.is_ok() {
        trial.kept = Some(Kept::Reverted);
    }
    let stored = store.update_trial(&trial);
    set_back?;
    kept?;
    stored?;
    let (judgement, stop, _) = done?;
    Ok(Finished {
        trial,
        slots,
        judgement,
        stop,
    })
}

fn all_set_back(taken_back: Vec<Recovered>) -> Result<(), TrialError> {
    for left in taken_back {
        if let RecoveryOutcome::Failed(error) | RecoveryOutcome::Doubtful(error) = left.outcome {
            return Err(TrialError::NotSetBack {
                what: left.what,
                error,
            });
        }
    }
    Ok(())
}

#[allow(clippy::too_many_arguments, reason = "what `execute` has, once")]
fn on_machine(
    trial: &mut Trial,
    slots: &mut Vec<Slot>,
    wish: &mut KeepOptions<'_>,
    env: &Environment<'_>,
    store: &mut Store,
    session: &assay_changes::ChangeSession,
    on: On<'_>,
    tell: &mut Tell<'_>,
) -> Result<(Judgement, Stop, bool), TrialError> {
    let as_settled = trial.clone();
    let began = monotonic_time();
    let host: &dyn Host = env.host;
    let watch = Some(host);
    let mut machine = Machine::new(&as_settled, env, session, on, tell)?;
    if wish.noise
        && affords_noise(&as_settled.plan)
        && slots.is_empty()
        && let Some(seen) = measure_noise(&as_settled, &mut machine, watch, env.cancel, tell)?
    {
        let percent = (seen.pair_sd.exp() - 1.0) * 100.0;
        trial.remarks.push(match seen.slot {
            Some(slot) => format!(
                "slots of {slot} were chosen from the noise before the change: of that length, neighbours differ by about {percent:.1} %"
            ),
            None => format!("noise before the change: neighbouring slots differed by about {percent:.1} %"),
        });
        if let Some(slot) = seen.slot {
            // Decided before the random order is used, so that the order stays independent of the
            // data.
            crate::trials::plan::with_slots(
                &mut trial.plan,
                slot,
                Nanos::from(monotonic_time().saturating_sub(began)),
            );
            store.update_trial(trial)?;
        }
    }
    if trial.durability.is_empty() && !trial.plan.aa {
        trial.durability = machine.durability()?;
        trial
            .durability
            .iter()
            .for_each(|proof| tell(MeasureEvent::Durability(proof)));
        store.update_trial(trial)?;
    }
    let id = trial.id;
    let mut keep = |slot: &Slot| Ok(store.add_slot(id, slot)?);
    // Preparation and measurements before the first pair are part of the user's time.
    let mut timed = trial.clone();
    let spent = Nanos::from(monotonic_time().saturating_sub(began));
    timed.plan.budget = (timed.plan.budget).map(|budget| Nanos(budget.0.saturating_sub(spent.0)));
    let (judgement, stop) = measure(
        &timed,
        slots,
        &mut machine,
        watch,
        env.cancel,
        &mut keep,
        tell,
    )?;
    machine.set_back()?;
    let allowed = judgement.verdict == Verdict::Better && refuses_to_keep(&trial.plan).is_none();
    let harmless = wish.despite_worse || clearly_worse(&judgement).next().is_none();
    let is_kept = wish.keep && allowed && harmless && stop == Stop::Verdict;
    Ok((judgement, stop, is_kept))
}

/// Applies the change and keeps it in its own session of the journal. Stores the name of that session in the trial.
fn keep_change(
    trial: &mut Trial,
    wish: &mut KeepOptions<'_>,
    env: &Environment<'_>,
) -> Result<Kept, TrialError> {
    let plan = &trial.plan;
    let Some(Change::Set { setting, value }) = &plan.keep else {
        return Ok(Kept::Reverted);
    };
    let session = env
        .journal
        .begin(&session_label(trial), &target_key(trial))?;
    let set = set_and_confirm(plan, (setting, value.as_deref()), wish, env, &session);
    match set {
        Ok(true) => {
            session.put_by()?;
            trial.kept_in = Some(session.uid().to_owned());
            Ok(Kept::Kept)
        }
        reverted => {
            let closed = session.close(env.host);
            let reverted = reverted.map(|_| Kept::Reverted);
            all_set_back(closed.map_err(|error| TrialError::NotSetBack {
                what: "the kept change".to_owned(),
                error: error.to_string(),
            })?)?;
            reverted
        }
    }
}

/// Applies the change, and asks for confirmation if the change could lock the user out. Returns whether the change
/// stays.
fn set_and_confirm(
    plan: &TrialPlan,
    (setting, value): (&Setting, Option<&str>),
    wish: &mut KeepOptions<'_>,
    env: &Environment<'_>,
    session: &assay_changes::ChangeSession,
) -> Result<bool, TrialError> {
    let switch = Switch::open(session, env.host, setting)?;
    switch.set(value)?;
    if plan.risk >= RiskLevel::Lockout && !(wish.confirm)() {
        switch.restore()?;
        return Ok(false);
    }
    switch.leave();
    Ok(true)
}

fn session_label(trial: &Trial) -> String {
    format!("trial of {}", trial.plan.advice)
}

/// Returns the key by which the journal prevents two simultaneous trials on one target.
fn target_key(trial: &Trial) -> String {
    let path = Path::new(&trial.plan.target).canonicalize();
    match path {
        Ok(path) => path.to_string_lossy().into_owned(),
        Err(_) => trial.plan.target.clone(),
    }
}
