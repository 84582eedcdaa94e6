//! `assay stack TARGET --measure`: measures the same workload at every layer, and computes the cost of each layer.

mod preparation;
mod show;
mod wanted;

use crate::context::{self, print};
use crate::global::Global;
use crate::open_changes::Despite;
use crate::progress::Meter;
use crate::remote::{NamedFile, RemoteWork, SentFile};
use crate::shape::Shape;
use crate::status::Status;
use crate::verbs::lab::AccelArg;
use crate::verbs::run::OneWorkload;
use assay_lab::Cache;
use assay_model::run::RunState;
use assay_model::{Bytes, Nanos};
use assay_stack::ladder::{Lab, LadderPart, execute, prepare};
use preparation::{agreed, plan_text, sweep};
use show::{report, show};
use std::path::{Path, PathBuf};
use wanted::wanted;

pub(super) const EXAMPLES: &str = "\
Measure what each layer costs:
  assay stack /srv/images --measure         file, image, guest disk, LUKS, LVM, file systems
  assay stack /srv/images --measure --dry-run
                                            what would be made, how large, how long
  assay stack . --measure --layers image --yes
                                            raw and qcow2 without a guest, in some minutes
  assay stack . --measure --layers guest,luks,xfs --disk cache=writeback,bus=virtio-scsi,iothread
  assay stack . --measure --rw randwrite --bs 16k --sync fdatasync --rounds 10
  assay stack web --measure                 with scratch disks like the one of virtual machine web
  assay stack /srv --measure --scratch-vg vg0
                                            also a logical volume made in vg0, on which /srv lies
  assay stack /tank/vm --measure --scratch-dataset tank/scratch
                                            in file systems and volumes made below tank/scratch
  assay stack --show last --html stack.html

assay measures only scratch files and volumes that it creates, in TARGET or where --scratch-… points.
It removes them afterwards, also after Ctrl-C; after a kill -9, the next start does.
Layers in a guest need the image of `assay lab build`; without it they are left out.

Exit status: 0 done, 2 error or no such target, 3 the machine cannot be read, 130 interrupted (what
was measured is kept).";

/// Heading of the options of `--measure` in the help.
const HEADING: &str = "What each layer costs";

/// Options of `--measure`.
#[derive(clap::Args)]
pub struct Measure {
    /// Measure the same workload at every layer, on scratch files in TARGET
    #[arg(long, help_heading = HEADING, requires = "target")]
    measure: bool,
    /// Show a past measurement: the newest, or the named run
    #[arg(long, help_heading = HEADING, value_name = "RUN", num_args = 0..=1, default_missing_value = "", conflicts_with_all = ["measure", "target"])]
    show: Option<String>,
    /// Measure these: image,guest,luks,lvm,ext4,xfs,btrfs,file [default: all]
    #[arg(long, help_heading = HEADING,
        value_name = "LAYER,…",
        value_delimiter = ',',
        requires = "measure"
    )]
    layers: Vec<LadderPart>,
    /// Set image and disk options, with the syntax of `assay lab up --disk`
    #[arg(long, help_heading = HEADING, value_name = "OPTION,…", requires = "measure")]
    disk: Option<String>,
    /// Follow this disk of the virtual machine [default: first writable]
    #[arg(long, help_heading = HEADING, value_name = "DISK", requires = "measure")]
    vm_disk: Option<String>,
    /// Create scratch files here [default: beside the image]
    #[arg(long, help_heading = HEADING, value_name = "DIR", requires = "measure")]
    scratch_dir: Option<PathBuf>,
    /// Also measure ZFS, below this dataset of TARGET's ZFS pool
    #[arg(long, help_heading = HEADING, value_name = "POOL/PARENT", requires = "measure")]
    scratch_dataset: Option<String>,
    /// Set a property of scratch datasets [default: primarycache=metadata]
    #[arg(long, help_heading = HEADING, value_name = "PROPERTY=VALUE", requires = "scratch_dataset")]
    scratch_set: Vec<String>,
    /// Also measure LVM, with a logical volume in this group or thin pool
    #[arg(long, help_heading = HEADING, value_name = "VG[/THINPOOL]", requires = "measure")]
    scratch_vg: Option<String>,
    /// Use this built-in plan of `assay run` [default: three workloads]
    #[arg(long, help_heading = HEADING, value_name = "NAME", requires = "measure", conflicts_with_all = ["rw", "plan_file"])]
    plan: Option<String>,
    /// Read the plan from a TOML file
    #[arg(long, help_heading = HEADING, value_name = "FILE", requires = "measure", conflicts_with = "rw")]
    plan_file: Option<PathBuf>,
    /// Measure each layer N times [default: 6]
    #[arg(long, help_heading = HEADING, value_name = "N", requires = "measure")]
    rounds: Option<u32>,
    /// Reduce the rounds until the measurement fits into this time
    #[arg(long, help_heading = HEADING, value_name = "TIME", requires = "measure")]
    budget: Option<Nanos>,
    /// Measure each sample for this long [default: 2s]
    #[arg(long, help_heading = HEADING, value_name = "TIME", requires = "measure")]
    runtime: Option<Nanos>,
    /// Run each sample this long before measuring [default: 500ms]
    #[arg(long, help_heading = HEADING, value_name = "TIME", requires = "measure")]
    ramp: Option<Nanos>,
    /// Set the size of the test file at every layer [default: 256M]
    #[arg(long, help_heading = HEADING, value_name = "SIZE", requires = "measure")]
    size: Option<Bytes>,
    /// Set the random seed of order, offsets and data
    #[arg(long, help_heading = HEADING, value_name = "N", requires = "measure")]
    seed: Option<u64>,
    /// Set the memory of the guest
    #[arg(long, help_heading = HEADING, value_name = "SIZE", default_value = "1G", requires = "measure")]
    memory: Bytes,
    /// Run guests with kvm or tcg [default: detected]
    #[arg(long, help_heading = HEADING,
        value_name = "HOW",
        value_enum,
        hide_possible_values = true,
        requires = "measure"
    )]
    accel: Option<AccelArg>,
    /// Show what would be created and stop
    #[arg(long, help_heading = HEADING, requires = "measure")]
    dry_run: bool,
    /// Start without asking
    #[arg(long, help_heading = HEADING, short, requires = "measure")]
    yes: bool,
    /// Measure although a killed assay left settings changed
    #[arg(long, help_heading = HEADING, requires = "measure")]
    despite_open_change: bool,
    /// Use this fio instead of the one on PATH
    #[arg(long, help_heading = HEADING, value_name = "PROGRAM", requires = "measure")]
    fio: Option<PathBuf>,
    #[command(flatten)]
    one: OneWorkload,
}

