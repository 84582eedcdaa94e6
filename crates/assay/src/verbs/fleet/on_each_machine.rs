//! `assay fleet run|trial|disks`: runs the verb with `--host` on the machines one after the other. In parallel,
//! machines that share a network, storage or host would disturb each other.

use super::Known;
use crate::context;
use crate::global::Global;
use crate::machine_source::How;
use crate::status::Status;
use anyhow::Context as _;
use assay_fleet::Machine;
use assay_host::process::{Dies, Running};
use assay_render::text::escape_line;
use rustix::process::Signal;
use std::ffi::OsString;
use std::process::Command;
use std::time::Duration;

#[derive(clap::Args)]
pub struct Args {
    /// Group, machine or pattern of names; `all` is every machine
    #[arg(value_name = "GROUP|MACHINE")]
    name: String,
    #[command(flatten)]
    known: Known,
    #[command(flatten)]
    how: How,
    /// Arguments for the command on each machine, after --
    #[arg(value_name = "ARGUMENT", last = true)]
    arguments: Vec<OsString>,
}

/// Runs the verb on each machine, and lists the failures at the end.
pub fn run(verb: &str, args: &Args, global: &Global) -> anyhow::Result<Status> {
    let (inventory, others) = args.known.open(args.how.ssh_config().as_deref())?;
    let machines = inventory.choose(std::slice::from_ref(&args.name), others)?;
    let cancel = context::on_signals()?;
    let mut worst = Status::Ok;
    let mut wrong = Vec::new();
    for machine in &machines {
        eprintln!("== {}", escape_line(&machine.name));
        let config = args
            .how
            .ssh_config()
            .or_else(|| inventory.ssh_config.clone());
        let mut command = command(verb, args, machine, global);
        if let Some(config) = config {
            command.arg("--ssh-config").arg(config);
        }
        if !args.arguments.is_empty() {
            command.args(&args.arguments);
        }
        let mut running = Running::start(command, Dies::WithThread).context("assay")?;
        let mut asked = false;
        while !running.wait(Duration::from_millis(100))? {
            if cancel.is_cancelled() && !asked {
                asked = true;
                running.signal(Signal::INT);
            }
        }
        let status = status(running.reap()?.code());
        if status != Status::Ok {
            wrong.push(format!(
                "{} ({})",
                escape_line(&machine.name),
                status as i32
            ));
        }
        if rank(status) > rank(worst) {
            worst = status;
        }
        if cancel.is_cancelled() {
            return Ok(Status::Interrupted);
        }
    }
    if !wrong.is_empty() && machines.len() > 1 {
        eprintln!("exit status other than 0: {}", wrong.join(", "));
    }
    Ok(worst)
}

#[allow(
    clippy::disallowed_methods,
    reason = "the verb on one machine is this program itself"
)]
fn command(verb: &str, args: &Args, machine: &Machine, global: &Global) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args([verb, "--host", &machine.address]);
    if let Some(store) = &global.store {
        command.arg("--store").arg(store);
    }
    if args.how.sudo || machine.sudo.unwrap_or(false) {
        command.arg("--sudo");
    }
    if let Some(seconds) = args.how.deadline.or(machine.deadline) {
        command.args(["--deadline", &seconds.clamp(1, 3600).to_string()]);
    }
    command
}

fn status(code: i32) -> Status {
    match code {
        0 => Status::Ok,
        1 => Status::Findings,
        3 => Status::Unreadable,
        130 => Status::Interrupted,
        _ => Status::Error,
    }
}

/// Returns the rank of a status. The highest rank of all machines determines the exit status.
fn rank(status: Status) -> u8 {
    match status {
        Status::Ok => 0,
        Status::Findings => 1,
        Status::Unreadable => 2,
        Status::Error => 3,
        Status::Interrupted => 4,
    }
}
