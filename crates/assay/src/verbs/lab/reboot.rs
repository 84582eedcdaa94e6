//! `assay lab reboot`, `snapshot` and `restore`: reboots a guest, or restores an earlier state.

use super::documents::{self, Snapshots};
use super::open::Lab;
use super::progress;
use crate::context::print;
use crate::status::Status;
use assay_lab::{GuestSnapshot, Reboot};
use assay_model::Bytes;
use jiff::Timestamp;
use std::time::Duration;

/// Arguments of `assay lab reboot`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay lab reboot                          its system is asked; its disks stay
  assay lab reboot --reset --guest nas      as the reset button: what is only in its memory is gone")]
pub(super) struct Restart {
    /// Use this guest; not needed if exactly one is running
    #[arg(long, value_name = "NAME")]
    guest: Option<String>,
    /// Reset the guest without shutting down its operating system
    #[arg(long)]
    reset: bool,
}

/// Arguments of `assay lab snapshot`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay lab snapshot                        those that there are
  assay lab snapshot before                 take a snapshot: memory, root and disks
  assay lab restore before                  go back to it
  assay lab snapshot --delete before

Every disk of the guest needs format=qcow2, and QEMU cannot do it with bus=nvme.")]
pub(super) struct Keep {
    /// Name of the snapshot; lists all if omitted
    #[arg(value_name = "TAG")]
    tag: Option<String>,
    /// Delete the snapshot
    #[arg(long, requires = "tag")]
    delete: bool,
    /// Use this guest; not needed if exactly one is running
    #[arg(long, value_name = "NAME")]
    guest: Option<String>,
    /// Print one JSON document instead of text
    #[arg(long, conflicts_with = "tag")]
    json: bool,
}

/// Arguments of `assay lab restore`.
#[derive(clap::Args)]
pub(super) struct Restore {
    /// Name of the snapshot, as `assay lab snapshot` lists it
    tag: String,
    /// Use this guest; not needed if exactly one is running
    #[arg(long, value_name = "NAME")]
    guest: Option<String>,
}

/// Time limit for a reboot or a snapshot. It is long, for emulated guests on a busy machine.
const PATIENCE_WITH_GUESTS: Duration = Duration::from_secs(600);

impl Lab {
    pub(super) fn reboot(&self, args: &Restart) -> anyhow::Result<Status> {
        let guest = self.running(args.guest.as_deref())?;
        let how = match args.reset {
            true => Reboot::Reset,
            false => Reboot::Asked,
        };
        let shown = progress::spinner("the guest starts anew");
        let ended = guest.reboot(how, PATIENCE_WITH_GUESTS);
        shown.finish_and_clear();
        ended?;
        print(&format!("guest {} is up again\n", guest.entry().name))?;
        Ok(Status::Ok)
    }

    pub(super) fn snapshot(&self, args: &Keep) -> anyhow::Result<Status> {
        let mut guest = self.running(args.guest.as_deref())?;
        let name = guest.entry().name.clone();
        let Some(tag) = &args.tag else {
            print(&match args.json {
                true => documents::printed(&Snapshots::of(&name, &guest.snapshots()?))?,
                false => list(&name, &guest.snapshots()?),
            })?;
            return Ok(Status::Ok);
        };
        let shown = progress::spinner("QEMU writes");
        let ended = match args.delete {
            true => guest.delete_snapshot(tag, PATIENCE_WITH_GUESTS),
            false => guest.save_snapshot(tag, PATIENCE_WITH_GUESTS),
        };
        shown.finish_and_clear();
        ended?;
        print(&match args.delete {
            true => format!("snapshot {tag} of guest {name} is gone\n"),
            false => format!("guest {name}: `assay lab restore {tag}` goes back to now\n"),
        })?;
        Ok(Status::Ok)
    }

    pub(super) fn restore(&self, args: &Restore) -> anyhow::Result<Status> {
        let mut guest = self.running(args.guest.as_deref())?;
        let shown = progress::spinner("QEMU reads");
        let ended = guest.load_snapshot(&args.tag, PATIENCE_WITH_GUESTS);
        shown.finish_and_clear();
        ended?;
        print(&format!(
            "guest {} is where it was at {}\n",
            guest.entry().name,
            args.tag
        ))?;
        Ok(Status::Ok)
    }
}

fn time(snapshot: &GuestSnapshot) -> String {
    Timestamp::from_second(snapshot.seconds).map_or(String::new(), |time| time.to_string())
}

fn list(guest: &str, snapshots: &[GuestSnapshot]) -> String {
    if snapshots.is_empty() {
        return format!("guest {guest} has no snapshots\n");
    }
    let line = |one: &GuestSnapshot| {
        let (tag, memory) = (&one.tag, Bytes(one.memory));
        format!("{tag:<24} {}  memory {memory}\n", time(one))
    };
    snapshots.iter().map(line).collect()
}
