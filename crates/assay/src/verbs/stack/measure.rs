//! `assay stack TARGET --measure`: the same workload at every layer, and what each of them costs.

use crate::cli::{Global, Status};
use crate::context::{self, print};
use crate::pages;
use crate::progress::{Meter, whole};
use crate::verbs::lab::AccelArg;
use crate::verbs::run::{OneWorkload, progress::swept, read_plan, set_times};
use crate::verbs::trial::{journal, told};
use anyhow::{Context as _, bail};
use assay_changes::{Foreign, Journal};
use assay_host::Live;
use assay_instruments::scratch::{self, State};
use assay_lab::{Cache, Disk};
use assay_model::ladder::RungPlace;
use assay_model::plan::{PlanSpec, builtin};
use assay_model::run::{Run, RunState};
use assay_model::{Bytes, Nanos, Sample};
use assay_report::waterfall::{self, View};
use assay_stack::measure::{
    DEFAULT_PLAN, Environment, Event, Lab, Part, Prepared, Wanted, execute, prepare,
};
use std::collections::BTreeSet;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

pub(super) const EXAMPLES: &str = "\
Measure what each layer costs:
  assay stack /srv/images --measure         file, image, guest disk, LUKS, LVM, file systems
  assay stack /srv/images --measure --dry-run
                                            what would be made, how large, how long
  assay stack . --measure --layers image --yes
                                            raw and qcow2 without a guest, in some minutes
  assay stack . --measure --layers guest,luks,xfs --disk cache=writeback,bus=virtio-scsi,iothread
  assay stack . --measure --rw randwrite --bs 16k --sync fdatasync --rounds 10
  assay stack --show last --html stack.html

All that is measured is made for it by assay, in TARGET, and removed afterwards, also after Ctrl-C.
Rungs in a guest need the image of `assay lab build`; without it they are left out.

Exit status: 0 done, 2 error or no such target, 3 the machine cannot be read, 130 interrupted (what
was measured is kept).";

/// Over the options of `--measure`.
const HEADING: &str = "What each layer costs";

/// Options of `--measure`.
#[derive(clap::Args)]
pub struct Measure {
    /// Measure the same workload at every layer, on things that assay makes in TARGET and removes
    #[arg(long, help_heading = HEADING, requires = "target")]
    measure: bool,
    /// Show what was measured, judged by today's rules: the newest, or the run that is named
    #[arg(long, help_heading = HEADING, value_name = "RUN", num_args = 0..=1, default_missing_value = "", conflicts_with_all = ["measure", "target"])]
    show: Option<String>,
    /// Layers: image, guest, luks, lvm, ext4, xfs, btrfs [default: all]
    #[arg(long, help_heading = HEADING,
        value_name = "LAYER,…",
        value_delimiter = ',',
        requires = "measure"
    )]
    layers: Vec<Part>,
    /// The image and the virtual disk, as in `assay lab up --disk`, without a size
    #[arg(long, help_heading = HEADING,
        value_name = "OPTION,…",
        default_value = "format=qcow2,cache=none",
        requires = "measure"
    )]
    disk: String,
    /// A built-in plan of `assay run` [default: random read, durable random write, sequential read]
    #[arg(long, help_heading = HEADING, value_name = "NAME", requires = "measure", conflicts_with_all = ["rw", "plan_file"])]
    plan: Option<String>,
    /// Read the plan from a TOML file
    #[arg(long, help_heading = HEADING, value_name = "FILE", requires = "measure", conflicts_with = "rw")]
    plan_file: Option<PathBuf>,
    /// How often each rung is measured [default: 6]
    #[arg(long, help_heading = HEADING, value_name = "N", requires = "measure")]
    rounds: Option<u32>,
    /// Measured time of each sample [default: 2s]
    #[arg(long, help_heading = HEADING, value_name = "TIME", requires = "measure")]
    runtime: Option<Nanos>,
    /// Time before measuring starts, in each sample [default: 500ms]
    #[arg(long, help_heading = HEADING, value_name = "TIME", requires = "measure")]
    ramp: Option<Nanos>,
    /// Size of the test file on every rung [default: 256M]
    #[arg(long, help_heading = HEADING, value_name = "SIZE", requires = "measure")]
    size: Option<Bytes>,
    /// Seed of the order, the offsets and the data
    #[arg(long, help_heading = HEADING, value_name = "N", requires = "measure")]
    seed: Option<u64>,
    /// Memory of the guest
    #[arg(long, help_heading = HEADING, value_name = "SIZE", default_value = "1G", requires = "measure")]
    memory: Bytes,
    /// kvm or tcg; found out when left out
    #[arg(long, help_heading = HEADING,
        value_name = "HOW",
        value_enum,
        hide_possible_values = true,
        requires = "measure"
    )]
    accel: Option<AccelArg>,
    /// Show what would be made, and stop
    #[arg(long, help_heading = HEADING, requires = "measure")]
    dry_run: bool,
    /// Begin without asking
    #[arg(long, help_heading = HEADING, short, requires = "measure")]
    yes: bool,
    /// Use this fio instead of the one on PATH
    #[arg(long, help_heading = HEADING, value_name = "PROGRAM", requires = "measure")]
    fio: Option<PathBuf>,
    #[command(flatten)]
    one: OneWorkload,
}

