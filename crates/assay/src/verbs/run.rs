//! `assay run`: measures targets with a plan or a single workload.

mod share;
mod workload;

#[cfg(feature = "schemas")]
pub(super) use share::ShareDocument;
pub use workload::OneWorkload;

use crate::context::{self, print};
use crate::global::Global;
use crate::input;
use crate::open_changes::Despite;
use crate::pages;
use crate::progress::Meter;
use crate::remote::{NamedFile, Remote, RemoteWork, SentFile, Value};
use crate::status::Status;
use crate::verbs::login;
use anyhow::{Context as _, bail};
use assay_measure::runner::{Begin, Permission};
use assay_model::criterion::Criterion;
use assay_model::plan::{BUILTIN, PlanSpec, Settings, builtin_plan};
use assay_model::run::{RunId, RunState};
use assay_model::target::is_url;
use assay_model::workload::Engine;
use assay_model::{Bytes, Nanos, Run, Sample};
use assay_store::Store;
use std::path::{Path, PathBuf};
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  assay run quick .                         what this directory's storage does, in a minute
  assay run sync /srv --want 'randwrite-4k-qd1-dsync.p99 <= 5ms'
                                            exit status 1 when a commit takes longer
  assay run matrix /tank/vm --html m.html   block size × queue depth, with a report
  assay run /srv --rw randread --bs 8k --iodepth 32
                                            one workload
  assay run --resume                        continue the interrupted run
  assay run device /dev/sdX --destroy-data  overwrite an empty disk (refused when in use)
  assay run http://127.0.0.1/ --want 'c8.p99 <= 20ms'
                                            a web server (`assay web` finds its capacity)
  assay run smb://nas/data --auth-file FILE
                                            a file share: plain, signed and encrypted
  assay run nfs://nas/srv/data              an export: local disk, link, client; no mount needed
  assay run throughput /mnt/nas             a mounted share: does it fill 1 Gbit/s?
  assay run quick /srv --host root@box      on another machine, over ssh
  assay run quick . --print-plan > my.toml  start a plan of your own
  assay run --plan-file my.toml /srv

Plans:
  quick       what does this storage do, in about a minute?
  matrix      4k, 64k, 1M × queue depth 1, 4, 8, 16 × random, sequential × read, write
  sync        how long until a small write is durable? (the question behind every SLOG)
  device      the four points of a data sheet: 1M and 4k, depth 16, random
  web         95 % reads      database  75 % reads      log  5 % reads
  throughput  can this target fill a 1 Gbit/s link?
  http        a web server by its URL: 1, 8 and 64 connections, and a new one for each request

Exit status: 0 done, 1 a criterion was missed, 2 error, 130 interrupted (what was measured is kept).";

/// Time limit from a signal until assay exits. fio has some seconds to stop. Files that cannot be removed in this time
/// are removed at the next start, so that an unresponsive target does not delay the exit.
const LONGEST_END: Duration = Duration::from_secs(30);

/// Measure a directory, file, device, web server or file share
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// Plan (quick if omitted), then directories, files, devices or URLs
    #[arg(value_name = "PLAN|TARGET", num_args = 0..)]
    words: Vec<String>,

    /// Read the plan from a TOML file
    #[arg(long, value_name = "FILE", conflicts_with = "rw")]
    plan_file: Option<PathBuf>,
    /// Print the complete plan and stop
    #[arg(long)]
    print_plan: bool,
    /// Continue an interrupted run: the newest, or the named one
    #[arg(long, value_name = "RUN", num_args = 0..=1, default_missing_value = "")]
    resume: Option<String>,

    /// Require a figure, such as 'randread-4k-qd1.p99 <= 2ms' (repeatable)
    #[arg(long, value_name = "CRITERION")]
    want: Vec<Criterion>,
    /// Run each workload N times
    #[arg(long, value_name = "N")]
    rounds: Option<u32>,
    /// Reduce the rounds until the run fits into this time
    #[arg(long, value_name = "TIME", conflicts_with = "resume")]
    budget: Option<Nanos>,
    /// Measure each sample for this long
    #[arg(long, value_name = "TIME")]
    runtime: Option<Nanos>,
    /// Run each sample this long before measuring starts
    #[arg(long, value_name = "TIME")]
    ramp: Option<Nanos>,
    /// Set the size of the test file: 1G is 2³⁰ bytes, 1GB is 10⁹
    #[arg(long, value_name = "SIZE")]
    size: Option<Bytes>,
    /// Set the random seed of order, offsets and data
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Read user and password of an smb:// share from FILE (smbclient -A)
    #[arg(long, value_name = "FILE")]
    auth_file: Option<PathBuf>,
    #[command(flatten)]
    one: OneWorkload,

    /// Allow overwriting the files and devices named as targets
    #[arg(long)]
    destroy_data: bool,
    /// With --destroy-data: also overwrite unknown data
    #[arg(long, requires = "destroy_data")]
    destroy_unknown_data: bool,
    /// Print one JSON document on standard output
    #[arg(long)]
    json: bool,
    /// Write an HTML report
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Use this fio instead of the one on PATH
    #[arg(long, value_name = "PROGRAM")]
    fio: Option<PathBuf>,
    #[command(flatten)]
    despite: Despite,
    #[command(flatten)]
    remote: Remote,
    /// No progress on standard error
    #[arg(long, short)]
    quiet: bool,
}

