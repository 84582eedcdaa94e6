//! `assay trial --undo`: reverts the change that a trial kept. If another program has changed the value since the
//! trial, this value stays.

use super::past_trials::{journal, told};
use crate::context::{self, print};
use crate::global::Global;
use crate::status::Status;
use anyhow::bail;
use assay_changes::{Foreign, Journal, RecoveryOutcome};
use assay_host::LiveHost;
use assay_model::trial::Kept;

/// Reverts the change that a trial kept (`--undo`).
pub(super) fn undo(asked: &str, global: &Global) -> anyhow::Result<Status> {
    let mut store = context::open_store(global)?;
    let id = store.resolve_trial(asked)?;
    let on = store.machine_of_trial(id)?;
    context::begun_here(&format!("trial {id}"), on.as_ref())?;
    let mut trial = store.trial(id)?;
    let uid = match (trial.kept, &trial.kept_in) {
        (Some(Kept::Kept), Some(uid)) => uid.clone(),
        (Some(Kept::Kept), None) => bail!(
            "trial {id} was kept by an older assay, which did not store how to revert it: set it to what it was in A \
             (`assay trial --show {id}`)"
        ),
        _ => {
            eprintln!("trial {id} kept nothing: there is nothing to undo");
            return Ok(Status::Ok);
        }
    };
    let left = revert_kept(&journal()?, &uid)?;
    trial.kept = Some(Kept::Reverted);
    trial.remarks.push(match left.is_empty() {
        true => format!("undone at {:.0}", context::now()),
        false => format!("not undone at {:.0}: {}", context::now(), left.join(", ")),
    });
    store.update_trial(&trial)?;
    Ok(match left.is_empty() {
        true => Status::Ok,
        false => Status::Findings,
    })
}

/// Reverts the changes that the session `uid` kept, and prints each result. Returns the settings that still differ from
/// their original value: they could not be reverted, or another program changed them.
pub(in crate::verbs) fn revert_kept(journal: &Journal, uid: &str) -> anyhow::Result<Vec<String>> {
    let outcomes = journal.take_back_kept(uid, &LiveHost, Foreign::Leave)?;
    for one in &outcomes {
        print(&told(one))?;
    }
    let left: Vec<String> = outcomes
        .into_iter()
        .filter(|one| {
            matches!(
                one.outcome,
                RecoveryOutcome::Failed(_)
                    | RecoveryOutcome::LeftAlone { .. }
                    | RecoveryOutcome::Doubtful(_)
            )
        })
        .map(|one| one.what)
        .collect();
    if !left.is_empty() {
        eprintln!(
            "not everything was reverted: `assay trial --recover --force` reverts the rest too, --accept keeps it"
        );
    }
    Ok(left)
}
