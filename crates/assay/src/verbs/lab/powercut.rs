//! `assay lab power-cut`: tests whether virtual disks keep acknowledged writes.

use super::documents::{self, PowerCuts};
use super::machine::Machine;
use super::open::Lab;
use crate::context::print;
use crate::status::Status;
use assay_lab::Sync;
use assay_lab::experiments::powercut::{PowerCutOutcome, PowerCutTrial, run, run_zfs};
use assay_lab::experiments::writelog::Unflushed;
use clap::ValueEnum;

/// Arguments of `assay lab power-cut`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay lab power-cut                       every cache mode, bus and format
  assay lab power-cut --disk 64M,format=qcow2,cache=none,aio=native --records 500 --cuts 50
  assay lab power-cut --unflushed torn      any part of what was in a cache may have reached the disk
  assay lab power-cut --zvol                zvols and files on ZFS in the guest

Each disk gets numbered, checksummed records, each of which the guest's kernel calls durable. QEMU is
killed in the middle of it. Everything that QEMU had not flushed to the host is then taken away, and
the records that were acknowledged are looked for; the same is done for earlier moments (--cuts).
With --unflushed some or torn a part of it stays, chosen at random: in any order, and with torn writes.
cache=unsafe promises nothing and loses records: it shows that the test can fail.

With --zvol each disk carries a pool. What a power cut leaves of it is imported in a second guest, once
for every cut, and the records are read there. sync=disabled promises nothing.

Exit status: 0 every disk kept what it promised, 1 one did not, 2 error,
130 interrupted.")]
pub(super) struct PowerCut {
    /// Choose how the guest makes writes durable
    #[arg(long, value_enum, default_value_t = SyncArg::Dsync)]
    sync: SyncArg,
    /// Write N acknowledged records to each disk
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    records: u64,
    /// Cut the power at N moments per disk [default: 16, with --zvol 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    cuts: Option<u64>,
    /// Choose what the cut leaves of writes that were not flushed
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = UnflushedArg::Lost)]
    unflushed: UnflushedArg,
    /// Write to zvols and a file of a ZFS pool on each disk
    #[arg(long)]
    zvol: bool,
    #[command(flatten)]
    machine: Machine,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

#[derive(ValueEnum, Clone, Copy)]
pub(super) enum SyncArg {
    /// Open with O_DSYNC
    Dsync,
    /// Call fsync after every record
    Fsync,
    /// Never flush, as a control: records are expected to be lost
    Never,
}

#[derive(ValueEnum, Clone, Copy)]
pub(super) enum UnflushedArg {
    /// Keep none of these writes
    Lost,
    /// Keep each write at random
    Some,
    /// Keep each sector of 512 bytes at random
    Torn,
}

impl From<UnflushedArg> for Unflushed {
    fn from(argument: UnflushedArg) -> Self {
        match argument {
            UnflushedArg::Lost => Self::Lost,
            UnflushedArg::Some => Self::Some,
            UnflushedArg::Torn => Self::Torn,
        }
    }
}

impl From<SyncArg> for Sync {
    fn from(argument: SyncArg) -> Self {
        match argument {
            SyncArg::Dsync => Self::Dsync,
            SyncArg::Fsync => Self::Fsync,
            SyncArg::Never => Self::Never,
        }
    }
}

/// Default disks: every cache mode, then every bus, then the formats. Bus and format should make no difference to
/// durability.
const USUAL: [&str; 12] = [
    "64M,cache=writeback",
    "64M,cache=none,aio=native",
    "64M,cache=none,aio=io_uring",
    "64M,cache=writethrough",
    "64M,cache=directsync",
    "64M,cache=unsafe",
    "64M,bus=virtio-scsi",
    "64M,bus=sata",
    "64M,bus=ide",
    "64M,bus=nvme",
    "64M,format=qcow2",
    "64M,format=luks",
];

pub(super) fn power_cut(lab: &Lab, args: &PowerCut) -> anyhow::Result<Status> {
    let usual: &[&str] = if args.zvol { &["256M"] } else { &USUAL };
    let name = format!("cut-{}", std::process::id());
    let mut options = lab.options(&args.machine, &name, usual)?;
    let trial = PowerCutTrial {
        disks: std::mem::take(&mut options.disks),
        sync: args.sync.into(),
        records: args.records,
        cuts: args.cuts.unwrap_or(if args.zvol { 4 } else { 16 }),
        unflushed: args.unflushed.into(),
        seed: crate::context::random_seed()?,
    };
    let image = lab.image(args.machine.zfs, args.machine.yes)?;
    let what = match args.zvol {
        false => "disks written, then judged:",
        true => "pools imported after a cut:",
    };
    let shown = super::progress::steps("booting a guest, then writing", 0, None);
    let told = &mut |done, all| {
        shown.set_message(what);
        shown.set_length(all);
        shown.set_position(done);
    };
    let (state, cancel) = (&lab.state, &lab.cancel);
    let outcomes = match args.zvol {
        false => run(&image, &options, &trial, state, cancel, told),
        true => run_zfs(&image, &options, &trial, state, cancel, told),
    };
    shown.finish_and_clear();
    let outcomes = outcomes?;
    print(&match args.json {
        true => documents::printed(&PowerCuts::of(&outcomes))?,
        false => table(&outcomes),
    })?;
    let kept = outcomes.iter().all(PowerCutOutcome::as_promised);
    Ok(if kept { Status::Ok } else { Status::Findings })
}

fn table(outcomes: &[PowerCutOutcome]) -> String {
    let mut text = format!(
        "{:<48} {:>7} {:>7} {:>5} {:>9}  verdict\n",
        "disk", "records", "flushes", "cuts", "most lost"
    );
    for one in outcomes {
        let verdict = match (one.lost, one.claims) {
            (0, true) => "kept everything",
            (0, false) => "promised nothing, and lost nothing this time",
            (_, false) => "lost records, as it says",
            (_, true) => "LOST RECORDS that it called durable",
        };
        text += &format!(
            "{:<48} {:>7} {:>7} {:>5} {:>9}  {verdict}\n",
            one.what, one.acknowledged, one.flushes, one.cuts, one.lost
        );
        if let Some(note) = &one.note {
            text += &format!("  {}\n", note.trim_end());
        }
    }
    text
}
