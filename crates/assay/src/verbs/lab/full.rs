//! `assay lab full`: fills the host's disk below a running guest, and checks which data the guest loses.

use super::documents;
use super::machine::Machine;
use super::open::Lab;
use super::powercut::SyncArg;
use crate::context::print;
use crate::status::Status;
use assay_lab::GuestOptions;
use assay_lab::experiments::full_disk::{
    Ending, FullDiskOutcome, FullDiskTrial, HostFs, ZFS_CASES, ZfsTrial, run, run_zfs,
};
use assay_model::Bytes;
use clap::ValueEnum;

/// Arguments of `assay lab full`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay lab full                            raw and qcow2, every werror policy, every bus
  assay lab full --disk 32M,format=qcow2,bus=sata,werror=stop --fs xfs
  assay lab full --sync never               nobody asks for durability until the end
  assay lab full --pool                     a full pool in the guest: zvol against qcow2

The guest's disks lie on a small file system that assay makes for this (as root, on a loop device; it
goes when assay ends, however it ends). The guest writes numbered, checksummed records until the host
has no space. Then space is given back, a guest that QEMU paused goes on, one that got an error is
asked to write again, and every record that its kernel called durable is read back on the host.

With --pool the pool in the guest is made full instead, under a thin zvol, a raw file and a qcow2 image.
They are written to by a program, and by a QEMU in the guest whose drive assay drives by its registers:
that one decides whether a guest of its own would be paused.

Exit status: 0 nothing that was called durable was lost, 1 something was, 2 error,
130 interrupted.")]
pub(super) struct Full {
    /// Choose how the guest makes writes durable; never: only at the end
    #[arg(long, value_enum, default_value_t = SyncArg::Dsync, conflicts_with = "pool")]
    sync: SyncArg,
    /// Fill a ZFS pool in the guest instead of the host
    #[arg(long, conflicts_with_all = ["fs", "disk"])]
    pool: bool,
    /// Choose the host's file system under the disks
    #[arg(long, value_enum, default_value_t = FsArg::Ext4)]
    fs: FsArg,
    /// Leave this much free when the guest starts to write
    #[arg(long, value_name = "SIZE", default_value = "1M")]
    room: Bytes,
    /// Write N records once there is space again
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..=1000))]
    after: u64,
    #[command(flatten)]
    machine: Machine,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

#[derive(ValueEnum, Clone, Copy)]
enum FsArg {
    Ext4,
    Xfs,
}

/// Default disks: both formats with every error policy, then other buses, then other cache modes.
const USUAL: [&str; 14] = [
    "32M",
    "32M,werror=report",
    "32M,werror=stop",
    "32M,werror=enospc",
    "32M,format=qcow2",
    "32M,format=qcow2,werror=report",
    "32M,format=qcow2,werror=stop",
    "32M,format=qcow2,werror=enospc",
    "32M,bus=virtio-scsi,werror=report",
    "32M,bus=sata,werror=report",
    "32M,bus=ide,werror=report",
    "32M,bus=nvme",
    "32M,cache=none,aio=native",
    "32M,cache=writethrough",
];

pub(super) fn full(lab: &Lab, args: &Full) -> anyhow::Result<Status> {
    let usual: &[&str] = if args.pool { &[] } else { &USUAL };
    let name = format!("full-{}", std::process::id());
    let mut options = lab.options(&args.machine, &name, usual)?;
    anyhow::ensure!(
        args.room.0 >= 64 << 10,
        "--room {} is too little: use at least 64 KiB",
        args.room
    );
    let seed = crate::context::random_seed()?;
    let image = lab.image(args.machine.zfs, args.machine.yes)?;
    let (place, (outcomes, early)) = match args.pool {
        true => {
            let trial = ZfsTrial {
                room: args.room.0,
                after: args.after,
                seed,
            };
            let shown = super::progress::steps(
                "after the boot, written until the pool is full:",
                ZFS_CASES as u64,
                None,
            );
            let told = &mut |_: &FullDiskOutcome| shown.inc(1);
            let found = run_zfs(&image, &options, &trial, &lab.state, &lab.cancel, told);
            shown.finish_and_clear();
            ("zfs", found?)
        }
        false => {
            let trial = args.trial(&mut options, seed)?;
            let count = trial.disks.len() as u64;
            let shown = super::progress::steps(
                "after the boot, disks written until nothing is free:",
                count,
                None,
            );
            let told = &mut |_: &FullDiskOutcome| shown.inc(1);
            let found = run(&image, &options, &trial, &lab.state, &lab.cancel, told);
            shown.finish_and_clear();
            (trial.host.name(), found?)
        }
    };
    print(&match args.json {
        true => documents::printed(&documents::Full::of(seed, place, &outcomes))?,
        false => table(&outcomes),
    })?;
    if let Some(error) = early {
        return Err(error.into());
    }
    let kept = outcomes.iter().all(FullDiskOutcome::kept);
    Ok(if kept { Status::Ok } else { Status::Findings })
}

impl Full {
    fn trial(&self, options: &mut GuestOptions, seed: u64) -> anyhow::Result<FullDiskTrial> {
        for disk in &options.disks {
            anyhow::ensure!(
                disk.dir.is_none(),
                "disk {}: leave out dir=, as these disks are on a small file system of their own",
                disk.name
            );
        }
        Ok(FullDiskTrial {
            disks: std::mem::take(&mut options.disks),
            sync: self.sync.into(),
            host: match self.fs {
                FsArg::Ext4 => HostFs::Ext4,
                FsArg::Xfs => HostFs::Xfs,
            },
            room: self.room.0,
            after: self.after,
            seed,
        })
    }
}

fn table(outcomes: &[FullDiskOutcome]) -> String {
    let mut text = format!(
        "{:<48} {:<40} {:>8} {:>12} {:>5}\n",
        "disk", "when nothing was free, the writer", "wrote on", "acknowledged", "lost"
    );
    for one in outcomes {
        text += &format!(
            "{:<48} {:<40} {:>8} {:>12} {:>5}\n",
            one.what,
            seen(one),
            if one.resumed() { "yes" } else { "no" },
            format!("{}+{}", one.before, one.after),
            one.lost
        );
    }
    text + "acknowledged: records before nothing was free + after there was space again\n"
}

fn seen(one: &FullDiskOutcome) -> String {
    match (one.ending(), &one.error) {
        (Ending::Paused, _) => "was paused by QEMU, noticed nothing".to_owned(),
        (Ending::Error, Some((_, reason))) if one.pauses > 0 => {
            format!("was paused, then: {reason}")
        }
        (_, Some((_, reason))) => format!("got: {reason}"),
        (Ending::NeverFull, None) => "never ran out of space".to_owned(),
        (_, None) => "got no error".to_owned(),
    }
}
