//! Shows past trials, and reverts changes after a crash.

use super::Args;
use crate::context::{self, print};
use crate::global::Global;
use crate::status::Status;
use assay_changes::{Elsewhere, Foreign, Journal, Recovered, RecoveryOutcome};
use assay_host::LiveHost;
use assay_judge::trial::{JudgedSlots, forecast, judge_slots_for_display, judge_trial};
use assay_model::trial::{Judgement, PairOutcome, Slot};
use assay_model::{SCHEMA_VERSION, Trial};
use assay_report::trial::{self, TrialView};

/// A stored trial, and the results that are computed from its slots.
pub(super) struct Seen {
    trial: Trial,
    slots: Vec<Slot>,
    pairs: Vec<PairOutcome>,
    judgement: Judgement,
    shown: JudgedSlots,
    smallest: Vec<(u32, f64)>,
}

impl Seen {
    pub(super) fn of(trial: Trial, slots: Vec<Slot>) -> Self {
        let (pairs, judgement) = judge_trial(&trial, &slots);
        let smallest = |noise: f64| {
            let told = |pairs| {
                (
                    pairs,
                    forecast::forecast_smallest_effect(noise, pairs).exp_m1(),
                )
            };
            [10, 30, 60].map(told).to_vec()
        };
        Self {
            shown: judge_slots_for_display(&trial, &slots, &pairs),
            smallest: judgement.pair_sd.map(smallest).unwrap_or_default(),
            trial,
            slots,
            pairs,
            judgement,
        }
    }

    fn view(&self) -> TrialView<'_> {
        TrialView {
            trial: &self.trial,
            slots: &self.slots,
            samples: &self.shown.samples,
            pairs: &self.pairs,
            judgement: &self.judgement,
            latency: &self.shown.latency,
            smallest: &self.smallest,
        }
    }
}

/// Prints one trial or a campaign in the requested format. Writes the HTML report if requested.
pub(super) fn print_all(seen: &[Seen], args: &Args, global: &Global) -> anyhow::Result<()> {
    let style = context::style(global);
    let views: Vec<TrialView<'_>> = seen.iter().map(Seen::view).collect();
    args.shape.report(|| match &views[..] {
        [one] => trial::render_trial_page(one),
        several => trial::render_campaign_page(several),
    })?;
    if args.shape.json {
        return match &views[..] {
            [one] => print(&format!("{:#}\n", trial::trial_to_json(one))),
            several => {
                let all: Vec<_> = several.iter().map(trial::trial_to_json).collect();
                print(&format!("{:#}\n", serde_json::Value::from(all)))
            }
        };
    }
    for view in &views {
        print(&match args.shape.markdown {
            true => trial::render_trial_markdown(view),
            false => trial::render_trial_text(view, style),
        })?;
    }
    match &views[..] {
        [] | [_] => Ok(()),
        several => print(&trial::render_campaign(several, style)),
    }
}

/// Shows past trials (`--show`).
pub(super) fn show(args: &Args, asked: &str, global: &Global) -> anyhow::Result<Status> {
    let Some(store) = context::existing_store(global)? else {
        anyhow::bail!("{}", context::nothing_measured(global)?);
    };
    let id = store.resolve_trial(asked)?;
    let (mut seen, first) = (Vec::new(), store.trial(id)?);
    let campaign = first.campaign.clone();
    seen.push(Seen::of(first, store.slots(id)?));
    // Other trials of the campaign, if they exist.
    for uid in &campaign {
        if let Ok(id) = store.resolve_trial(uid) {
            seen.push(Seen::of(store.trial(id)?, store.slots(id)?));
        }
    }
    seen.sort_by_key(|one| one.trial.id);
    print_all(&seen, args, global)?;
    Ok(Status::Ok)
}

/// Lists past trials (`--list`).
pub(super) fn list(args: &Args, global: &Global) -> anyhow::Result<Status> {
    let mut seen = Vec::new();
    if let Some(store) = context::existing_store(global)? {
        for trial in store.trials()? {
            let slots = store.slots(trial.id)?;
            seen.push(Seen::of(trial, slots));
        }
    }
    let views: Vec<TrialView<'_>> = seen.iter().map(Seen::view).collect();
    print(&match args.shape.json {
        true => format!("{:#}\n", trial::trials_to_json(&views)),
        false => trial::render_trial_list(&views, context::style(global)),
    })?;
    Ok(Status::Ok)
}

/// Opens the journal of changes.
pub(in crate::verbs) fn journal() -> anyhow::Result<Journal> {
    Ok(Journal::open(&context::journal_dir()?)?)
}

/// Prints and returns the changes that assay processes with other state directories left.
pub(in crate::verbs) fn left_elsewhere(journal: &Journal) -> anyhow::Result<Vec<Elsewhere>> {
    let left = journal.elsewhere(&LiveHost)?;
    for one in &left {
        let (what, original) = (one.what.escape_debug(), one.original.escape_debug());
        match &one.note {
            None => eprintln!(
                "note: {} was cut off and left {what} changed (it was {original}), with another state directory: \
                 `ASSAY_STATE={} assay trial --recover` reverts it",
                one.label,
                shell_words::quote(&one.state.to_string_lossy()),
            ),
            Some(note) => eprintln!(
                "note: {} was cut off while it worked on {what} (it was {original}), and its journal in {} is gone: \
                 set it as it shall be, then remove {}",
                one.label,
                one.state.display(),
                note.display(),
            ),
        }
    }
    Ok(left)
}

