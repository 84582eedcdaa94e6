//! Undoes the changes that a session kept: all, or those that `--only` selects. If another program has changed a value
//! since the session, this value stays.

use super::Args;
use crate::context::{self, print};
use crate::global::Global;
use crate::status::Status;
use crate::verbs::trial::revert_kept;
use anyhow::bail;
use assay_changes::{Journal, inspect_setting};
use assay_host::LiveHost;
use assay_measure::tuning::keep_rest;
use assay_tune::{KeptState, Row, TuneId, TuneRecord};

/// Reverts the changes that a session kept: all, or those that `--only` selects. Keeps values that another program has
/// changed since the session, and prints them.
pub(super) fn undo(args: &Args, asked: &str, global: &Global) -> anyhow::Result<Status> {
    let mut store = context::open_store(global)?;
    let id = store.resolve_tune(asked)?;
    let on = store.machine_of_tune(id)?;
    context::begun_here(&format!("session {id}"), on.as_ref())?;
    let mut record = store.tune(id)?;
    let session = record.replay()?;
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
    let kept = record.row_in_effect(&session);
    let (gone, rest) = choose_pieces(args, &record, &kept)?;
    if args.dry_run && !rest.is_empty() {
        for at in &gone {
            print(&format!("would revert {}\n", name_of(&record, *at)))?;
        }
        return Ok(Status::Ok);
    }
    if !rest.is_empty() {
        check_values(&record, &kept, id)?;
    }
    if args.dry_run {
        for kept in journal.kept()?.iter().filter(|kept| kept.uid == uid) {
            for what in &kept.what {
                print(&format!("would revert {}\n", what.escape_debug()))?;
            }
        }
        return Ok(Status::Ok);
    }
    let left = revert_kept(&journal, &uid)?;
    record.kept = KeptState::Undone { at: context::now() };
    if !left.is_empty() {
        let what = left.join(", ");
        record.remarks.push(format!("Not undone: {what}."));
    }
    store.put_tune(&record)?;
    if !left.is_empty() {
        return Ok(Status::Findings);
    }
    if !rest.is_empty() {
        record.kept = keep_rest(&record, &rest, &journal, &LiveHost)?;
        record.undone.extend(gone);
        store.put_tune(&record)?;
        for at in &rest {
            print(&format!("still in effect: {}\n", name_of(&record, *at)))?;
        }
    }
    Ok(Status::Ok)
}

fn name_of(record: &TuneRecord, candidate: usize) -> String {
    let id = &record.plan.candidates[candidate].id;
    match &record.changes[candidate] {
        Some(change) => format!("{id} ({})", change.name.escape_debug()),
        None => id.clone(),
    }
}

/// Returns the changes to revert, and the changes to keep. `--only` selects changes by advice or setting; without it,
/// all changes are reverted.
fn choose_pieces(args: &Args, record: &TuneRecord, kept: &Row) -> anyhow::Result<(Row, Row)> {
    if args.only.is_empty() {
        return Ok((kept.clone(), Row::new()));
    }
    let fits = |at: usize, word: &str| {
        let id = record.plan.candidates[at].id.as_str();
        let setting = record.changes[at]
            .as_ref()
            .map(|change| change.name.as_str());
        word == id
            || id.split_once('=').is_some_and(|(page, _)| page == word)
            || setting == Some(word)
    };
    let mut gone = Row::new();
    for word in &args.only {
        let found: Row = kept.iter().copied().filter(|at| fits(*at, word)).collect();
        if found.is_empty() {
            let known: Vec<String> = kept.iter().map(|at| name_of(record, *at)).collect();
            bail!(
                "nothing that is in effect is called `{word}`. In effect: {}",
                known.join(", ")
            );
        }
        gone.extend(found);
    }
    let rest = kept.difference(&gone).copied().collect();
    Ok((gone, rest))
}

/// Fails if another program changed any of the kept settings and only some of them are to be undone. The reason is that
/// settings in one file are reverted together, and the settings to keep are then set again.
fn check_values(record: &TuneRecord, kept: &Row, id: TuneId) -> anyhow::Result<()> {
    for change in kept.iter().filter_map(|at| record.changes[*at].as_ref()) {
        let now = inspect_setting(&LiveHost, &change.setting, change.value.as_deref())?;
        if !now.is_wanted {
            bail!(
                "{} was changed since: it is {} now. `assay tune --undo {id}` reverts the others and leaves it alone.",
                change.name,
                now.shown
            );
        }
    }
    Ok(())
}