/// Hidden subcommand `assay run login`, the former name of `assay login`.
#[derive(clap::Subcommand)]
enum Action {
    #[command(hide = true)]
    Login(login::Args),
}

/// Runs `assay run`, and returns the exit status.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    if let Some(Action::Login(args)) = &args.action {
        return login::run(args, global);
    }
    if let Some(url) = share::find_share(&args.words)? {
        return share::run(url, args, global);
    }
    anyhow::ensure!(
        args.auth_file.is_none(),
        "--auth-file belongs to a share: assay run smb://SERVER/SHARE --auth-file FILE"
    );
    if args.print_plan {
        return print_plan(args);
    }
    if args.remote.is_meant()? {
        return there(args, global);
    }
    let cancel = context::on_signals_within(LONGEST_END)?;
    let ground = context::MeasurementRegistries::open()?;
    let env = ground.environment(args.fio.as_deref(), &cancel);
    args.despite.check(env.journal)?;
    let mut store = context::open_store(global)?;
    let begin = Begin {
        uid: context::random_uid()?,
        seed: context::random_seed()?,
        permission: Permission {
            destroy_data: args.destroy_data,
            destroy_unknown_data: args.destroy_unknown_data,
        },
    };
    let prepared = match &args.resume {
        None => {
            let (mut spec, targets) = spec_and_targets(args)?;
            let mut prepared =
                assay_measure::runner::prepare(&spec, targets.clone(), &begin, &env)?;
            if let Some(budget) = args.budget {
                let planned = prepared.run.plan.rounds;
                let rounds = rounds_within(budget, prepared.estimate, planned)?;
                if rounds < planned {
                    spec.rounds = Some(rounds);
                    // Only one preparation may hold the run.
                    drop(prepared);
                    prepared = assay_measure::runner::prepare(&spec, targets, &begin, &env)?;
                }
            }
            prepared
        }
        Some(name) => {
            let id = resumable(&store, name)?;
            context::begun_here(&format!("run {id}"), store.machine_of_run(id)?.as_ref())?;
            let (run, samples) = (store.run(id)?, store.samples(id)?);
            assay_measure::runner::prepare_resume(run, &samples, begin.permission, &env)?
        }
    };
    crate::sweep::said(&prepared.swept);
    if !args.quiet {
        introduce(&prepared);
    }
    let mut meter = Meter::new(args.quiet, prepared.estimate);
    let finished = assay_measure::runner::execute(prepared, &env, &mut store, &mut |event| {
        meter.tell(&event);
    })?;
    meter.end();
    for astray in &finished.astray {
        eprintln!("{astray}");
    }

    let run = finished.run;
    let samples = store.samples(run.id)?;
    let met = show(&run, &samples, args, global)?;
    if let Some(error) = finished.stopped {
        return Err(anyhow::Error::new(error).context(format!(
            "the samples measured so far are stored as run {}",
            run.id
        )));
    }
    if run.state == RunState::Interrupted {
        eprintln!(
            "interrupted after {} of {} samples; `assay run --resume {}` goes on",
            samples.len(),
            run.plan.order.len(),
            run.id
        );
        return Ok(Status::Interrupted);
    }
    match met {
        true => Ok(Status::Ok),
        false => Ok(Status::Findings),
    }
}

