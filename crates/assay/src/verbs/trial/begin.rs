//! Starts or continues trials: converts the command line to plans, shows the plans, asks the user, and runs the trials.

use super::super::advice::catalogue;
use super::super::pool;
use super::carry::{Begun, carry_out};
use super::{Args, pages_together, past_trials};
use crate::context::{self, print};
use crate::global::Global;
use crate::status::Status;
use anyhow::bail;
use assay_advice::Applicability;
use assay_changes::{Journal, Switch};
use assay_host::{Host as _, LiveHost};
use assay_judge::trial::second_session::{self, SessionAgreement};
use assay_judge::trial::{find_next_look, judge_trial};
use assay_measure::runner::OpenTarget;
use assay_measure::trials::{Candidate, Environment, TrialOptions};
use assay_model::change::Change;
use assay_model::trial::{TrialId, TrialPlan, TrialState, Verdict};
use assay_model::{Advice, Nanos, TargetInfo};
use assay_render::Style;
use assay_report::trial::TrialPreview;
use assay_store::Store;
use std::collections::BTreeMap;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

/// Starts or continues the trials of a command line.
pub(super) fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    let cancel = context::on_signals()?;
    let ground = context::MeasurementRegistries::open()?;
    let env = ground.environment(args.fio.as_deref(), &cancel);
    past_trials::left_elsewhere(env.journal)?;
    if !args.dry_run {
        args.despite.check(env.journal)?;
    }
    if let Some(asked) = &args.resume {
        return resume(args, asked, global, &env);
    }
    if let Some(asked) = &args.confirm {
        return confirm(args, asked, global, &env);
    }
    let (pages, target) = advice_and_target(args)?;
    if pages.len() > 1 {
        let first = choose_first(args, &pages, target.as_deref(), &env)?;
        return pages_together::run(args, &pages, first, global);
    }
    let candidate = settle(args, &pages[0], target.as_deref(), &env)?;
    // A trial that is not applicable has no plan, so this comes first.
    if !does_apply(&candidate) {
        return Ok(Status::Findings);
    }
    let now = current(&candidate.plan, env.journal)?;
    if !differs(&candidate, now.as_deref()) {
        return Ok(Status::Findings);
    }
    verdict_is_possible(&candidate.plan, args)?;
    let style = context::style(global);
    let now = now.as_deref();
    if args.dry_run {
        let plan = &candidate.plan;
        let pair = Nanos(plan.longest().0 / u64::from(plan.max_pairs.max(1)));
        // Durations on other machines; their results are no evidence here.
        let elsewhere = pool::length_elsewhere(&plan.advice, pair, global);
        print(&shown(&candidate, now, &elsewhere, Length::Whole, style))?;
        return Ok(Status::Ok);
    }
    if !args.quiet {
        eprint!("{}", shown(&candidate, now, &[], Length::Brief, style));
    }
    if let (true, Some(why)) = (
        args.keep,
        assay_measure::trials::refuses_to_keep(&candidate.plan),
    ) {
        bail!(
            "{} cannot be kept: {why}. Leave out --keep to measure it anyway.",
            candidate.plan.advice
        );
    }
    if !agreed(&candidate.plan, args)? {
        eprintln!("nothing was changed");
        return Ok(Status::Ok);
    }
    let (trial, ground) = candidate.begin(context::random_uid()?, &env);
    let begun = Begun {
        trial,
        slots: Vec::new(),
        ground,
    };
    let mut store = context::open_store(global)?;
    carry_out(begun, args, global, &env, &mut store)
}

/// Returns the store and the id of a trial. Fails if the trial began on another machine.
fn begun_here(asked: &str, global: &Global) -> anyhow::Result<(Store, TrialId)> {
    let store = context::open_store(global)?;
    let id = store.resolve_trial(asked)?;
    let on = store.machine_of_trial(id)?;
    context::begun_here(&format!("trial {id}"), on.as_ref())?;
    Ok((store, id))
}

fn resume(
    args: &Args,
    asked: &str,
    global: &Global,
    env: &Environment<'_>,
) -> anyhow::Result<Status> {
    let (mut store, id) = begun_here(asked, global)?;
    let (mut trial, slots) = (store.trial(id)?, store.slots(id)?);
    if trial.state == TrialState::Complete {
        bail!("nothing to resume: trial {id} has its verdict; `assay trial --show {id}` shows it");
    }
    trial.plan.budget = args.budget;
    trial.remarks.push(format!(
        "resumed at {:.0} after {} slots: the rest was measured later",
        context::now(),
        slots.len()
    ));
    env.enter_open_changes(&mut trial.facts);
    let target = trial.target.as_ref().map(|_| &*trial.plan.target);
    let ground = target.map(|target| OpenTarget::open(env.host, target));
    let ground = ground.transpose()?;
    let begun = Begun {
        trial,
        slots,
        ground,
    };
    carry_out(begun, args, global, env, &mut store)
}

