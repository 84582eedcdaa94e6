//! Executes a trial, and prints its result.

use super::Args;
use super::live::Shown;
use super::past_trials::Seen;
use crate::context;
use crate::global::Global;
use crate::status::Status;
use assay_changes::ChangeError;
use assay_measure::runner::OpenTarget;
use assay_measure::trials::{Environment, Finished, KeepOptions, MeasureEvent, Stop, TrialError};
use assay_model::Change;
use assay_model::trial::{Kept, Slot, Trial, Verdict};
use assay_store::Store;
use std::io::{BufRead as _, IsTerminal as _, Write as _};

/// A trial to execute: a new trial, or a stopped trial that continues.
pub(super) struct Begun {
    pub(super) trial: Trial,
    /// Slots that are already measured.
    pub(super) slots: Vec<Slot>,
    /// The opened target; `None` if the load uses no storage.
    pub(super) ground: Option<OpenTarget>,
}

/// Executes a trial, and prints its result or the state after an error.
pub(super) fn carry_out(
    begun: Begun,
    args: &Args,
    global: &Global,
    env: &Environment<'_>,
    store: &mut Store,
) -> anyhow::Result<Status> {
    let Begun {
        trial,
        slots,
        ground,
    } = begun;
    let mut shown = Shown::new(args.quiet, &trial.plan, context::error_style(global));
    let mut wish = KeepOptions {
        keep: args.keep,
        despite_worse: args.despite_worse,
        noise: !trial.plan.aa,
        confirm: &mut confirm,
    };
    let ground = ground.as_ref();
    let mut tell = |event: MeasureEvent<'_>| shown.tell(&event);
    let uid = trial.uid.clone();
    let done =
        assay_measure::trials::execute(trial, slots, ground, &mut wish, env, store, &mut tell);
    shown.end();
    let one = match done {
        // Interrupted while images were created or the noise was measured: there is nothing to store yet.
        Err(error) if env.cancel.is_cancelled() => {
            let end = match leaves_changes(&error) {
                true => "",
                false => "; everything is reverted",
            };
            eprintln!("interrupted ({error}){end}");
            return Ok(Status::Interrupted);
        }
        Err(error) => {
            report_failure(&uid, &error, args, global, store)?;
            return Err(error.into());
        }
        Ok(done) => done,
    };
    report(&one, args, global)?;
    match &one.stop {
        Stop::Cancelled => return Ok(Status::Interrupted),
        Stop::Fruitless(why) => anyhow::bail!(
            "trial {} stopped: three pairs in a row gave no figure: {why}",
            one.trial.id
        ),
        Stop::Verdict | Stop::Budget => {}
    }
    Ok(match args.keep && one.trial.kept != Some(Kept::Kept) {
        true => Status::Findings,
        false => Status::Ok,
    })
}

/// Prints the state after an error in a trial: the measured slots, whether the machine is unchanged, and how the user
/// can continue.
fn report_failure(
    uid: &str,
    error: &TrialError,
    args: &Args,
    global: &Global,
    store: &Store,
) -> anyhow::Result<()> {
    let id = store.resolve_trial(uid).ok();
    let slots = id.map(|id| store.slots(id)).transpose()?;
    let measured = slots.as_ref().map_or(0, Vec::len);
    if let (Some(id), Some(slots)) = (id, slots.filter(|slots| !slots.is_empty())) {
        let seen = [Seen::of(store.trial(id)?, slots)];
        super::past_trials::print_all(&seen, args, global)?;
    }
    if !leaves_changes(error) {
        eprintln!("everything is reverted");
    }
    if let Some(id) = id.filter(|_| measured > 0) {
        eprintln!(
            "{measured} slots are kept. Fix the cause, then continue with `assay trial --resume {id}`."
        );
    }
    Ok(())
}

/// Returns whether a setting now differs from its value before the trial. Either the setting could not be reverted, or
/// another program set it.
fn leaves_changes(error: &TrialError) -> bool {
    matches!(
        error,
        TrialError::NotSetBack { .. } | TrialError::Change(ChangeError::Meanwhile { .. })
    )
}

fn report(one: &Finished, args: &Args, global: &Global) -> anyhow::Result<()> {
    let seen = [Seen::of(one.trial.clone(), one.slots.clone())];
    super::past_trials::print_all(&seen, args, global)?;
    let id = one.trial.id;
    match &one.stop {
        Stop::Cancelled => eprintln!(
            "interrupted; everything is reverted, and `assay trial --resume {id}` goes on"
        ),
        Stop::Budget => eprintln!(
            "the time given is over; everything is reverted, and `assay trial --resume {id}` goes on"
        ),
        Stop::Verdict | Stop::Fruitless(_) => {}
    }
    if let (Some(Kept::Kept), Some(Change::Set { setting, .. })) =
        (one.trial.kept, &one.trial.plan.keep)
        && !assay_changes::survives_reboot(setting)
    {
        eprintln!(
            "{} is kept until the next boot; `assay advice {}` says under \"Undo\" how to make it last",
            one.trial.plan.advice, one.trial.plan.advice
        );
    }
    if args.keep && one.trial.kept != Some(Kept::Kept) && one.stop == Stop::Verdict {
        let harmed = assay_measure::trials::clearly_worse(&one.judgement)
            .next()
            .is_some();
        let why = match one.judgement.verdict {
            Verdict::Better if harmed && !args.despite_worse => {
                "something else got worse, and --despite-worse was not said"
            }
            Verdict::Better => "you did not confirm it",
            _ => "the verdict is not \"better\"",
        };
        eprintln!("{} was not kept: {why}", one.trial.plan.advice);
    }
    if args.keep && one.judgement.verdict == Verdict::Better {
        for figure in assay_measure::trials::clearly_worse(&one.judgement) {
            let text = assay_report::trial::format_figure_line(&one.trial.plan.load, figure);
            eprintln!("WORSE, though the verdict is \"better\": {text}");
        }
    }
    Ok(())
}

/// Asks the user to confirm a change that could lock the user out. Called while the change is in effect.
fn confirm() -> bool {
    if !std::io::stdin().is_terminal() {
        eprintln!(
            "the change could lock you out and there is no terminal to confirm it: it is reverted"
        );
        return false;
    }
    eprint!("The change is in effect. Log in anew from somewhere else, then type yes to keep it: ");
    let _ = std::io::stderr().flush();
    // The answer is read on a separate thread, so that a terminal that hangs because of the change
    // cannot keep the change in effect.
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut answer = String::new();
        let _ = std::io::stdin().lock().read_line(&mut answer);
        let _ = send.send(answer);
    });
    let answer = receive.recv_timeout(std::time::Duration::from_secs(60));
    answer.is_ok_and(|answer| answer.trim() == "yes")
}