/// How the answer is wanted.
#[derive(Clone, Copy)]
pub(super) struct Form<'a> {
    pub json: bool,
    pub markdown: bool,
    pub html: Option<&'a Path>,
    pub quiet: bool,
}

/// Measures, or shows what was measured; none when neither was asked for.
pub(super) fn run(
    args: &Measure,
    target: Option<&Path>,
    form: Form<'_>,
    global: &Global,
) -> anyhow::Result<Option<Status>> {
    if let Some(asked) = &args.show {
        return show(asked, form, global).map(Some);
    }
    match (args.measure, target) {
        (true, Some(target)) => measure(args, target, form, global).map(Some),
        _ => Ok(None),
    }
}

fn measure(
    args: &Measure,
    target: &Path,
    form: Form<'_>,
    global: &Global,
) -> anyhow::Result<Status> {
    let wanted = wanted(args, target)?;
    let cancel = context::on_signals()?;
    let state_dir = context::state_dir()?;
    let state = State::open(&state_dir)?;
    let journal = journal()?;
    let guests = assay_lab::State::open(&state_dir)?;
    sweep(&state, &journal, &guests, &wanted.target)?;
    let image = Cache::of_user()?.find();
    let lab = image.as_ref().map(|image| Lab {
        image,
        state: &guests,
    });
    let env = Environment {
        host: &Live,
        fio: args.fio.as_deref(),
        state: &state,
        journal: &journal,
        lab: lab.ok_or_else(|| {
            "there is no guest image; `assay lab build` makes one in some minutes".to_owned()
        }),
        cancel: &cancel,
        now: &context::now,
        uid: context::random_uid()?,
        seed: context::random_seed()?,
        version: env!("CARGO_PKG_VERSION"),
    };
    let prepared = prepare(&wanted, &env)?;
    let plan = plan_text(&prepared);
    if args.dry_run {
        print(&plan)?;
        return Ok(Status::Ok);
    }
    if !form.quiet {
        eprint!("{plan}");
    }
    if !agreed(args)? {
        eprintln!("nothing was made");
        return Ok(Status::Ok);
    }
    let mut store = context::open_store(global)?;
    let mut meter = Meter::new(form.quiet, prepared.estimate);
    let finished = execute(prepared, &env, &mut store, &mut |event| {
        tell(&mut meter, &event)
    });
    meter.end();
    let finished = finished?;
    for left in &finished.left {
        eprintln!("{left} could not be removed; `assay trial --recover` tries again");
    }
    let run = finished.run;
    let samples = store.samples(run.id)?;
    if !samples.is_empty() {
        report(&run, &samples, form, global)?;
    }
    if let Some(error) = finished.stopped {
        let kept = format!("run {} is kept as far as it got", run.id);
        return Err(anyhow::Error::new(error).context(kept));
    }
    if run.state == RunState::Interrupted {
        eprintln!(
            "interrupted after {} of {} samples; `assay stack --show {}` shows them",
            samples.len(),
            run.plan.order.len(),
            run.id
        );
        return Ok(Status::Interrupted);
    }
    Ok(Status::Ok)
}

fn wanted(args: &Measure, target: &Path) -> anyhow::Result<Wanted> {
    let target = target
        .canonicalize()
        .with_context(|| format!("{}", target.display()))?;
    let parts: BTreeSet<Part> = match args.layers.is_empty() {
        true => Part::ALL.into(),
        false => args.layers.iter().copied().collect(),
    };
    // The size is that of the test file, which the plan says.
    let disk = Disk::parse(&format!("512,{}", args.disk), "stack").context("--disk")?;
    if disk.dir.is_some() || disk.device.is_some() {
        bail!("--disk: images are made in TARGET, so there is neither dir= nor device=");
    }
    let mut plan = plan(args)?;
    plan.rounds = args.rounds.or(plan.rounds);
    plan.file_size = args.size;
    plan.seed = args.seed.or(plan.seed);
    set_times(&mut plan, args.runtime, args.ramp);
    plan.targets.clear();
    // A criterion is about one target.
    plan.want.clear();
    Ok(Wanted {
        target,
        parts,
        disk,
        plan,
        memory_mib: u32::try_from(args.memory.0 >> 20)
            .with_context(|| format!("{} of memory is too much", args.memory))?,
        accel: args.accel.map(Into::into),
    })
}

fn plan(args: &Measure) -> anyhow::Result<PlanSpec> {
    if let Some(path) = &args.plan_file {
        return read_plan(path);
    }
    if let Some(name) = &args.plan {
        let found =
            builtin(name).with_context(|| format!("no plan `{name}`; see `assay run --help`"))?;
        // What is built in says how long its own questions take, not this one.
        return Ok(PlanSpec {
            rounds: None,
            runtime: None,
            ramp: None,
            ..found
        });
    }
    match args.one.plan() {
        Some(plan) => Ok(plan),
        None => Ok(PlanSpec::from_toml(DEFAULT_PLAN, "stack.toml")?),
    }
}

