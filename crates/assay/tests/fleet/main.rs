//! Other machines over ssh: real OpenSSH servers on ports of this machine, some with a separate root, some hostile.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod changed;
#[path = "../common/mod.rs"]
mod common;
mod hostile;
mod over_ssh;
mod proxmox;
mod refused;

use common::{Home, Ran};
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Splits the output into a line for each finished machine, and the report.
fn parts(text: &str) -> (Vec<&str>, &str) {
    let (lines, report) = text.split_once("\n\n").unwrap();
    let lines = lines.lines().filter(|line| !line.starts_with(' '));
    (lines.collect(), report)
}

fn run(home: &Home, config: &str, args: &[&str]) -> Ran {
    let mut command = home.command(args);
    command.args(["--ssh-config", config]);
    command.env("XDG_CONFIG_HOME", home.dir.path().join("config"));
    common::ended(command)
}
