//! `assay lab measure`: measures several virtual disks in one guest and compares them.

use super::documents::{self, Measured};
use super::machine::Machine;
use super::open::Lab;
use crate::context::{self, paragraph, print};
use crate::progress::Meter;
use crate::status::Status;
use anyhow::Context as _;
use assay_lab::experiments::disks::{self, DiskSample, DisksError};
use assay_lab::{Disk, Guest, LabError};
use assay_measure::engine::Carried;
use assay_model::plan::WorkloadSpec;
use assay_model::workload::{Durability, Engine, Pattern};
use assay_model::{Bytes, Nanos, Plan, Planned};
use serde::de::DeserializeOwned;
use std::io::IsTerminal as _;

/// Arguments of `assay lab measure`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay lab measure                         six usual combinations, random write and read
  assay lab measure --disk 256M,cache=none,aio=native,dir=/srv --disk 256M,cache=writeback,dir=/srv
  assay lab measure --rw randwrite --bs 8k --iodepth 8 --sync dsync --rounds 5 --json

One guest has all disks at once; fio runs in it, one disk after the other, in random order, as often as
--rounds says. `dir` chooses the host file system under a disk. The table says what the host saw, too:
flushes, and bytes that QEMU moved to and from storage for each byte that the guest asked for.")]
pub(super) struct Measure {
    /// Use these patterns [default: randwrite, randread] (repeatable)
    #[arg(long, value_name = "PATTERN")]
    rw: Vec<String>,
    /// Set the block size: 4k is 4096 bytes, 4kB is 4000
    #[arg(long, value_name = "SIZE", default_value = "4k")]
    bs: Bytes,
    /// Keep N requests in flight
    #[arg(long, value_name = "N", default_value_t = 4)]
    iodepth: u32,
    /// Sync writes by none, dsync, fdatasync or fsync
    #[arg(long, value_name = "HOW", default_value = "none")]
    sync: String,
    /// Measure each sample for this long
    #[arg(long, value_name = "TIME", default_value = "4s")]
    runtime: Nanos,
    /// Measure each disk N times
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Set the random seed of order, offsets and data
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    #[command(flatten)]
    machine: Machine,
    /// Print one JSON document with fio's own results instead of a table
    #[arg(long)]
    json: bool,
}

/// Disks that are measured if the user gives none.
const USUAL: [&str; 6] = [
    "64M,cache=none,aio=native",
    "64M,cache=writeback",
    "64M,cache=writethrough",
    "64M,bus=virtio-scsi,cache=none",
    "64M,bus=ide,cache=none",
    "64M,bus=ide,cache=writethrough",
];

/// Parses the value of an option. The names are those that plans use for serialised values.
fn named<T: DeserializeOwned>(option: &str, text: &str) -> anyhow::Result<T> {
    serde_json::from_value(text.into()).with_context(|| format!("{option} {text}"))
}

impl Measure {
    fn workloads(&self) -> anyhow::Result<Vec<WorkloadSpec>> {
        let patterns = match self.rw.is_empty() {
            true => vec!["randwrite".to_owned(), "randread".to_owned()],
            false => self.rw.clone(),
        };
        let durability: Durability = named("--sync", &self.sync)?;
        let one = |pattern: &String| {
            let pattern: Pattern = named("--rw", pattern)?;
            Ok(WorkloadSpec {
                pattern: Some(pattern),
                block_size: Some(self.bs),
                queue_depth: Some(self.iodepth),
                engine: Some(Engine::Libaio),
                durability: pattern.writes().then_some(durability),
                runtime: Some(self.runtime),
                ..WorkloadSpec::default()
            })
        };
        patterns.iter().map(one).collect()
    }
}

