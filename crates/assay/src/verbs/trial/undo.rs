//! `assay trial --undo`: reverts the change that a trial kept. What another program has changed since is left alone.

use super::past_trials::{journal, told};
use crate::context::{self, print};
use crate::global::Global;
use crate::status::Status;
use anyhow::bail;
use assay_changes::{Foreign, RecoveryOutcome};
use assay_host::LiveHost;
use assay_model::trial::Kept;

/// Reverts what a trial kept.
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
    let outcomes = journal()?.take_back_kept(&uid, &LiveHost, Foreign::Leave)?;
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
    trial.kept = Some(Kept::Reverted);
    trial
        .remarks
        .push(format!("undone at {:.0}", context::now()));
    let is_left = outcomes.iter().any(|one| is_open(&one.outcome));
    if is_left {
        trial
            .remarks
            .push("not undone, because another program changed it since".to_owned());
        eprintln!(
            "not everything was reverted: `assay trial --recover --force` reverts the rest too, --accept keeps it"
        );
    }
    store.update_trial(&trial)?;
    Ok(match is_left {
        true => Status::Findings,
        false => Status::Ok,
    })
}
