//! `assay lab full`: the host runs out of space under a guest.

use super::powercut::SyncArg;
use super::{Lab, Machine};
use crate::cli::Status;
use crate::context::print;
use assay_lab::full::{Ending, HostFs, Outcome, Trial, run};
use assay_model::Bytes;
use clap::ValueEnum;
use serde_json::json;

/// Arguments of `assay lab full`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay lab full                            raw and qcow2, every werror policy, every bus
  assay lab full --disk 32M,format=qcow2,bus=sata,werror=stop --fs xfs
  assay lab full --sync never               nobody asks for durability until the end

The guest's disks lie on a small file system that assay makes for this (as root, on a loop device; it
goes when assay ends, however it ends). The guest writes numbered, checksummed records until the host
has no space. Then space is given back, a guest that QEMU paused goes on, one that got an error is
asked to write again, and every record that its kernel called durable is read back on the host.

Exit status: 0 nothing that was called durable was lost, 1 something was, 2 error.")]
pub(super) struct Full {
    /// How the guest asks for durability; never: once, at the end
    #[arg(long, value_enum, default_value_t = SyncArg::Dsync)]
    sync: SyncArg,
    /// The host's file system under the disks
    #[arg(long, value_enum, default_value_t = FsArg::Ext4)]
    fs: FsArg,
    /// What is free there when the guest begins to write
    #[arg(long, value_name = "SIZE", default_value = "1M")]
    room: Bytes,
    /// Records to write once there is space again
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

/// Both formats with every policy, then the buses, then other cache modes.
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
    let mut options = lab.options(&format!("full-{}", std::process::id()), &args.machine)?;
    lab.usual(&mut options, &USUAL)?;
    for disk in &options.disks {
        anyhow::ensure!(
            disk.dir.is_none(),
            "disk {}: dir= is not taken here: the disks lie on a small file system of their own",
            disk.name
        );
    }
    anyhow::ensure!(
        args.room.0 >= 64 << 10,
        "--room {}: too little, 64 KiB at least",
        args.room
    );
    let trial = Trial {
        disks: std::mem::take(&mut options.disks),
        sync: args.sync.into(),
        host: match args.fs {
            FsArg::Ext4 => HostFs::Ext4,
            FsArg::Xfs => HostFs::Xfs,
        },
        room: args.room.0,
        after: args.after,
        seed: crate::context::random_seed()?,
    };
    let image = lab.image(args.machine.zfs)?;
    let shown = super::progress::steps("writing until nothing is free", trial.disks.len() as u64);
    let outcomes = run(
        &image,
        &options,
        &trial,
        &lab.state,
        &lab.cancel,
        &mut |_| shown.inc(1),
    );
    shown.finish_and_clear();
    let outcomes = outcomes?;
    print(&match args.json {
        true => document(&trial, &outcomes),
        false => table(&outcomes),
    })?;
    let kept = outcomes.iter().all(Outcome::kept);
    Ok(if kept { Status::Ok } else { Status::Findings })
}

fn document(trial: &Trial, outcomes: &[Outcome]) -> String {
    let disks: Vec<_> = outcomes
        .iter()
        .map(|one| {
            let error = one.error.as_ref();
            json!({
                "disk": one.disk, "what": one.what, "free_bytes": one.free,
                "ending": one.ending(), "pauses": one.pauses, "events": one.events,
                "guest_error": error.map(|(errno, reason)| json!({ "errno": errno, "reason": reason })),
                "resumed": one.resumed(),
                "acknowledged_before": one.before, "acknowledged_after": one.after,
                "acknowledged": one.acknowledged, "lost": one.lost, "kept": one.kept(),
            })
        })
        .collect();
    let whole = json!({
        "schema": 1, "seed": trial.seed, "host_file_system": trial.host.name(),
        "sync": trial.sync.name(), "disks": disks,
    });
    format!("{whole}\n")
}

fn table(outcomes: &[Outcome]) -> String {
    let mut text = format!(
        "{:<46} {:<38} {:>10} {:>12} {:>5}\n",
        "disk", "when the host was full, the guest", "wrote on", "acknowledged", "lost"
    );
    for one in outcomes {
        text += &format!(
            "{:<46} {:<38} {:>10} {:>12} {:>5}\n",
            one.what,
            seen(one),
            if one.resumed() { "yes" } else { "no" },
            format!("{}+{}", one.before, one.after),
            one.lost
        );
    }
    text + "acknowledged: records before the host was full + after there was space again\n"
}

fn seen(one: &Outcome) -> String {
    match (one.ending(), &one.error) {
        (Ending::Paused, _) => "was paused by QEMU, noticed nothing".to_owned(),
        (Ending::Error, Some((_, reason))) if one.pauses > 0 => {
            format!("was paused, then: {reason}")
        }
        (_, Some((_, reason))) => format!("got: {reason}"),
        (Ending::NeverFull, None) => "never ran out of space".to_owned(),
        (_, None) => "was told of no error".to_owned(),
    }
}
