//! `assay lab stall`: stalls disks of a guest repeatedly.

use super::open::Lab;
use super::{session, shell};
use crate::context::print;
use crate::status::Status;
use assay_lab::{Stalled, Stalls};
use assay_loads::Cancel;
use assay_model::Nanos;
use std::ffi::{OsStr, OsString};
use std::time::Duration;

/// Arguments of `assay lab stall`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay lab stall disk1 --every 5s --length 300ms                    until Ctrl-C
  assay lab stall disk1 disk2 --every 2s --length 1s -- zpool scrub -w tank
  assay lab stall disk1 --every 1s --length 200ms -- fio job.fio

In a stall one request may pass and all others wait, as on a disk that collects garbage, tries to read a
bad sector again or has lost a path. They go on when it ends.")]
pub(super) struct Stall {
    /// Names of disks, as `assay lab list` shows them
    #[arg(required = true, value_name = "DISK")]
    disks: Vec<String>,
    /// Start a stall this often
    #[arg(long, value_name = "TIME", default_value = "5s")]
    every: Nanos,
    /// Stall for this long
    #[arg(long, value_name = "TIME", default_value = "300ms")]
    length: Nanos,
    /// Use this guest; not needed if exactly one is running
    #[arg(long, value_name = "NAME")]
    guest: Option<String>,
    /// Command to run in the guest during the stalls
    #[arg(last = true)]
    command: Vec<OsString>,
}

impl Lab {
    pub(super) fn stall(&self, args: &Stall) -> anyhow::Result<Status> {
        let (every, length) = (Duration::from(args.every), Duration::from(args.length));
        anyhow::ensure!(
            Duration::from_millis(10) <= length && length < every,
            "--length must be at least 10 ms and shorter than --every"
        );
        let stalls = Stalls { every, length };
        let guest = self.running(args.guest.as_deref())?;
        if args.command.is_empty() {
            let seen = guest.stall(&args.disks, stalls, &self.cancel)?;
            print(&told(seen))?;
            return Ok(Status::Ok);
        }
        let argv: Vec<&OsStr> = args.command.iter().map(OsString::as_os_str).collect();
        let over = Cancel::default();
        let (status, seen) = std::thread::scope(|scope| {
            let stalling = scope.spawn(|| guest.stall(&args.disks, stalls, &over));
            let status = guest.stream(&argv, None, None, &mut |output| {
                // A closed reader of the output does not end the stalls.
                let _ = session::pass_on(output);
            });
            over.cancel();
            (status, stalling.join())
        });
        let seen =
            seen.map_err(|_| anyhow::anyhow!("the thread that stalls disks ended unexpectedly"))?;
        match seen {
            Ok(seen) => eprint!("{}", told(seen)),
            // The error of the guest contains more information.
            Err(error) if status.is_ok() => return Err(error.into()),
            Err(_) => {}
        }
        shell::exit(status?)
    }
}

fn told(seen: Stalled) -> String {
    let (count, longest) = (seen.count, Nanos::from(seen.longest));
    match count {
        0 => "no stall: it was over before the first\n".to_owned(),
        1 => format!("1 stall of {longest}\n"),
        _ => format!("{count} stalls, the longest {longest}\n"),
    }
}
