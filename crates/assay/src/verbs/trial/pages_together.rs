//! `assay trial A B C TARGET`: tries several pages in one tuning session, with one load and one budget. One command
//! reverts everything that the session kept.

use super::Args;
use crate::global::Global;
use crate::status::Status;
use crate::verbs::tune::{PagesRequest, run_pages};
use anyhow::ensure;
use assay_measure::trials::Candidate;
use assay_model::Advice;
use assay_model::advice::RiskLevel;

/// Runs the session. `first` is the first page that applies to the target. Its load is used for all pages.
pub(super) fn run(
    args: &Args,
    pages: &[Advice],
    first: Candidate,
    global: &Global,
) -> anyhow::Result<Status> {
    for (is_given, option) in [
        (args.aa, "--aa"),
        (args.pairs.is_some(), "--pairs"),
        (args.despite_worse, "--despite-worse"),
    ] {
        ensure!(!is_given, "{option} works with one page of advice");
    }
    let plan = first.plan;
    if !args.quiet {
        eprintln!(
            "{} pages under the load of {} ({}): one session, as `assay tune` runs it",
            pages.len(),
            plan.advice,
            plan.load.describe()
        );
    }
    // Files of the user's own pages stay as they were named.
    let target_words = args.words.len() - pages.len();
    let words = args.words[..args.words.len() - target_words].to_vec();
    let risk = pages.iter().map(|page| page.risk.level).max();
    let request = PagesRequest {
        pages: words,
        target: plan.target,
        load: plan.load,
        metric: plan.metric,
        guards: plan.guards,
        margin: plan.margin,
        risk: risk.unwrap_or(RiskLevel::Low),
        budget: args.budget,
        slot: plan.slot,
        washout: plan.washout,
        set: args.set.clone(),
        seed: args.seed,
        keep: args.keep,
        dry_run: args.dry_run,
        yes: args.yes,
        quiet: args.quiet,
        fio: args.fio.clone(),
        shape: args.shape.clone(),
        own: args.own.clone(),
        despite: args.despite,
    };
    run_pages(request, global)
}