/// Document of `--recover`: changes left by a crash, and their state.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub(in crate::verbs) struct Recovery<'a> {
    schema: u32,
    recovered: Vec<Back<'a>>,
    /// Changes left by processes with other state directories.
    elsewhere: Vec<Other<'a>>,
    /// Changes that another process is reverting at this moment.
    recovering: Vec<Now<'a>>,
    /// Number of running assay processes, whose changes are in use.
    at_work: usize,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Now<'a> {
    session: &'a str,
    target: &'a str,
    /// Id of the process that reverts the change; `None` while it starts.
    pid: Option<u32>,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Back<'a> {
    what: &'a str,
    session: &'a str,
    target: &'a str,
    /// State of the change as text.
    told: String,
    /// Whether the change is still in effect.
    remains: bool,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Other<'a> {
    what: &'a str,
    session: &'a str,
    /// Value before the change.
    was: &'a str,
    /// State directory of the other process.
    state: std::borrow::Cow<'a, str>,
    /// Whether the journal is missing, so that only the user can revert the change.
    journal_gone: bool,
}

/// Reverts changes that a crash left (`--recover`).
pub(super) fn recover(args: &Args) -> anyhow::Result<Status> {
    let foreign = match (args.force, args.accept) {
        (true, _) => Foreign::Restore,
        (_, true) => Foreign::Accept,
        _ => Foreign::Leave,
    };
    let journal = journal()?;
    let recovered = journal.recover(&LiveHost, foreign)?;
    let elsewhere = left_elsewhere(&journal)?;
    let recovering = journal.recovering()?;
    let there = journal.sessions_there()?;
    let is_alive = |number: &&String| journal.is_left(number).is_ok_and(|is_left| !is_left);
    let at_work = there.iter().filter(is_alive).count();
    for one in &recovering {
        eprintln!(
            "{} on {}: another assay{} reverts it now",
            one.label.escape_debug(),
            one.target.escape_debug(),
            one.pid
                .map_or_else(String::new, |pid| format!(" (process {pid})"))
        );
    }
    let remains = |one: &Recovered| {
        let left = matches!(
            one.outcome,
            RecoveryOutcome::LeftAlone {
                accepted: false,
                ..
            }
        );
        let doubtful = matches!(one.outcome, RecoveryOutcome::Doubtful(_)) && !args.accept;
        left || doubtful || matches!(one.outcome, RecoveryOutcome::Failed(_))
    };
    let text: String = match (args.shape.json, recovered.is_empty()) {
        (true, _) => {
            let back = recovered.iter().map(|one| Back {
                what: &one.what,
                session: &one.label,
                target: &one.target,
                told: told(one).trim_end().to_owned(),
                remains: remains(one),
            });
            let other = elsewhere.iter().map(|one| Other {
                what: &one.what,
                session: &one.label,
                was: &one.original,
                state: one.state.to_string_lossy(),
                journal_gone: one.note.is_some(),
            });
            let document = serde_json::json!(Recovery {
                schema: SCHEMA_VERSION,
                recovered: back.collect(),
                elsewhere: other.collect(),
                recovering: recovering
                    .iter()
                    .map(|one| Now {
                        session: &one.label,
                        target: &one.target,
                        pid: one.pid,
                    })
                    .collect(),
                at_work,
            });
            format!("{document:#}\n")
        }
        (false, true) if !elsewhere.is_empty() => "Nothing to revert here.\n".to_owned(),
        (false, true) => "Nothing to revert.\n".to_owned(),
        (false, false) => recovered.iter().map(told).collect(),
    };
    let forgotten = recovered
        .iter()
        .filter(|one| matches!(one.outcome, RecoveryOutcome::Doubtful(_)));
    for one in forgotten.filter(|_| args.accept) {
        eprintln!(
            "{} is forgotten: assay does not revert it",
            one.what.escape_debug()
        );
    }
    print(&text)?;
    match !elsewhere.is_empty() || recovered.iter().any(remains) {
        true => Ok(Status::Findings),
        false => Ok(Status::Ok),
    }
}

/// Describes the state of a change after a crash.
pub(crate) fn told(one: &Recovered) -> String {
    let what = one.what.escape_debug();
    match &one.outcome {
        RecoveryOutcome::Restored(now) => format!("{what}: reverted, reads {now}\n"),
        RecoveryOutcome::Removed => format!("{what}: removed\n"),
        RecoveryOutcome::Gone => {
            format!("{what}: no longer there, so there is nothing to revert\n")
        }
        RecoveryOutcome::Rebooted => {
            format!("{what}: the machine was started again since, so it is gone\n")
        }
        RecoveryOutcome::LeftAlone {
            found,
            original,
            accepted,
        } => format!(
            "{what}: reads {found}, which is not what assay is known to have set, and was {original} before the \
             trial. {}\n",
            match accepted {
                true => "It keeps this value and is forgotten: assay does not revert it.",
                false =>
                    "It was left alone: `assay trial --recover --force` reverts it, --accept keeps it.",
            }
        ),
        RecoveryOutcome::Doubtful(why) => {
            format!("{what}: {why}. `assay trial --recover --accept` forgets it\n")
        }
        RecoveryOutcome::Failed(error) => format!("{what}: could not be reverted: {error}\n"),
    }
}