/// Removes what an assay that was killed left of its rungs.
fn sweep(
    state: &State,
    journal: &Journal,
    guests: &assay_lab::State,
    target: &Path,
) -> anyhow::Result<()> {
    swept(&state.sweep());
    swept(&scratch::sweep_directory(target));
    for name in guests.sweep()? {
        eprintln!("removed what was left of guest {name}");
    }
    let ours = |left: &assay_changes::Pending| left.label == assay_stack::measure::LABEL;
    if journal.pending()?.iter().any(ours) {
        for one in journal.recover(&Live, Foreign::Leave)? {
            // A process ends with the assay that started it.
            if !one.what.starts_with("process ") {
                eprint!("left by an assay that was killed: {}", told(&one));
            }
        }
    }
    Ok(())
}

/// What will be made, how large, how long.
fn plan_text(prepared: &Prepared) -> String {
    let run = &prepared.run;
    let mut text = String::new();
    let Some(ladder) = &run.ladder else {
        return text;
    };
    text += &format!(
        "In {}, to be removed afterwards:\n",
        ladder.target.escape_debug()
    );
    for made in &prepared.makes {
        text += &format!(
            "  {:<12} {:>9}  {}\n",
            made.rung,
            made.space.to_string(),
            made.what
        );
    }
    let space: u64 = prepared.makes.iter().map(|made| made.space.0).sum();
    text += &format!(
        "  {:<12} {:>9}  at most\n",
        "in all",
        Bytes(space).to_string()
    );
    for line in &ladder.left_out {
        text += &format!("left out: {line}\n");
    }
    let guest = ladder
        .rungs
        .iter()
        .any(|rung| rung.place == RungPlace::Guest);
    let workloads: Vec<String> = run
        .plan
        .workloads
        .iter()
        .map(|one| one.describe())
        .collect();
    text += &format!(
        "{} rounds of {} on {} rungs{}, bottom and top twice: {} samples, about {}\n",
        run.plan.rounds,
        workloads.join("; "),
        prepared.makes.len(),
        if guest {
            ", one guest for all that need one"
        } else {
            ""
        },
        run.plan.order.len(),
        whole(prepared.estimate),
    );
    for remark in &run.remarks {
        text += &format!("note: {remark}\n");
    }
    text
}

fn agreed(args: &Measure) -> anyhow::Result<bool> {
    if args.yes {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        bail!(
            "this makes files and loads the storage they lie on: say --yes, or --dry-run to see it"
        );
    }
    eprint!("Begin? [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn tell(meter: &mut Meter, event: &Event<'_>) {
    match event {
        Event::Making("guest") => meter.say("booting a guest".to_owned()),
        Event::Making(what) => meter.say(format!("making {what}")),
        Event::Layout { written, size } => {
            meter.say(format!("writing the test file: {written} of {size}"));
        }
        Event::Remark(remark) => meter.line(&format!("note: {remark}")),
        Event::Left(left) => meter.expect(*left),
        Event::Begin {
            done,
            of,
            workload,
            rung,
            round,
        } => meter.say(format!(
            "{} of {of}: {workload} on {rung}, round {round}",
            done + 1
        )),
        Event::Stored(_) => {}
    }
}

/// `--show`.
fn show(asked: &str, form: Form<'_>, global: &Global) -> anyhow::Result<Status> {
    let Some(store) = context::existing_store(global)? else {
        bail!("{}", context::nothing_measured(global)?);
    };
    let id = match asked {
        "" | "last" => {
            let mut newest = None;
            for row in store.runs()? {
                if store.run(row.id)?.ladder.is_some() {
                    newest = Some(row.id);
                    break;
                }
            }
            newest.context("no stack has been measured yet: `assay stack . --measure` does")?
        }
        name => store.resolve(name)?,
    };
    let (run, samples) = (store.run(id)?, store.samples(id)?);
    report(&run, &samples, form, global)?;
    Ok(Status::Ok)
}

fn report(run: &Run, samples: &[Sample], form: Form<'_>, global: &Global) -> anyhow::Result<()> {
    let ladder = run.ladder.as_ref().with_context(|| {
        format!(
            "run {0} is not of a stack: `assay show {0}` shows it",
            run.id
        )
    })?;
    let judged = assay_judge::judge(run, samples);
    let falls = assay_judge::waterfalls(ladder, &run.plan.workloads, &judged.samples);
    let view = View {
        run,
        ladder,
        judged: &judged,
        samples,
        falls: &falls,
    };
    if let Some(path) = form.html {
        context::write_file(path, &pages::html(run, &judged, samples, None))?;
        eprintln!("report written to {}", path.display());
    }
    print(&match (form.json, form.markdown) {
        (true, _) => format!("{:#}\n", waterfall::json(&view)),
        (_, true) => waterfall::markdown(&view),
        _ => waterfall::terminal(&view, context::style(global)),
    })
}