/// Repeats a finished trial in a second session, and reports the combined result of both.
fn confirm(
    args: &Args,
    asked: &str,
    global: &Global,
    env: &Environment<'_>,
) -> anyhow::Result<Status> {
    let (mut store, id) = begun_here(asked, global)?;
    let first = store.trial(id)?;
    let (_, judged) = judge_trial(&first, &store.slots(id)?);
    if judged.verdict == Verdict::Undecided {
        bail!(
            "cannot confirm trial {id}: it has no verdict yet; `assay trial --resume {id}` continues it"
        );
    }
    let seed = match args.seed {
        Some(seed) => seed,
        None => context::random_seed()?,
    };
    let plan = assay_measure::trials::plan_again(&first.plan, seed, args.budget);
    let now = current(&plan, env.journal)?;
    if let Some(now) = same_already(&plan, now.as_deref()) {
        bail!(
            "the setting is {} already, so baseline and change would be the same: revert it first",
            now.escape_debug()
        );
    }
    verdict_is_possible(&plan, args)?;
    if !agreed(&plan, args)? {
        eprintln!("nothing was changed");
        return Ok(Status::Ok);
    }
    let target = first.target.as_ref().map(|_| &*plan.target);
    let ground = target
        .map(|target| OpenTarget::open(env.host, target))
        .transpose()?;
    let info = ground.as_ref().map(|ground| ground.info().clone());
    let infos: Vec<TargetInfo> = info.iter().cloned().collect();
    let paths: Vec<PathBuf> = infos.iter().map(|info| PathBuf::from(&info.name)).collect();
    let facts = assay_facts::survey(env.host, &paths).about(&infos);
    let alpha = (first.plan.alpha, plan.alpha);
    let uid = context::random_uid()?;
    let trial = assay_measure::trials::new_trial(plan, uid.clone(), info, facts, env);
    let begun = Begun {
        trial,
        slots: Vec::new(),
        ground,
    };
    let status = carry_out(begun, args, global, env, &mut store)?;
    if status == Status::Interrupted {
        return Ok(status);
    }
    let again = store.resolve_trial(&uid)?;
    let mut second = store.trial(again)?;
    let (_, judged_again) = judge_trial(&second, &store.slots(again)?);
    let said = second_session::describe_both_sessions(&judged, &judged_again, alpha);
    second
        .remarks
        .push(format!("second session of trial {id}: {said}"));
    store.update_trial(&second)?;
    match args.shape.json {
        true => eprintln!("{said}"),
        false => print(&format!("\n{}\n", context::wrap(&said, 0)))?,
    }
    Ok(
        match second_session::combine_verdicts(judged.verdict, judged_again.verdict) {
            SessionAgreement::Confirmed(_) => Status::Ok,
            SessionAgreement::Contradicted | SessionAgreement::Open => Status::Findings,
        },
    )
}

/// Returns the trial of a page. All its options and parameters have values.
fn settle(
    args: &Args,
    page: &Advice,
    target: Option<&str>,
    env: &Environment<'_>,
) -> anyhow::Result<Candidate> {
    let seed = match args.seed {
        Some(seed) => seed,
        None => context::random_seed()?,
    };
    let mut given: BTreeMap<String, String> = args.set.iter().cloned().collect();
    if args.words.len() > 2 {
        // With several pages, a value applies to the pages with this parameter.
        given.retain(|name, _| page.parameters.contains_key(name));
    }
    crate::postgresql_cluster::enter_cluster(env.host, page, &mut given, str::to_owned);
    let options = TrialOptions {
        margin: args.margin,
        guards: args.guard.clone(),
        slot: args.slot,
        washout: args.washout,
        size: args.size,
        max_pairs: args.pairs,
        budget: args.budget,
        aa: args.aa,
        alpha: assay_judge::trial::ALPHA,
        seed,
    };
    Ok(Candidate::new(page, &given, target, &options, env)?)
}

/// Returns the trial of the first page that would change a setting on this target. Its load is used for all pages.
fn choose_first(
    args: &Args,
    pages: &[Advice],
    target: Option<&str>,
    env: &Environment<'_>,
) -> anyhow::Result<Candidate> {
    let mut reasons = Vec::new();
    for page in pages {
        match settle(args, page, target, env) {
            Ok(one) if matches!(one.plan.change, Change::Set { .. }) => return Ok(one),
            Ok(_) => reasons.push(format!(
                "{} compares two things that assay creates: `assay trial {}` tries it alone",
                page.id, page.id
            )),
            Err(error) => reasons.push(format!("{}: {error:#}", page.id)),
        }
    }
    bail!(
        "none of these pages changes a setting that can be tried together with others.\n{}",
        reasons.join("\n")
    )
}

/// Splits the arguments into pages of advice and the target.
fn advice_and_target(args: &Args) -> anyhow::Result<(Vec<Advice>, Option<String>)> {
    let catalogue = catalogue(&args.own)?;
    let (mut advice, mut target) = (Vec::new(), None);
    let last = args.words.len().saturating_sub(1);
    for (index, word) in args.words.iter().enumerate() {
        if Path::new(word).extension().is_some_and(|e| e == "md") {
            advice.push(own_page(word)?);
            continue;
        }
        match catalogue.get(word) {
            Ok(found) => advice.push(found.clone()),
            Err(_) if index == last && index > 0 => target = Some(word.clone()),
            Err(error) => return Err(error.into()),
        }
    }
    match advice.is_empty() {
        true => bail!(
            "name the advice and the target, such as `assay trial qcow2-cluster-size .`; `assay advice` lists all \
             advice"
        ),
        false => Ok((advice, target)),
    }
}

