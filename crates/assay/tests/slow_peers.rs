//! Machines that send single bytes slowly: `--deadline` limits the total time.
//!
//! The other machine is a slow `ssh` on PATH.
#![allow(
    clippy::disallowed_methods,
    reason = "tests drive the real program and plant files"
)]

mod common;

use common::{Home, Ran, ended, script};
use std::process::Command;

/// Sends bytes outside of lines, lines, or the beginning of a response, slowly.
const DRIPS: [(&str, &str); 4] = [
    ("bytes", "while :; do printf x; sleep 0.2; done"),
    ("lines", "while :; do echo hello; sleep 0.2; done"),
    (
        "complaints",
        "while :; do echo hello >&2; printf y; sleep 0.2; done",
    ),
    // It also reads its input slowly.
    (
        "drops",
        "dd bs=1 count=1000 of=/dev/null 2>/dev/null; while dd bs=64 count=1 of=/dev/null 2>/dev/null; do printf z; sleep 0.2; done",
    ),
];

const VERBS: [&[&str]; 8] = [
    &["run", "quick", "/tmp", "--host", "box"],
    &["trial", "noatime", "/tmp", "--yes", "--host", "box"],
    &["stack", "/tmp", "--measure", "--yes", "--host", "box"],
    &["web", "http://127.0.0.1:9/", "--host", "box"],
    &["web", "http://127.0.0.1:9/", "--from", "box"],
    &["facts", "--host", "box"],
    &["check", "--host", "box"],
    &["fleet", "check", "box"],
];

/// Seconds for `--deadline`.
const DEADLINE: &str = "2";
/// Longer than everything after the deadline: a program that does not end is killed then.
const LONGEST: &str = "60";

fn run(home: &Home, path: &str, words: &[&str]) -> Ran {
    let assay = home.command(words);
    let mut command = Command::new("timeout");
    command
        .args(["-s", "KILL", LONGEST])
        .arg(assay.get_program());
    command
        .args(assay.get_args())
        .args(["--deadline", DEADLINE]);
    for (name, value) in assay.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    command.env("PATH", path).stdin(std::process::Stdio::null());
    ended(command)
}

#[test]
fn attack_a_machine_that_drips_is_given_up() {
    let (mut tried, mut held) = (0, 0);
    for (name, drip) in DRIPS {
        let home = Home::new();
        let bin = home.dir.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        // It responds at once to a query of its configuration.
        script(&bin, "ssh", &format!("[ \"$1\" = -G ] && exit 0\n{drip}"));
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        std::thread::scope(|scope| {
            let all: Vec<_> = VERBS
                .into_iter()
                .map(|words| {
                    let (home, path) = (&home, &path);
                    scope.spawn(move || (words, run(home, path, words)))
                })
                .collect();
            for one in all {
                let (words, ran) = one.join().unwrap();
                tried += 1;
                // A killed program has no exit code.
                assert!(ran.code.is_some(), "{name} {words:?}: {}", ran.stderr);
                let all = ran.stdout + &ran.stderr;
                assert!(all.contains("--deadline"), "{name} {words:?}: {all}");
                held += 1;
            }
        });
    }
    assay_testing::attacked("machines that send a byte now and then", tried, held);
}