/// Measures, or shows a past measurement.
impl Measure {
    /// Adds the files and arguments that the other machine needs to `asked`.
    pub(super) fn there(&self, asked: &mut RemoteWork) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.show.is_none(),
            "--show reads the store of this machine, which contains remote runs too: leave out --host"
        );
        if let Some(path) = &self.plan_file {
            asked.files.push(SentFile {
                named: NamedFile::Option("--plan-file", ""),
                path: path.clone(),
                content: crate::input::bytes(
                    path,
                    super::super::run::LONGEST_PLAN,
                    "a plan in TOML",
                )?,
            });
        }
        Ok(())
    }
}

pub(super) fn is_asked(args: &Measure) -> bool {
    args.measure || args.show.is_some()
}

/// Measures, or shows a past measurement. Returns `None` if the user requested neither.
pub(super) fn run(
    args: &Measure,
    target: Option<&Path>,
    shape: &Shape,
    quiet: bool,
    global: &Global,
) -> anyhow::Result<Option<Status>> {
    if let Some(asked) = &args.show {
        return show(asked, shape, global).map(Some);
    }
    match (args.measure, target) {
        (true, Some(target)) => measure(args, target, shape, quiet, global).map(Some),
        _ => Ok(None),
    }
}

fn measure(
    args: &Measure,
    target: &Path,
    shape: &Shape,
    quiet: bool,
    global: &Global,
) -> anyhow::Result<Status> {
    let mut wanted = wanted(args, target)?;
    let cancel = context::on_signals()?;
    let ground = context::MeasurementRegistries::open()?;
    let env = ground.environment(args.fio.as_deref(), &cancel);
    let guests = assay_lab::GuestRegistry::open(&context::state_dir()?)?;
    sweep(env.journal, &guests, &wanted.target)?;
    if !args.dry_run {
        let despite_open_change = args.despite_open_change;
        Despite {
            despite_open_change,
        }
        .check(env.journal)?;
    }
    // Without a usable image, the rungs in a guest are left out, with the reason.
    let image = match Cache::of_user() {
        Ok(cache) => cache.find().ok_or_else(|| {
            "there is no guest image: build one with `assay lab build` (some minutes)".to_owned()
        }),
        Err(error) => Err(error.to_string()),
    };
    let lab = image.as_ref().map(|image| Lab {
        image,
        state: &guests,
    });
    let lab = lab.map_err(Clone::clone);
    let mut prepared = prepare(&wanted, lab.clone(), &env)?;
    if let Some(budget) = args.budget {
        let planned = prepared.run.plan.rounds;
        let rounds = super::super::run::rounds_within(budget, prepared.estimate, planned)?;
        if rounds < planned {
            wanted.plan.rounds = Some(rounds);
            // Only one preparation may hold the run.
            drop(prepared);
            prepared = prepare(&wanted, lab, &env)?;
        }
    }
    let plan = plan_text(&prepared);
    if args.dry_run {
        print(&plan)?;
        return Ok(Status::Ok);
    }
    if !quiet {
        eprint!("{plan}");
    }
    if !agreed(args)? {
        eprintln!("nothing was made");
        return Ok(Status::Ok);
    }
    let mut store = context::open_store(global)?;
    let mut meter = Meter::new(quiet, prepared.estimate);
    let finished = execute(prepared, &env, &mut store, &mut |event| meter.tell(&event));
    meter.end();
    let finished = finished?;
    for left in &finished.left {
        eprintln!("{left} could not be removed; `assay trial --recover` tries again");
    }
    for astray in &finished.astray {
        eprintln!("{astray}");
    }
    let run = finished.run;
    let samples = store.samples(run.id)?;
    if !samples.is_empty() {
        report(&run, &samples, shape, global)?;
    }
    if let Some(error) = finished.stopped {
        let kept = format!("the samples measured so far are stored as run {}", run.id);
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
