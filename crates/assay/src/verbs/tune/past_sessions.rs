//! Shows past sessions, and undoes kept changes.

use super::Args;
use crate::context::{self, print};
use crate::global::Global;
use crate::status::Status;
use crate::verbs::trial::told;
use anyhow::bail;
use assay_changes::{Foreign, Journal, RecoveryOutcome};
use assay_host::LiveHost;
use assay_report::tune::{self, TuneView};
use assay_tune::{KeptState, TuneId, TuneRecord, TuneSession};

/// Lists all sessions, newest first.
pub(super) fn list(args: &Args, global: &Global) -> anyhow::Result<Status> {
    let all = match context::existing_store(global)? {
        Some(store) => store.tunes()?,
        None => Vec::new(),
    };
    let mut read: Vec<(TuneId, TuneRecord, TuneSession)> = Vec::new();
    for (id, record) in all {
        let session = record.replay()?;
        read.push((id, record, session));
    }
    let views: Vec<TuneView<'_>> = read.iter().map(view).collect();
    args.shape.print(
        || {
            let document = serde_json::json!(tune::tune_list_document(&views));
            format!("{document:#}\n")
        },
        || tune::render_tune_list(&views),
        || tune::render_tune_list(&views),
    )?;
    Ok(Status::Ok)
}

fn view((id, record, session): &(TuneId, TuneRecord, TuneSession)) -> TuneView<'_> {
    TuneView {
        id: *id,
        record,
        session,
    }
}

/// Shows the notebook of a session.
pub(super) fn show(args: &Args, asked: &str, global: &Global) -> anyhow::Result<Status> {
    let Some(store) = context::existing_store(global)? else {
        bail!("nothing was tuned yet: `assay tune DIRECTORY --want GOAL` does");
    };
    let id = store.resolve_tune(asked)?;
    print_one(id, &store.tune(id)?, args, global)?;
    Ok(Status::Ok)
}

/// Returns a session as a document.
pub(super) fn document(id: TuneId, record: &TuneRecord) -> anyhow::Result<String> {
    let session = record.replay()?;
    let view = TuneView {
        id,
        record,
        session: &session,
    };
    Ok(as_json(&view))
}

fn as_json(view: &TuneView<'_>) -> String {
    let document = serde_json::json!(tune::tune_document(view));
    format!("{document:#}\n")
}

/// Prints a notebook in the requested format.
pub(super) fn print_one(
    id: TuneId,
    record: &TuneRecord,
    args: &Args,
    global: &Global,
) -> anyhow::Result<()> {
    let session = record.replay()?;
    let view = TuneView {
        id,
        record,
        session: &session,
    };
    args.shape.report(|| tune::render_tune_page(&view))?;
    args.shape.print(
        || as_json(&view),
        || tune::render_tune_markdown(&view),
        || tune::render_tune_text(&view, context::style(global)),
    )
}

/// Reverts the kept changes of a session. Settings that another program changed in the meantime are
/// left unchanged and listed.
pub(super) fn undo(args: &Args, asked: &str, global: &Global) -> anyhow::Result<Status> {
    let mut store = context::open_store(global)?;
    let id = store.resolve_tune(asked)?;
    let on = store.machine_of_tune(id)?;
    context::begun_here(&format!("session {id}"), on.as_ref())?;
    let mut record = store.tune(id)?;
    let journal = Journal::open(&context::journal_dir()?)?;
    if record.kept == KeptState::Nothing
        && let Some(kept) = assay_measure::tuning::was_kept(&record, &journal)
    {
        record.kept = kept;
    }
    let uid = match &record.kept {
        KeptState::Kept { journal } => journal.clone(),
        KeptState::Undone { at } => {
            eprintln!("session {id} was undone at {at:.0} already");
            return Ok(Status::Ok);
        }
        KeptState::Nothing => {
            eprintln!("session {id} kept nothing: there is nothing to undo");
            return Ok(Status::Ok);
        }
    };
    if args.dry_run {
        for kept in journal.kept()?.iter().filter(|kept| kept.uid == uid) {
            for what in &kept.what {
                print(&format!("would revert {}\n", what.escape_debug()))?;
            }
        }
        return Ok(Status::Ok);
    }
    let outcomes = journal.take_back_kept(&uid, &LiveHost, Foreign::Leave)?;
    let is_open = |outcome: &RecoveryOutcome| {
        matches!(
            outcome,
            RecoveryOutcome::Failed(_)
                | RecoveryOutcome::LeftAlone { .. }
                | RecoveryOutcome::Doubtful(_)
        )
    };
    for one in &outcomes {
        print(&told(one))?;
    }
    let open = outcomes.iter().filter(|one| is_open(&one.outcome)).count();
    record.kept = KeptState::Undone { at: context::now() };
    if open > 0 {
        let what: Vec<&str> = (outcomes.iter())
            .filter(|one| is_open(&one.outcome))
            .map(|one| one.what.as_str())
            .collect();
        record.remarks.push(format!(
            "Not undone, because it was changed since: {}.",
            what.join(", ")
        ));
        eprintln!(
            "not everything was reverted: `assay trial --recover --force` reverts the rest too, --accept keeps it"
        );
    }
    store.put_tune(&record)?;
    match open {
        0 => Ok(Status::Ok),
        _ => Ok(Status::Findings),
    }
}