/// Measures on another machine, and stores the run locally.
fn there(args: &Args, global: &Global) -> anyhow::Result<Status> {
    let mut asked = RemoteWork {
        cut: vec![
            ("--html", Value::One),
            ("--json", Value::None),
            ("--resume", Value::Optional),
        ],
        quiet: args.quiet,
        ..RemoteWork::default()
    };
    if let Some(path) = &args.plan_file {
        asked.files.push(SentFile {
            named: NamedFile::Option("--plan-file", ""),
            path: path.clone(),
            content: input::bytes(path, LONGEST_PLAN, "a plan in TOML")?,
        });
    }
    if let Some(name) = &args.resume {
        anyhow::ensure!(
            !name.is_empty(),
            "name the run to continue there: --resume RUN; `assay report runs` lists all"
        );
        let store = context::open_store(global)?;
        let id = store.resolve(name)?;
        let run = store.run(id)?;
        asked.more.push(format!("--resume={}", run.uid).into());
        asked.records.machine = store.machine_of_run(id)?;
        asked.records.runs.push((run, store.samples(id)?));
    }
    let done = args
        .remote
        .go(args.quiet, |way| way.carry(&asked, global))?;
    let mut met = true;
    for (run, samples) in &done.records.runs {
        met &= show(run, samples, args, global)?;
    }
    Ok(match (done.status(), met) {
        (Status::Ok, false) => Status::Findings,
        (status, _) => status,
    })
}

/// Prints a run in the requested format. Returns whether the run meets its criteria.
fn show(run: &Run, samples: &[Sample], args: &Args, global: &Global) -> anyhow::Result<bool> {
    let judged = assay_judge::judge_run(run, samples);
    if let Some(path) = &args.html {
        context::write_report(path, &pages::html(run, &judged, samples, None))?;
    }
    if args.json {
        print(&format!(
            "{:#}\n",
            assay_report::json::run_to_json(run, &judged, samples)
        ))?;
    } else if !samples.is_empty() {
        print(&assay_report::terminal::render_run(
            run,
            &judged,
            context::style(global),
        ))?;
    }
    Ok(judged.criteria.iter().all(|criterion| criterion.met))
}

/// Returns the maximum number of rounds that fit into a budget.
///
/// # Errors
/// The budget is too short for one round.
pub(super) fn rounds_within(budget: Nanos, estimate: Nanos, planned: u32) -> anyhow::Result<u32> {
    let one = estimate.0 / u64::from(planned.max(1));
    let fit = budget.0.checked_div(one).map_or(planned, |fit| {
        u32::try_from(fit).unwrap_or(planned).min(planned)
    });
    anyhow::ensure!(
        fit > 0,
        "cannot measure within --budget {budget}: one round takes about {}. Allow more time, or measure less with \
         --runtime or a smaller plan.",
        Nanos(one)
    );
    Ok(fit)
}

/// Prints the plan of the run before it starts.
fn introduce(prepared: &assay_measure::runner::PreparedRun) {
    let run = &prepared.run;
    for remark in &run.remarks {
        eprintln!("note: {remark}");
    }
    let targets: Vec<String> = run
        .targets
        .iter()
        .map(|target| target.name.escape_debug().to_string())
        .collect();
    let file = match run.plan.needs_file() {
        true => format!(", test file {}", run.plan.file_size),
        false => String::new(),
    };
    eprintln!(
        "{}: {} samples on {}{file}",
        run.plan.name,
        prepared.todo.len(),
        targets.join(", "),
    );
}

/// Returns the run to continue: the run with this name, else the newest incomplete run.
fn resumable(store: &Store, name: &str) -> anyhow::Result<RunId> {
    if !name.is_empty() {
        return Ok(store.resolve(name)?);
    }
    for row in store.runs()? {
        let open = row.state != RunState::Complete && row.samples < row.planned;
        let here = context::begun_here("it", row.machine.as_ref()).is_ok();
        // The temporary layers of a stack are gone.
        if open && here && store.run(row.id)?.ladder.is_none() {
            return Ok(row.id);
        }
    }
    bail!("nothing to resume: no run was interrupted; `assay report runs` lists all")
}

