//! Starts a session: converts the command line to a plan, shows the plan, asks the user, and runs the session.

use super::super::advice::catalogue;
use super::super::trial::past_trials;
use super::earlier::Earlier;
use super::local_server::LocalServer;
use super::private_words::{read_guard_command, withhold_in_load, withhold_in_target};
use super::{Args, goal, past_sessions, session_run};
use crate::context::{self, print};
use crate::global::Global;
use crate::status::Status;
use anyhow::Context as _;
use assay_host::{Host as _, LiveHost};
use assay_measure::engine::Environment;
use assay_measure::runner::OpenTarget;
use assay_measure::tuning::{
    CandidateRequest, FoundCandidate, TuneCommands, find_candidates, join_arms,
};
use assay_model::secrets::withhold_in_words;
use assay_model::target::is_url;
use assay_model::{Advice, Load, Nanos, TargetInfo};
use assay_report::tune::render_tune_preview;
use assay_tune::{
    Costs, Goal, KeptState, LEAST_CANDIDATES, LoadShape, Row, TuneId, TunePlan, TuneRecord,
    TuneState,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const SECOND: u64 = 1_000_000_000;
/// Remark of a session that compares objects.
const OBJECTS_REMARK: &str = "The session compared objects that assay created. Nothing was kept; the page of each \
    advice says how the change is made.";
/// Maximum time between two checks whether the goal is met. In a short session, the time is shorter.
const BETWEEN_VISITS: Nanos = Nanos(300 * SECOND);

/// Starts a session from the command line.
pub(super) fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    let cancel = context::on_signals()?;
    let ground = context::MeasurementRegistries::open()?;
    let env = ground.environment(args.fio.as_deref(), &cancel);
    past_trials::left_elsewhere(env.journal)?;
    if !args.dry_run {
        args.despite.check(env.journal)?;
    }
    let goal = goal::read_goal(args)?;
    let load = goal::read_load(args, &goal)?;
    let target = match (&args.target, &args.page_load) {
        // The page says whether its target is a path.
        (Some(target), Some(_)) => Some(target.clone()),
        (target, _) => target.as_deref().map(absolute_target).transpose()?,
    };
    let place = session_run::open_place(target.as_deref().unwrap_or_default(), &load, &env)?;
    let commands = TuneCommands {
        guard: read_guard_command(args)?,
        load,
    };
    let record = settle(args, goal, &commands, target, place.as_ref(), &env, global)?;
    let checked = record.plan.clone().check();
    if args.dry_run {
        let preview = match args.shape.json {
            true => past_sessions::document(TuneId(0), &record)?,
            false => render_tune_preview(&record, context::style(global)),
        };
        print(&preview)?;
        checked?;
        return Ok(Status::Ok);
    }
    checked?;
    let (order, _) = record.plan.diagnose(0);
    if (!order.is_empty() || args.goal.is_some()) && !args.yes {
        let text = render_tune_preview(&record, context::error_style(global));
        eprint!("{text}");
        if !session_run::agreed()? {
            eprintln!("nothing was changed");
            return Ok(Status::Ok);
        }
    }
    session_run::carry_out(record, &commands, place.as_ref(), args, global, &env)
}

/// Returns the absolute path of a target. A relative path such as `.` would have no meaning in a stored session.
fn absolute_target(target: &str) -> anyhow::Result<String> {
    if is_url(target) {
        return Ok(target.to_owned());
    }
    let path = std::path::absolute(target).with_context(|| format!("cannot use {target}"))?;
    let name = path.into_os_string().into_string();
    name.ok()
        .context("the path of the target is not valid UTF-8; use a symlink with a UTF-8 name")
}

