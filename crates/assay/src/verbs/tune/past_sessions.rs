//! Shows past sessions as lists and notebooks.

use super::Args;
use crate::context;
use crate::global::Global;
use crate::status::Status;
use anyhow::bail;
use assay_report::tune::{self, TuneView};
use assay_tune::{TuneId, TuneRecord, TuneSession};

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

/// Shows the notebook (the record of all steps) of a session.
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