/// Returns the plan and the targets that the command line describes.
fn spec_and_targets(args: &Args) -> anyhow::Result<(PlanSpec, Vec<String>)> {
    let mut targets = args.words.clone();
    let another = args.plan_file.is_some() || args.one.plan().is_some();
    if let Some(word) = targets.first().filter(|word| another && is_plan(word)) {
        bail!(
            "two plans are given: `{word}`, and --plan-file or a workload of your own. Leave one out (a directory \
             of that name is `./{word}`)."
        );
    }
    let mut spec = if let Some(path) = &args.plan_file {
        read_plan(path)?
    } else if let Some(one) = args.one.plan() {
        one
    } else {
        let named = targets.first().and_then(|word| builtin_plan(word));
        match named {
            Some(spec) => {
                targets.remove(0);
                spec
            }
            None => {
                if let Some(word) = targets.first() {
                    plan_or_target(word)?;
                }
                let plan = match targets.first().is_some_and(|word| is_url(word)) {
                    true => "http",
                    false => "quick",
                };
                builtin_plan(plan)
                    .with_context(|| format!("the built-in plan `{plan}` is missing"))?
            }
        }
    };
    spec.want.extend(args.want.iter().cloned());
    spec.rounds = args.rounds.or(spec.rounds);
    spec.file_size = args.size.or(spec.file_size);
    spec.seed = args.seed.or(spec.seed);
    set_times(&mut spec, args.runtime, args.ramp);
    for target in targets.iter_mut().chain(&mut spec.targets) {
        *target = absolute(target);
    }
    for criterion in &mut spec.want {
        criterion.target = criterion.target.as_deref().map(absolute);
    }
    Ok((spec, targets))
}

/// Sets the measuring time and the ramp-up time from the command line for all workloads.
pub(super) fn set_times(spec: &mut PlanSpec, runtime: Option<Nanos>, ramp: Option<Nanos>) {
    spec.runtime = runtime.or(spec.runtime);
    spec.ramp = ramp.or(spec.ramp);
    for workload in &mut spec.workloads {
        workload.runtime = runtime.or(workload.runtime);
        workload.ramp = ramp.or(workload.ramp);
    }
}

/// Returns the absolute path of a target. A relative path such as `.` would have no meaning in a stored run.
fn absolute(target: &str) -> String {
    if is_url(target) {
        return target.to_owned();
    }
    let path = std::path::absolute(target).ok();
    path.and_then(|path| path.into_os_string().into_string().ok())
        .unwrap_or_else(|| target.to_owned())
}

fn is_plan(word: &str) -> bool {
    BUILTIN.iter().any(|(name, _)| *name == word)
}

/// Fails if the first argument is neither a plan nor a path. It is then most likely a misspelt plan.
fn plan_or_target(word: &str) -> anyhow::Result<()> {
    if word.contains('/') || Path::new(word).exists() {
        return Ok(());
    }
    let names = BUILTIN.iter().map(|(name, _)| *name);
    let near = names
        .clone()
        .min_by_key(|name| strsim::damerau_levenshtein(name, word));
    match near.filter(|name| strsim::damerau_levenshtein(name, word) <= 2) {
        Some(name) => bail!(
            "`{word}` is neither a plan nor a file or directory: did you mean the plan `{name}`?"
        ),
        None => bail!(
            "`{word}` is neither a file or directory nor a plan; plans are {}",
            names.collect::<Vec<_>>().join(", ")
        ),
    }
}

/// Maximum size of a plan in bytes: 10,000 workloads with all fields take about 3 MB.
pub(super) const LONGEST_PLAN: u64 = 16 << 20;

pub(super) fn read_plan(path: &Path) -> anyhow::Result<PlanSpec> {
    let text = input::text(path, LONGEST_PLAN, "a plan in TOML")?;
    Ok(PlanSpec::from_toml(&text, &path.display().to_string())?)
}

fn print_plan(args: &Args) -> anyhow::Result<Status> {
    let (spec, targets) = spec_and_targets(args)?;
    // The engine is selected when the plan is executed; the printed file contains `auto`.
    let settings = Settings {
        targets,
        engine: Engine::Auto,
        seed: context::random_seed()?,
    };
    print(&spec.resolve(&settings)?.to_toml())?;
    Ok(Status::Ok)
}
