//! Stores the answers of `assay why`, lists them, and shows them again.

use super::{Args, print_answer};
use crate::context;
use crate::global::Global;
use crate::observation_log::{self, ObservedThing};
use crate::status::{Status, Unreadable};
use anyhow::bail;
use assay_report::why::{describe_thing, read_answer, summarize_answer};
use assay_store::Observer;
use assay_why::SlownessAnswer;

const NOTHING: &str = "nothing was observed yet: `assay why`";

/// Stores an answer as an observation, which belongs to this machine unless `is_of_another_machine`.
pub(super) fn keep(answer: &SlownessAnswer, is_of_another_machine: bool, global: &Global) {
    let milliseconds = i64::try_from(answer.started_ms).unwrap_or(i64::MAX);
    let started = jiff::Timestamp::from_millisecond(milliseconds);
    let thing = ObservedThing {
        by: Observer::Why,
        started: started.unwrap_or_else(|_| context::now()),
        subject: describe_thing(answer),
        summary: summarize_answer(answer).swap_remove(0),
        is_here: !is_of_another_machine,
    };
    observation_log::keep(thing, answer, global);
}

/// Lists stored answers (`--list`).
pub(super) fn list(args: &Args, global: &Global) -> anyhow::Result<Status> {
    let empty = format!("{NOTHING}\n");
    observation_log::list(Observer::Why, &empty, &args.shape, global)?;
    Ok(Status::Ok)
}

/// Shows a stored answer (`--show`).
pub(super) fn show(asked: &str, args: &Args, global: &Global) -> anyhow::Result<Status> {
    let Some(store) = context::existing_store(global)? else {
        bail!(NOTHING);
    };
    let id = store.resolve_observation_of(Observer::Why, asked)?;
    let stored = store.observation(id)?;
    if stored.by != Observer::Why {
        bail!(
            "observation {id} is of {}, not of `assay why`: `assay serve` shows it",
            stored.by.name()
        );
    }
    let answer = read_answer(stored.document)
        .map_err(|error| Unreadable(format!("observation {id} cannot be read: {error}")))?;
    print_answer(&answer, args, global)?;
    Ok(Status::Ok)
}