fn own_page(path: &str) -> anyhow::Result<Advice> {
    let absolute = std::path::absolute(path)?;
    let text = LiveHost.read_text(&absolute)?;
    Ok(assay_advice::page::parse_own(
        &absolute.to_string_lossy(),
        &text,
    )?)
}

/// Formats the plan for the terminal, either completely or in a short form.
fn shown(
    candidate: &Candidate,
    now: Option<&str>,
    forecast: &[String],
    length: Length,
    style: Style,
) -> String {
    let plan = &candidate.plan;
    let mut applies = Vec::new();
    if let Applicability::Unknown { missing, .. } = &candidate.applies {
        applies.extend(
            missing
                .iter()
                .map(|one| format!("not known: {} ({})", one.key, one.why)),
        );
    }
    applies.extend(
        candidate
            .applies
            .evidence()
            .iter()
            .map(|one| format!("{} is {} ({})", one.key, plain(&one.value), one.place)),
    );
    let before = TrialPreview {
        now,
        applies: &applies,
        forecast,
        least_pairs: find_next_look(plan.max_pairs, 0).unwrap_or(1),
    };
    match length {
        Length::Whole => assay_report::trial::render_plan(plan, &before, style),
        Length::Brief => assay_report::trial::render_brief_plan(plan, &before, style),
    }
}

/// How detailed the printed plan is.
#[derive(Clone, Copy)]
enum Length {
    /// At most one screen; printed before the trial begins.
    Brief,
    /// All details of the plan.
    Whole,
}

/// Returns whether the change would have an effect. If not, prints that A and B would be the same.
fn differs(candidate: &Candidate, now: Option<&str>) -> bool {
    let same = same_already(&candidate.plan, now);
    if let Some(now) = same {
        eprintln!(
            "{} does not apply here: it is {} already, so A and B would be the same",
            candidate.plan.advice,
            now.escape_debug()
        );
    }
    same.is_none()
}

/// Returns the current value of the setting if it already is the value of the change. A and B would then be the same.
fn same_already<'a>(plan: &TrialPlan, now: Option<&'a str>) -> Option<&'a str> {
    let Change::Set { value, .. } = &plan.change else {
        return None;
    };
    now.filter(|now| value.as_deref() == Some(*now) && !plan.aa)
}

/// Fails if `--budget` allows fewer pairs than any verdict needs.
fn verdict_is_possible(plan: &TrialPlan, args: &Args) -> anyhow::Result<()> {
    let Some(needed) = assay_measure::trials::too_small(plan, args.pairs) else {
        return Ok(());
    };
    bail!(
        "{}: no verdict is possible in --budget {}: too few pairs fit to tell a difference from chance. Allow \
         {needed} or more, or shorten --slot or --washout.",
        plan.advice,
        plan.budget.unwrap_or_default()
    )
}

fn plain(value: &serde_json::Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => value.to_string(),
    }
}

/// Returns the current value of the setting. Fails if the setting cannot be changed, so that this is known before the
/// trial begins.
fn current(plan: &TrialPlan, journal: &Journal) -> anyhow::Result<Option<String>> {
    let Change::Set { setting, .. } = &plan.change else {
        return Ok(None);
    };
    let session = journal.begin("a look", &format!("look by {}", std::process::id()))?;
    let switch = Switch::open(&session, &LiveHost, setting)?;
    Ok(Some(switch.read()?))
}

/// Returns whether the advice applies. If not, prints the reasons.
fn does_apply(candidate: &Candidate) -> bool {
    let Applicability::Not { reasons, .. } = &candidate.applies else {
        return true;
    };
    for reason in reasons {
        let seen: Vec<String> = reason
            .evidence
            .iter()
            .map(|one| format!("{} is {} ({})", one.key, plain(&one.value), one.place))
            .chain(reason.absent.iter().map(|key| format!("there is no {key}")))
            .collect();
        eprintln!(
            "{} does not apply here: {} [{}]",
            candidate.plan.advice,
            reason.otherwise,
            seen.join("; ")
        );
    }
    false
}

/// Asks whether to start if the trial changes a setting of the machine. Changes of temporary objects need no
/// confirmation.
fn agreed(plan: &TrialPlan, args: &Args) -> anyhow::Result<bool> {
    let touches = matches!(plan.change, Change::Set { .. }) && !plan.aa;
    if args.yes || !touches {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        bail!(
            "cannot ask before changing a setting for the time of the trial: there is no terminal. Use --yes, or \
             --dry-run to see the change."
        );
    }
    asks("Begin?")
}

/// Asks a yes-or-no question on the terminal.
pub(in crate::verbs) fn asks(question: &str) -> anyhow::Result<bool> {
    eprint!("{question} [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
