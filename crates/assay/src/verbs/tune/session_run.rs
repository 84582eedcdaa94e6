//! Executes a session, and shows its progress and result.

use super::live_view::LiveView;
use super::outside_watch::OutsideWatch;
use super::private_words::find_commands;
use super::{Args, past_sessions};
use crate::context::{self, print};
use crate::global::Global;
use crate::status::Status;
use anyhow::{Context as _, bail};
use assay_changes::fixes::StandBy;
use assay_changes::inspect_setting;
use assay_measure::engine::Environment;
use assay_measure::runner::OpenTarget;
use assay_measure::tuning::{
    Confirmation, TuneCommands, TuneError, TuneEvent, confirm_kept, execute, was_kept,
};
use assay_model::trial::Verdict;
use assay_model::{Load, Nanos};
use assay_tune::{Ending, Incident, KeptState, StepOutcome, TuneRecord, TuneSession, TuneState};
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::Command;

/// Executes a session, and prints its notebook.
pub(super) fn carry_out(
    record: TuneRecord,
    commands: &TuneCommands,
    place: Option<&OpenTarget>,
    args: &Args,
    global: &Global,
    env: &Environment<'_>,
) -> anyhow::Result<Status> {
    let mut store = context::open_store(global)?;
    let uid = record.uid.clone();
    let mut live = LiveView::new(args.quiet, record.resume()?);
    let outside = OutsideWatch::new(args, &record);
    let stand_by = |session: &str| {
        outside.arm(session);
        start_stand_by(session)
    };
    let done = execute(
        record,
        commands,
        place,
        &stand_by,
        env,
        &mut store,
        &mut |event| live.tell(&event),
    );
    live.end();
    let finished = match done {
        Ok(finished) => {
            outside.disarm();
            finished
        }
        Err(error) => {
            // Then the scheduler tries again.
            if !matches!(error, TuneError::NotReverted { .. }) {
                outside.disarm();
                eprintln!("everything is reverted");
            }
            if let Ok(id) = store.resolve_tune(&uid) {
                eprintln!("what was measured is stored: `assay tune --show {id}`");
            }
            return Err(error.into());
        }
    };
    past_sessions::print_one(finished.id, &finished.record, args, global)?;
    for (what, found) in &finished.left_alone {
        eprintln!(
            "{} was left alone: another program set it to {}",
            what.escape_debug(),
            found.escape_debug()
        );
    }
    let id = finished.id;
    match (&finished.record.incident, finished.left_alone.is_empty()) {
        (None, _) => {}
        (Some(_), true) => {
            eprintln!("everything is reverted; `assay tune --resume {id}` continues")
        }
        (Some(_), false) => eprintln!(
            "everything else is reverted. `assay trial --recover --force` reverts that too, --accept keeps it"
        ),
    }
    Ok(status_of(&finished.session, &finished.record))
}

fn status_of(session: &TuneSession, record: &TuneRecord) -> Status {
    match (&record.incident, session.ending()) {
        (Some(Incident::Stop), _) => Status::Interrupted,
        (Some(_), _) => Status::Findings,
        (
            None,
            Some(
                Ending::Met { .. }
                | Ending::MetForNow { .. }
                | Ending::Proved { .. }
                | Ending::Kept { .. },
            ),
        ) => Status::Ok,
        _ => Status::Findings,
    }
}

/// Continues a stopped session (`--resume`).
pub(super) fn resume(args: &Args, asked: &str, global: &Global) -> anyhow::Result<Status> {
    let cancel = context::on_signals()?;
    let ground = context::MeasurementRegistries::open()?;
    let env = ground.environment(args.fio.as_deref(), &cancel);
    args.despite.check(env.journal)?;
    let mut store = context::open_store(global)?;
    let id = store.resolve_tune(asked)?;
    let on = store.machine_of_tune(id)?;
    context::begun_here(&format!("session {id}"), on.as_ref())?;
    let mut record = store.tune(id)?;
    if record.kept == KeptState::Nothing
        && let Some(kept) = was_kept(&record, env.journal)
    {
        // Killed between keeping the change and recording it.
        record.kept = kept;
        record.seen.push(StepOutcome::Kept { took: Nanos(0) });
        (record.state, record.ended) = (TuneState::Complete, Some((env.now)()));
        store.put_tune(&record)?;
    }
    if record.state == TuneState::Complete {
        bail!("nothing to resume: session {id} is complete; `assay tune --show {id}` shows it");
    }
    check_unchanged(&record, &env)?;
    record.remarks.push(format!(
        "Resumed at {:.0} after {} steps: the rest was measured later.",
        context::now(),
        record.seen.len()
    ));
    let commands = find_commands(args, &record)?;
    let place = open_place(&record.target, &commands.load, &env)?;
    drop(store);
    carry_out(record, &commands, place.as_ref(), args, global, &env)
}