pub(super) fn measure(lab: &Lab, args: &Measure) -> anyhow::Result<Status> {
    let name = format!("measure-{}", std::process::id());
    let options = lab.options(&args.machine, &name, &USUAL)?;
    let disks = &options.disks;
    let seed = args.seed.map_or_else(context::random_seed, Ok)?;
    let plan = disks::plan(disks, args.workloads()?, args.rounds, seed)?;
    let image = lab.image(args.machine.zfs, args.machine.yes)?;
    let ground = context::MeasurementRegistries::open()?;
    let env = ground.environment(None, &lab.cancel);
    let shown = super::progress::spinner("booting a guest");
    let booted = Guest::boot(&image, &options, &lab.state, &lab.cancel);
    shown.finish_and_clear();
    let mut samples = Vec::new();
    let measured = booted.map_err(DisksError::from).and_then(|guest| {
        super::open::emulation_note(&guest, &args.machine);
        let mut meter = Meter::new(!std::io::stderr().is_terminal(), Nanos(0));
        meter.say("the disks are filled".to_owned());
        let mut keep = |sample| samples.push(sample);
        let ended = disks::run(&guest, disks, &plan, &env, &mut keep, &mut |event| {
            meter.tell(&event);
        });
        meter.end();
        ended
    });
    if !samples.is_empty() {
        print(&match args.json {
            true => {
                let workloads = plan.workloads.iter().filter_map(Planned::fio).collect();
                documents::printed(&Measured::of(disks, plan.seed, workloads, &samples)?)?
            }
            false => table(disks, &plan, &samples),
        })?;
    }
    // Results before an error or Ctrl-C are printed too.
    match measured {
        Ok(Carried::Complete) => Ok(Status::Ok),
        Ok(Carried::Interrupted) => Err(LabError::Interrupted.into()),
        Err(DisksError::Lab(error)) => Err(error.into()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the results of one sample, summed over all workers and both directions: operations per second, and bytes.
fn figures(taken: &DiskSample) -> (f64, u64) {
    let workers = taken.sample.workers.iter();
    let directions = workers.flat_map(|job| [job.read(), job.write()]).flatten();
    directions.fold((0.0, 0), |(iops, bytes), stats| {
        (iops + stats.per_s, bytes + stats.bytes.0)
    })
}

/// Formats the doubts (reasons to distrust a figure) about a workload's samples. For each disk and doubt, shows the
/// number of affected samples and the evidence of one of them.
fn doubted(disks: &[Disk], plan: &Plan, workload: &Planned, samples: &[DiskSample]) -> String {
    let mut text = String::new();
    for disk in disks {
        let ours = of(samples, disk, workload);
        let doubts: Vec<_> = ours.flat_map(|sample| &sample.doubts).collect();
        let mut codes: Vec<_> = doubts.iter().map(|doubt| doubt.code.as_str()).collect();
        codes.sort_unstable();
        codes.dedup();
        for code in codes {
            let mut same = doubts.iter().filter(|doubt| doubt.code == code);
            let count = same.clone().count();
            let Some(doubt) = same.next() else { continue };
            let severity = doubt.severity.name();
            text += &format!(
                "{code} ({severity}), {count} of {} samples of {}\n",
                plan.rounds,
                disk.describe()
            );
            text += &paragraph(&doubt.evidence, 2);
            text += &paragraph(&format!("-> {}", doubt.remedy), 2);
        }
    }
    text
}

/// Returns the samples of one workload on one disk.
fn of<'a>(
    samples: &'a [DiskSample],
    disk: &'a Disk,
    workload: &'a Planned,
) -> impl Iterator<Item = &'a DiskSample> {
    samples.iter().filter(|taken| {
        (&taken.sample.target, &taken.sample.workload) == (&disk.name, &workload.name)
    })
}

fn table(disks: &[Disk], plan: &Plan, samples: &[DiskSample]) -> String {
    let mut text = String::new();
    for workload in &plan.workloads {
        let writes = workload.fio().is_some_and(|load| load.pattern.writes());
        text += &format!(
            "{}, {} rounds\n{:<40} {:>9} {:>19} {:>9} {:>10}\n",
            workload.describe(),
            plan.rounds,
            "disk",
            "median/s",
            "smallest…largest",
            "flushes",
            "host/guest"
        );
        for disk in disks {
            let (mut rates, mut guest, mut host, mut flushes) = (Vec::new(), 0, 0, 0);
            for sample in of(samples, disk, workload) {
                let (iops, bytes) = figures(sample);
                rates.push(iops);
                guest += bytes;
                host += match writes {
                    true => sample.host.process_written,
                    false => sample.host.process_read,
                };
                flushes += sample.host.flushes;
            }
            rates.sort_by(f64::total_cmp);
            let (Some(least), Some(most)) = (rates.first(), rates.last()) else {
                continue;
            };
            let middle = (rates[(rates.len() - 1) / 2] + rates[rates.len() / 2]) / 2.0;
            // Through the page cache the kernel counts whole dirty folios, not bytes.
            let moved = match writes && !disk.cache.direct() {
                true => "-".to_owned(),
                false => format!("{:.2}", host as f64 / (guest as f64).max(1.0)),
            };
            text += &format!(
                "{:<40} {middle:>9.0} {:>19} {flushes:>9} {moved:>10}\n",
                disk.describe(),
                format!("{least:.0}…{most:.0}"),
            );
        }
        text += &doubted(disks, plan, workload, samples);
        text.push('\n');
    }
    text += &format!("seed {}\n", plan.seed);
    text
}