/// Determines the complete plan of the session before its first step.
fn settle(
    args: &Args,
    goal: Goal,
    commands: &TuneCommands,
    target: Option<String>,
    place: Option<&OpenTarget>,
    env: &Environment<'_>,
    global: &Global,
) -> anyhow::Result<TuneRecord> {
    let load = withhold_in_load(&commands.load);
    let target = target.as_deref().map(withhold_in_target);
    let info = place.map(|place| place.info().clone());
    let infos: Vec<TargetInfo> = info.iter().cloned().collect();
    let paths: Vec<PathBuf> = infos.iter().map(|info| PathBuf::from(&info.name)).collect();
    let mut facts = assay_facts::survey(env.host, &paths).about(&infos);
    env.enter_open_changes(&mut facts);
    let catalogue = catalogue(&args.own)?;
    let own = own_pages(args)?;
    let pages = choose_pages(args, catalogue.all(), &own)?;
    let server = match &commands.load {
        Load::Http(http) => LocalServer::find(&http.url),
        _ => None,
    };
    let mut given: BTreeMap<String, String> = args.set.iter().cloned().collect();
    let for_all = given.keys().find(|name| !name.contains('.'));
    if let (Some(name), true) = (for_all, args.only.is_empty()) {
        anyhow::bail!(
            "--set {name}=… would go to every page that has a `{name}`, whatever it is about: write \
             --set ADVICE.{name}=…, or name the pages with --only"
        );
    }
    if let Some(server) = &server {
        server.enter_config(&pages, &mut given);
    }
    for page in &pages {
        let name_of = |name: &str| format!("{}.{name}", page.id);
        crate::postgresql_cluster::enter_cluster(env.host, page, &mut given, name_of);
    }
    let request = CandidateRequest {
        pages: &pages,
        given: &given,
        target: target.as_deref(),
        info: info.as_ref(),
        facts: &facts,
        objects: !args.only.is_empty(),
    };
    let mut found = find_candidates(request, env.host);
    if let Some(server) = &server {
        server.leave_out_others(&mut found);
    }
    // Who names pages wants them measured again.
    if args.only.is_empty() {
        let earlier = Earlier {
            load: &load,
            target: target.as_deref().unwrap_or_default(),
            facts: &facts,
        };
        earlier.enter_verdicts(&mut found, global)?;
    }
    let slot = args.slot.unwrap_or(match load {
        // Restless machines change within seconds: many short slots show more than a few long ones.
        Load::Command { .. } => Nanos(SECOND * 2 / 5),
        _ => Nanos(4 * SECOND),
    });
    let washout = args.washout.unwrap_or(match load {
        Load::Command { .. } => Nanos(0),
        _ => Nanos(SECOND),
    });
    let seed = match args.seed {
        Some(seed) => seed,
        None => context::random_seed()?,
    };
    let guard_command = commands.guard.as_deref().map(withhold_in_words);
    let arms = join_arms(&found);
    let remarks = match &arms {
        Some(_) => vec![OBJECTS_REMARK.to_owned()],
        None => Vec::new(),
    };
    let (candidates, changes) = found
        .into_iter()
        .map(|one: FoundCandidate| (one.candidate, one.change))
        .unzip();
    let mut plan = TunePlan {
        goal,
        candidates,
        allowed: goal::read_allowed(args)?,
        load: LoadShape::of(&load),
        limit: None,
        bottom: None,
        diagnose: true,
        anyway: args.anyway,
        costs: estimate_costs(&load, slot, washout),
        budget: args.budget(),
        between_visits: BETWEEN_VISITS.min(Nanos(args.budget().0 / 20)),
        together: args.whole,
        // Objects that assay creates show what helps; they are not the user's.
        keep_nothing: args.keep_nothing || arms.is_some(),
        // Each comparison creates its objects, so that nothing stays in effect.
        hold: match arms {
            Some(_) => Nanos(0),
            None => TunePlan::usual_hold(args.budget()),
        },
        screen: true,
        seed,
    };
    // With few candidates each is proved at once; one that is given up is tried again only if its pairs were noisy.
    plan.screen = !args.whole && plan.diagnose(0).0.len() >= LEAST_CANDIDATES;
    Ok(TuneRecord {
        uid: context::random_uid()?,
        assay_version: env.version.to_owned(),
        command: command_line(args),
        started: (env.now)(),
        ended: None,
        state: TuneState::Running,
        target: target.unwrap_or_default(),
        target_info: info,
        facts,
        load,
        slot,
        washout,
        guard_command,
        plan,
        changes,
        arms,
        seen: Vec::new(),
        incident: None,
        error: None,
        journal: None,
        kept: KeptState::Nothing,
        undone: Row::new(),
        remarks,
    })
}

/// Returns the arguments to store: with the answers of the interview, but without options for the output and without
/// secrets.
fn command_line(args: &Args) -> Vec<String> {
    let words = std::env::args_os().skip(1);
    let text = words.map(|word| word.to_string_lossy().into_owned());
    let form = ["--json", "--markdown", "--quiet", "-q", "--yes", "-y"];
    let given = text.filter(|word| !form.contains(&word.as_str()));
    let words: Vec<String> = given.chain(args.asked.iter().cloned()).collect();
    // A command of --load is one word.
    withhold_in_words(&words)
}

/// Estimates the duration of each kind of step, for the time before any step was measured.
fn estimate_costs(load: &Load, slot: Nanos, washout: Nanos) -> Costs {
    let ms = |n: u64| Nanos(n * 1_000_000);
    match load {
        Load::Fio { size, .. } => {
            let size = size.map_or(0, |size| size.0);
            Costs {
                slot,
                washout,
                start: ms(500),
                // 150 MB/s: a single hard disk.
                set_up: Nanos(2 * SECOND + size.saturating_mul(7)),
                set_back: Nanos(3 * SECOND),
            }
        }
        _ => Costs {
            slot,
            washout,
            start: ms(50),
            set_up: ms(500),
            set_back: Nanos(SECOND),
        },
    }
}

/// Reads the pages in `--only` that are files of the user.
fn own_pages(args: &Args) -> anyhow::Result<Vec<Advice>> {
    let is_file = |word: &&String| Path::new(word).extension().is_some_and(|e| e == "md");
    let read = |word: &String| -> anyhow::Result<Advice> {
        let absolute = std::path::absolute(word)?;
        let text = LiveHost.read_text(&absolute)?;
        let name = absolute.to_string_lossy();
        Ok(assay_advice::page::parse_own(&name, &text)?)
    };
    args.only.iter().filter(is_file).map(read).collect()
}

/// Returns the pages to try: all pages, or those of `--only`.
fn choose_pages<'a>(
    args: &Args,
    all: Vec<&'a Advice>,
    own: &'a [Advice],
) -> anyhow::Result<Vec<&'a Advice>> {
    if args.only.is_empty() {
        return Ok(all);
    }
    let mut chosen: Vec<&Advice> = own.iter().collect();
    for word in &args.only {
        if Path::new(word).extension().is_some_and(|e| e == "md") {
            continue;
        }
        let found = all.iter().find(|page| page.id == *word);
        let found = found.with_context(|| {
            format!("there is no advice `{word}`: `assay advice` lists all; a page of your own ends in .md")
        })?;
        anyhow::ensure!(
            found.trial.is_some(),
            "`{word}` cannot be tried: its page has no trial (`assay advice {word}`)"
        );
        chosen.push(found);
    }
    Ok(chosen)
}