/// Opens the target if it is storage. Returns `None` for a command, a web server or another address.
pub(super) fn open_place(
    target: &str,
    load: &Load,
    env: &Environment<'_>,
) -> anyhow::Result<Option<OpenTarget>> {
    let is_address = || {
        !matches!(load, Load::Fio { .. }) && env.host.exists(Path::new(target)).is_ok_and(|is| !is)
    };
    if target.is_empty() || assay_model::target::is_url(target) || is_address() {
        return Ok(None);
    }
    Ok(Some(OpenTarget::open(env.host, target)?))
}

/// Measures again whether the kept changes of a session help (`--confirm`).
pub(super) fn confirm(args: &Args, asked: &str, global: &Global) -> anyhow::Result<Status> {
    let cancel = context::on_signals()?;
    let ground = context::MeasurementRegistries::open()?;
    let env = ground.environment(args.fio.as_deref(), &cancel);
    args.despite.check(env.journal)?;
    let mut store = context::open_store(global)?;
    let id = store.resolve_tune(asked)?;
    let on = store.machine_of_tune(id)?;
    context::begun_here(&format!("session {id}"), on.as_ref())?;
    let mut record = store.tune(id)?;
    if !matches!(record.kept, KeptState::Kept { .. }) {
        bail!("nothing to confirm: nothing of session {id} is in effect");
    }
    let session = record.replay()?;
    let row = record.row_in_effect(&session);
    for change in row.iter().filter_map(|at| record.changes[*at].as_ref()) {
        let now = inspect_setting(env.host, &change.setting, change.value.as_deref())?;
        if !now.is_wanted {
            bail!(
                "cannot confirm session {id}: {} is {} now, not {}. A reboot or somebody else changed it; `assay tune \
                 --undo {id}` reverts the rest.",
                change.name,
                now.shown,
                change.value.as_deref().unwrap_or("absent")
            );
        }
    }
    let commands = find_commands(args, &record)?;
    let place = open_place(&record.target, &commands.load, &env)?;
    let seed = match args.seed {
        Some(seed) => seed,
        None => context::random_seed()?,
    };
    let live = LiveView::new(args.quiet, session.clone());
    let confirmation = Confirmation {
        record: &record,
        commands: &commands,
        seed,
    };
    let judged = confirm_kept(
        confirmation,
        place.as_ref(),
        &start_stand_by,
        &env,
        &mut store,
        &mut |event| {
            if let TuneEvent::Step(step) = event {
                live.doing(&live.describe(step));
            }
        },
    );
    live.end();
    let judged = judged?.context("the session kept nothing")?;
    let verdict = match judged.verdict {
        Verdict::Better => "confirmed",
        Verdict::Worse | Verdict::NoPracticalDifference | Verdict::Unsafe => "contradicted",
        Verdict::Undecided => "open",
    };
    let when = context::now();
    record.remarks.push(format!(
        "Measured again at {when:.0}: {verdict}. {}.",
        judged.reason
    ));
    store.put_tune(&record)?;
    print(&format!("{verdict}: {}\n", judged.reason))?;
    if verdict == "contradicted" {
        eprintln!("`assay tune --undo {id}` reverts what session {id} kept");
    }
    Ok(match judged.verdict {
        Verdict::Better => Status::Ok,
        _ => Status::Findings,
    })
}

/// Fails if a setting of the session has changed since the session started. Otherwise the session would compare results
/// of different states.
fn check_unchanged(record: &TuneRecord, env: &Environment<'_>) -> anyhow::Result<()> {
    for change in record.changes.iter().flatten() {
        let now = inspect_setting(env.host, &change.setting, change.value.as_deref())
            .with_context(|| format!("cannot look at {}", change.name))?;
        if now.value != change.found {
            bail!(
                "cannot continue: {} is {} now and was {} when the session began. Start a new session.",
                change.name,
                now.shown,
                change.was
            );
        }
    }
    Ok(())
}

/// Starts this program as the stand-by process. It reverts everything if this process is killed.
#[allow(
    clippy::disallowed_methods,
    reason = "the process that outlives this one is this program itself"
)]
fn start_stand_by(session: &str) -> std::io::Result<StandBy> {
    let mut command = Command::new(std::env::current_exe()?);
    let journal = context::journal_dir().map_err(std::io::Error::other)?;
    command
        .args(["dev", "stand-by", "--session", session, "--journal"])
        .arg(journal);
    StandBy::start(command)
}

/// Asks on the terminal whether to begin.
///
/// # Errors
/// There is no terminal.
pub(super) fn agreed() -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!(
            "cannot ask before changing settings for the time of the session: there is no terminal. Look at the plan \
             with --dry-run, then use --yes."
        );
    }
    eprint!("Begin? [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
