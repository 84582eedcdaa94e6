//! `assay lab up`, `run`, `ssh` and `down`: starts and removes guests, and runs commands in them.

use super::documents;
use super::machine::{Machine, ZfsArg};
use super::open::Lab;
use super::shell;
use crate::context::print;
use crate::status::Status;
use anyhow::Context as _;
use assay_lab::{CommandOutputPart, Guest, GuestRegistry};
use assay_model::Nanos;
use assay_model::SCHEMA_VERSION;
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::time::Duration;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay lab up
  assay lab up --guest nas --memory 2G --disk 1G --disk 1G --disk 1G,iops=50
  assay lab up --zfs backports --disk 4G,format=qcow2,cache=none,aio=native,dir=/srv")]
pub(super) struct Up {
    /// Name the guest: letters, digits and dashes
    #[arg(long, value_name = "NAME", default_value = "lab")]
    guest: String,
    /// Positional form of `--guest`: `assay lab up NAME`
    #[arg(value_name = "NAME", conflicts_with = "guest", hide = true)]
    name: Option<String>,
    #[command(flatten)]
    machine: Machine,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay lab run -- zpool status -v
  assay lab run --fresh --disk 512M -- mkfs.xfs /dev/vdb
  assay lab run --input -- sh -s < script.sh")]
pub(super) struct Run {
    /// Use this guest; not needed if exactly one is running
    #[arg(long, value_name = "NAME")]
    guest: Option<String>,
    /// Start a new guest even if one is running
    #[arg(long, conflicts_with = "guest")]
    fresh: bool,
    /// Pass standard input to the command
    #[arg(short, long)]
    input: bool,
    /// Kill the command after this time
    #[arg(long, value_name = "TIME")]
    timeout: Option<Nanos>,
    #[command(flatten)]
    machine: Machine,
    /// Command and its arguments
    #[arg(required = true, last = true)]
    command: Vec<OsString>,
}

#[derive(clap::Args)]
pub(super) struct Ssh {
    /// Use this guest; not needed if exactly one is running
    #[arg(long, value_name = "NAME")]
    guest: Option<String>,
    /// Positional form of `--guest`: `assay lab ssh NAME`
    #[arg(value_name = "NAME", conflicts_with = "guest", hide = true)]
    name: Option<String>,
}

#[derive(clap::Args)]
pub(super) struct Down {
    /// Remove this guest (repeatable); not needed if only one is running
    #[arg(long, value_name = "NAME")]
    guest: Vec<String>,
    /// Positional form of `--guest`: `assay lab down NAME`
    #[arg(value_name = "NAME", hide = true)]
    names: Vec<String>,
    /// Remove all guests
    #[arg(long, conflicts_with_all = ["guest", "names"])]
    all: bool,
}

/// Exit status of a killed command (SIGKILL).
const KILLED: i32 = 128 + 9;

impl Lab {
    pub(super) fn up(&self, up: &Up) -> anyhow::Result<Status> {
        // Checked before an image is built.
        let name = up.name.as_ref().unwrap_or(&up.guest);
        GuestRegistry::check_name(name)?;
        let guest = self.boot(name, &up.machine, true)?;
        let entry = guest.entry();
        print(&match up.json {
            true => documents::printed(&documents::Up {
                schema: SCHEMA_VERSION,
                guest: documents::Guest::of(entry),
            })?,
            false => format!(
                "guest {0} is up: `assay lab ssh --guest {0}` for a shell, `assay lab down --guest {0}` removes it\n",
                entry.name
            ),
        })?;
        Ok(Status::Ok)
    }

    pub(super) fn run(&self, run: &Run) -> anyhow::Result<Status> {
        let machine = &run.machine;
        let special = machine.cpu.is_some() || machine.zfs != ZfsArg::Stable;
        let fresh = run.fresh || special || !machine.disk.is_empty();
        let guest = match fresh && run.guest.is_none() {
            true => None,
            false => self.chosen(run.guest.as_deref())?,
        };
        let guest = match guest {
            Some(guest) => guest,
            None => self.boot(&format!("run-{}", std::process::id()), &run.machine, false)?,
        };
        let argv: Vec<&OsStr> = run.command.iter().map(OsString::as_os_str).collect();
        let input = run.input.then(shell::standard_input);
        let limit = run.timeout.map(Duration::from);
        let mut failed = None;
        let said = guest.said();
        let status = guest.stream(&argv, limit, input, &mut |output| {
            let written = pass_on(output);
            if let Err(error) = written {
                failed.get_or_insert(error);
                self.cancel.cancel();
            }
        });
        if matches!(status, Ok(KILLED))
            && let Some(why) = guest.killed_since(said)
        {
            eprintln!("note: {why}");
        }
        drop(guest);
        if let Some(error) = failed {
            return Err(error.into());
        }
        shell::exit(status?)
    }

    pub(super) fn ssh(&self, ssh: &Ssh) -> anyhow::Result<Status> {
        let name = ssh.guest.as_deref().or(ssh.name.as_deref());
        shell::open(&self.running(name)?)
    }

    pub(super) fn down(&self, down: &Down) -> anyhow::Result<Status> {
        let named = [&down.guest[..], &down.names].concat();
        let names = match (down.all, named.as_slice()) {
            (true, _) => self.up_names(),
            (false, []) => {
                let guest = self.chosen(None)?;
                let guest = guest.context("no guest is up")?;
                vec![guest.entry().name.clone()]
            }
            (false, _) => named,
        };
        for name in names {
            Guest::attach(&self.state, &name, &self.cancel)?.kill()?;
            print(&format!("guest {name} is gone\n"))?;
        }
        Ok(Status::Ok)
    }
}

pub(super) fn pass_on(output: CommandOutputPart<'_>) -> std::io::Result<()> {
    match output {
        CommandOutputPart::Out(bytes) => {
            let mut stdout = std::io::stdout().lock();
            stdout.write_all(bytes).and_then(|()| stdout.flush())
        }
        CommandOutputPart::Err(bytes) => std::io::stderr().lock().write_all(bytes),
    }
}
