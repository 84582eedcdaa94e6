//! Measures and changes another machine: real OpenSSH servers on ports of this machine, interrupted connections, and
//! processes killed in the middle.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

#[path = "../common/mod.rs"]
mod common;
mod counters;
mod cut;
mod hostile;
mod rings;
mod tuned;

use common::servers::Servers;
use common::{Home, Ran};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A machine over ssh, and its changed setting.
struct Machine {
    servers: Servers,
    home: Home,
    config: String,
}

impl Machine {
    /// Creates it; `None` without sshd.
    fn new() -> Option<Self> {
        let mut servers = Servers::new()?;
        let state = servers.path("state");
        // The other machine has a separate state directory.
        servers.machine("box", &format!("SetEnv ASSAY_STATE={}", state.display()));
        let machine = Self {
            config: servers.config(),
            servers,
            home: Home::new(),
        };
        std::fs::write(machine.setting(), "a").unwrap();
        let set = "printf %s \"$1\" >\"$2\"";
        common::script(machine.servers.dir.path(), "set", set);
        std::fs::write(
            machine.page(),
            page(&machine.servers.path("set"), &machine.setting()),
        )
        .unwrap();
        Some(machine)
    }

    /// Returns the setting that a trial changes: a file that contains `a`.
    fn setting(&self) -> PathBuf {
        self.servers.path("setting")
    }

    /// Returns a page that writes `b` into it.
    fn page(&self) -> PathBuf {
        self.servers.path("nothing.md")
    }

    fn reads(&self) -> String {
        std::fs::read_to_string(self.setting()).unwrap()
    }

    /// Returns a command line for the machine with this program as the upload. `silence` is in seconds.
    fn as_it_is(&self, args: &[&str], silence: u32) -> Command {
        let mut command = self.home.command(args);
        command.args(["--host", "box", "--ssh-config", &self.config]);
        command.args(["--silence", &silence.to_string()]);
        command
    }

    /// Returns the same with a smaller program.
    fn command(&self, args: &[&str], silence: u32) -> Command {
        let mut command = self.as_it_is(args, silence);
        command.args(["--remote-assay", common::uploaded()]);
        command
    }

    fn run(&self, args: &[&str], silence: u32) -> Ran {
        common::ended(self.command(args, silence))
    }

    /// Returns the trial of the page.
    fn trial(&self, more: &[&str], silence: u32) -> Command {
        let page = self.page().display().to_string();
        let mut args = vec![
            "trial", &page, "here", "--yes", "--slot", "200ms", "--seed", "3",
        ];
        args.extend(more);
        self.command(&args, silence)
    }

    /// Returns what is left on the machine: processes of the program, and its state.
    fn left(&self) -> Vec<String> {
        let mut left: Vec<_> = self.processes().into_iter().map(|(_, line)| line).collect();
        let journal = self.servers.path("state").join("journal/sessions");
        if journal.exists() {
            left.extend(common::entries(&journal));
        }
        left
    }

    /// Returns server and watchdog on the machine with their command lines. They inherit the machine's own state
    /// directory, so that those of other tests and of other programs on this computer do not count.
    fn processes(&self) -> Vec<(Pid, String)> {
        let state = format!("ASSAY_STATE={}", self.servers.path("state").display());
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let name = entry.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let read = |file: &str| std::fs::read(entry.path().join(file)).unwrap_or_default();
            let line = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
            let environment = read("environ");
            let is_here = || {
                environment
                    .split(|byte| *byte == 0)
                    .any(|one| one == state.as_bytes())
            };
            if let Some(pid) =
                Pid::from_raw(pid).filter(|_| line.contains(" dev remote") && is_here())
            {
                found.push((pid, line));
            }
        }
        found
    }

    /// Returns the process of the server, or of its watchdog.
    fn process(&self, which: &str) -> Pid {
        let all = self.processes();
        let word = format!(" dev {which} ");
        // The shell that started it has the same arguments.
        let mut found = all
            .iter()
            .filter(|(_, line)| line.contains(&word) && !line.starts_with("sh"));
        found.next().unwrap_or_else(|| panic!("{which}: {all:?}")).0
    }

    /// Returns the verb that runs below the server.
    fn verb(&self) -> Pid {
        let parent = self.process("remote").as_raw_nonzero().get();
        let tasks = std::fs::read_dir(format!("/proc/{parent}/task"))
            .unwrap()
            .flatten();
        let all = tasks
            .map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
        let all = all.collect::<Vec<_>>().join(" ");
        let is_verb = |pid: &&str| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            !String::from_utf8_lossy(&line).contains("remote-guard")
        };
        let pid = all
            .split_whitespace()
            .find(is_verb)
            .unwrap_or_else(|| panic!("no verb: {all}"));
        Pid::from_raw(pid.parse().unwrap()).unwrap()
    }
}

fn signal(pid: Pid, signal: Signal) {
    let _ = kill_process(pid, signal);
}

/// Returns the ssh of a child process, if it runs.
fn ssh_of(child: &std::process::Child) -> Option<Pid> {
    let is_its_ssh = |pid: &Pid| {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
        let stat = stat.unwrap_or_default();
        let mut words = stat.split_whitespace();
        let name = words.nth(1) == Some("(ssh)");
        name && words.nth(1) == Some(child.id().to_string().as_str())
    };
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(Pid::from_raw).find(is_its_ssh)
}

