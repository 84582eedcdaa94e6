//! Sessions of tuning that are continued and confirmed on another machine, and rings of machines.

use super::{Machine, json, page, signal, start, until};
use crate::common;
use rustix::process::{Pid, Signal};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// Two machines, each with a setting of its own that makes the load three times as fast.
struct Ring {
    machine: Machine,
    load: String,
}

impl Ring {
    fn new() -> Option<Self> {
        let mut machine = Machine::new()?;
        let at = |name: &str| machine.servers.path(name);
        let text = |path: PathBuf| path.display().to_string();
        let dir = machine.servers.dir.path();
        // `PLANTED` names the setting of the second machine.
        common::script(dir, "show", "cat \"${PLANTED:-$1}\"");
        common::script(dir, "set", "printf %s \"$1\" >\"${PLANTED:-$2}\"");
        common::script(
            dir,
            "work",
            "case $(cat \"${PLANTED:-$1}\") in b) exec sleep 0.02 ;; *) exec sleep 0.09 ;; esac",
        );
        std::fs::write(at("second"), "a").unwrap();
        let mut locks = std::fs::DirBuilder::new();
        locks.mode(0o700).create(at("locks2")).unwrap();
        let show = format!("read = [\"{}\"", text(at("show")));
        let with_show = page(&at("set"), &machine.setting()).replace("read = [\"cat\"", &show);
        std::fs::write(machine.page(), with_show).unwrap();
        let more = format!(
            "SetEnv ASSAY_STATE={} ASSAY_LOCKS={} PLANTED={}",
            text(at("state2")),
            text(at("locks2")),
            text(at("second"))
        );
        let load = format!("{} {}", text(at("work")), text(machine.setting()));
        machine.servers.machine("twin", &more);
        machine.config = machine.servers.config();
        Some(Self { machine, load })
    }

    /// Values of the settings of both.
    fn read(&self) -> [String; 2] {
        let second = std::fs::read_to_string(self.machine.servers.path("second"));
        [self.machine.reads(), second.unwrap()]
    }

    fn command(&self, args: &[&str], hosts: &[&str]) -> std::process::Command {
        let mut command = self.machine.home.command(args);
        for host in hosts {
            command.args(["--host", host]);
        }
        command.args(["--ssh-config", &self.machine.config, "--silence", "62"]);
        command.args(["--remote-assay", common::uploaded()]);
        command
    }

    fn run(&self, args: &[&str], hosts: &[&str]) -> common::Ran {
        common::ended(self.command(args, hosts))
    }

    /// Runs a command and interrupts it as soon as a setting is changed. Returns its exit status.
    fn interrupt(&self, args: &[&str], hosts: &[&str], changed: usize, log: &Path) -> Option<i32> {
        let mut child = start(self.command(args, hosts), log);
        until("the change", 120, || self.read()[changed] == "b");
        signal(Pid::from_child(&child), Signal::INT);
        child.wait().unwrap().code()
    }
}

#[test]
fn a_session_is_continued_confirmed_and_applied_to_rings() {
    let Some(ring) = Ring::new() else {
        return;
    };
    let log = ring.machine.servers.path("stderr");
    let page = ring.machine.page().display().to_string();
    let shown = |log: &Path| std::fs::read_to_string(log).unwrap();
    let tune = [
        "tune",
        "--load",
        &ring.load,
        "--want",
        "less p50",
        "--only",
        &page,
        "--slot",
        "100ms",
        "--budget",
        "40s",
        "--no-tail-guard",
        "--no-boot-undo",
        "--seed",
        "3",
        "--yes",
    ];
    let code = ring.interrupt(&tune, &["box"], 0, &log);
    assert_eq!(code, Some(130), "{}", shown(&log));
    assert_eq!(ring.read(), ["a", "a"]);
    let ran = ring.run(&["tune", "--resume", "1", "--json"], &["box"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(json(&ran.stdout)["kept"].as_array().unwrap().len(), 1);
    assert_eq!(ring.read(), ["b", "a"]);
    let ran = ring.run(&["tune", "--confirm", "1"], &["box"]);
    assert_eq!(ran.code, Some(0), "{} {}", ran.stdout, ran.stderr);
    assert_eq!(ring.read(), ["b", "a"]);
    // What was confirmed is in the store here.
    let list = ring.machine.home.assay(&["tune", "--list", "--json"]);
    assert_eq!(list.code, Some(0), "{}", list.stderr);
    let undone = ring.run(&["tune", "--undo", "1"], &["box"]);
    assert_eq!(undone.code, Some(0), "{}", undone.stderr);
    assert_eq!(ring.read(), ["a", "a"]);

    let apply = [
        "tune",
        "--apply",
        "1",
        "--only",
        &page,
        "--budget",
        "40s",
        "--no-boot-undo",
        "--yes",
        "--json",
    ];
    let ran = ring.run(&apply, &["box,twin"]);
    assert_eq!(ran.code, Some(0), "{} {}", ran.stdout, ran.stderr);
    assert_eq!(ring.read(), ["b", "b"]);
    let document = json(&ran.stdout);
    let hosts = document["rings"][0]["hosts"].as_array().unwrap();
    assert_eq!(hosts.len(), 2, "{document:#}");
    for host in hosts {
        let session = host["session"].to_string();
        let name = host["host"].as_str().unwrap();
        let undone = ring.run(&["tune", "--undo", &session], &[name]);
        assert_eq!(undone.code, Some(0), "{name}: {}", undone.stderr);
    }
    assert_eq!(ring.read(), ["a", "a"]);

    // An interruption in the second ring undoes the first one too.
    let code = ring.interrupt(&apply, &["box", "twin"], 1, &log);
    assert_eq!(code, Some(130), "{}", shown(&log));
    assert_eq!(ring.read(), ["a", "a"], "{}", shown(&log));
    assert!(ring.machine.left().is_empty(), "{:?}", ring.machine.left());
}