/// Time limit in seconds for what takes some 20 s on an idle machine.
const LIMIT: u64 = 180;

/// Waits until a condition holds.
fn until(what: &str, limit: u64, mut so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(limit);
    while !so() {
        assert!(Instant::now() < end, "not in {limit} s: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Starts a command without output.
fn start(mut command: Command, to: &Path) -> std::process::Child {
    let file = std::fs::File::create(to).unwrap();
    command.stdout(Stdio::null()).stderr(file).spawn().unwrap()
}

fn page(set: &Path, setting: &Path) -> String {
    let (set, setting) = (set.display(), setting.display());
    format!(
        r#"+++
title = "A setting that nothing reads"
statement = "Write b instead of a into a file."
predicts = "No difference at all."
[source]
who = "a test"
claimed = "Nothing."
[literature]
standing = "conditional"
text = "Nobody reads the file."
references = ["a test"]
[risk]
level = "low"
text = "None."
[trial]
target = "address"
default_target = "here"
metric = "p50"
slot_seconds = 0.2
washout_seconds = 0.0
[trial.change]
kind = "set"
value = "b"
setting = {{ kind = "command", read = ["cat", "{setting}"], apply = ["{set}", "{{value}}", "{setting}"], undo = ["{set}", "{{value}}", "{setting}"] }}
[trial.load]
kind = "command"
argv = ["sleep", "0.01"]
+++
## Claim
Nothing.
## Why it may help
It does not.
## When it does not apply
Never.
## How we test
The load.
## Undo
The old value.
## Sources
a test
"#
    )
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn a_run_over_ssh_is_in_the_store_here_and_nothing_is_left_there() {
    let Some(machine) = Machine::new().filter(|_| common::fio()) else {
        return;
    };
    let target = machine.home.target();
    let dir = target.path().display().to_string();
    let args = [
        "run",
        &dir,
        "--rw",
        "randread",
        "--bs",
        "4k",
        "--size",
        "4M",
        "--runtime",
        "200ms",
        "--ramp",
        "0s",
        "--rounds",
        "2",
        "--json",
    ];
    let ran = common::ended(machine.as_it_is(&args, 1001));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let document = json(&ran.stdout);
    assert_eq!(document["run"]["state"], "complete");
    assert_eq!(machine.left(), Vec::<String>::new());
    assert_eq!(common::entries(target.path()), Vec::<String>::new());
    // It is a run of the store and of that machine.
    let list = machine.home.assay(&["runs", "--json"]);
    let list = json(&list.stdout);
    assert_eq!(list["runs"][0]["samples"], 2);
    assert_eq!(list["runs"][0]["machine"]["name"], "box");
    let shown = machine.home.assay(&["show", "last"]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
}

#[test]
fn a_plan_and_a_report_are_files_here() {
    let Some(machine) = Machine::new().filter(|_| common::fio()) else {
        return;
    };
    let target = machine.home.target();
    let plan = machine.home.dir.path().join("my plan.toml");
    let text = format!(
        "name = \"mine\"\ntargets = [{:?}]\nruntime = \"200ms\"\nramp = \"0s\"\nrounds = 1\nfile_size = \"4M\"\n[[workload]]\nname = \"r\"\npattern = \"randread\"\nblock_size = \"4k\"\n",
        target.path()
    );
    std::fs::write(&plan, text).unwrap();
    let html = machine.home.dir.path().join("r.html");
    let (plan, page) = (plan.display().to_string(), html.display().to_string());
    let ran = machine.run(
        &[
            "run",
            "--plan-file",
            &plan,
            "--html",
            &page,
            "--want",
            "r.p99 <= 1ns",
        ],
        1002,
    );
    // The criterion is missed.
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(
        std::fs::read_to_string(html)
            .unwrap()
            .to_ascii_lowercase()
            .starts_with("<!doctype html>")
    );
    assert_eq!(machine.left(), Vec::<String>::new());
}

#[test]
fn a_trial_over_ssh_ends_with_its_verdict_and_the_setting_as_it_was() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let ran = common::ended(machine.trial(&["--pairs", "8", "--json"], 1003));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let document = json(&ran.stdout);
    assert_eq!(document["trial"]["plan"]["advice"], "nothing");
    assert_eq!(machine.reads(), "a");
    assert_eq!(machine.left(), Vec::<String>::new());
    let list = json(&machine.home.assay(&["trial", "--list", "--json"]).stdout);
    assert_eq!(list["trials"].as_array().unwrap().len(), 1);
    // There is no terminal to ask on, and no `--yes`.
    let page = machine.page().display().to_string();
    let ran = machine.run(&["trial", &page, "here"], 1004);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("--yes"), "{}", ran.stderr);
    let ran = machine.run(&["trial", &page, "here", "--dry-run"], 1004);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stdout.is_empty());
}

#[test]
fn options_about_another_machine_need_one() {
    let home = Home::new();
    for args in [
        &["run", "quick", ".", "--sudo"][..],
        &["run", "quick", ".", "--silence", "20"],
        &["trial", "noatime", ".", "--remote-assay", "/bin/true"],
    ] {
        let ran = home.assay(args);
        assert_eq!(ran.code, Some(2), "{args:?}");
        assert!(ran.stderr.contains("--host"), "{}", ran.stderr);
    }
}
