//! Whatever ends in the middle of a trial, the machine is restored soon after.

use crate::{LIMIT, Machine, signal, ssh_of, start, until};
use rustix::process::{Pid, Signal};
use std::process::Child;

/// Starts a trial and waits until its change is in effect.
fn under_way(machine: &Machine, silence: u32) -> Child {
    let log = machine.home.dir.path().join("log");
    let child = start(machine.trial(&["--pairs", "1000"], silence), &log);
    let what = || format!("a change is in effect: {:?}", std::fs::read_to_string(&log));
    let mut seen = 0;
    until(&what(), LIMIT, || {
        // Not the first change: the noise is measured before it.
        seen += i32::from(machine.reads() == "b");
        seen > 3 && machine.reads() == "b"
    });
    child
}

/// Checks the restored state: the setting, the journal, the processes, the directories.
fn as_it_was(machine: &Machine) {
    let mut left = Vec::new();
    until("nothing is left", LIMIT, || {
        let now = machine.left();
        // Reports a failed wait.
        if now != left {
            eprintln!("left: {now:?}");
        }
        left = now;
        left.is_empty()
    });
    assert_eq!(machine.reads(), "a");
}

fn own(child: &Child) -> Pid {
    Pid::from_child(child)
}

#[test]
fn when_the_assay_here_is_killed() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let mut child = under_way(&machine, 1101);
    signal(own(&child), Signal::KILL);
    let _ = child.wait();
    as_it_was(&machine);
}

#[test]
fn when_the_assay_here_stands_still() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let mut child = under_way(&machine, 11);
    signal(own(&child), Signal::STOP);
    as_it_was(&machine);
    signal(own(&child), Signal::CONT);
    let _ = child.wait();
}

#[test]
fn when_the_other_end_is_killed() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let mut child = under_way(&machine, 1103);
    signal(machine.process("remote"), Signal::KILL);
    as_it_was(&machine);
    assert_eq!(child.wait().unwrap().code(), Some(3));
}

#[test]
fn when_the_other_end_stands_still() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let mut child = under_way(&machine, 10);
    signal(machine.process("remote"), Signal::STOP);
    as_it_was(&machine);
    assert_eq!(child.wait().unwrap().code(), Some(3));
}

#[test]
fn when_the_trial_there_is_killed() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let mut child = under_way(&machine, 1105);
    signal(machine.verb(), Signal::KILL);
    assert_eq!(child.wait().unwrap().code(), Some(2));
    as_it_was(&machine);
}

#[test]
fn when_the_guard_is_killed_and_then_the_link_is_cut() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let mut child = under_way(&machine, 1106);
    signal(machine.process("remote-guard"), Signal::KILL);
    signal(own(&child), Signal::KILL);
    let _ = child.wait();
    as_it_was(&machine);
}

#[test]
fn what_was_interrupted_is_kept_and_gone_on_with() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let mut child = under_way(&machine, 1107);
    signal(own(&child), Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    as_it_was(&machine);
    let list = machine.home.assay(&["trial", "--list", "--json"]);
    let before = crate::json(&list.stdout);
    assert_eq!(before["trials"].as_array().unwrap().len(), 1);
    let resumed = machine.run(
        &["trial", "--resume", "1", "--budget", "8s", "--json"],
        1108,
    );
    assert!(matches!(resumed.code, Some(0)), "{}", resumed.stderr);
    as_it_was(&machine);
    let list = machine.home.assay(&["trial", "--list", "--json"]);
    let after = crate::json(&list.stdout);
    // The same trial with more pairs.
    assert_eq!(after["trials"].as_array().unwrap().len(), 1);
    let pairs = |list: &serde_json::Value| list["trials"][0]["pairs"].clone();
    assert_ne!(pairs(&before), pairs(&after), "{after:#}");
}

/// The verb reads the journal there over another connection before it ends.
#[test]
fn when_ssh_is_killed_the_journal_is_asked_what_was_taken_back() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let mut child = under_way(&machine, 1111);
    signal(ssh_of(&child).unwrap(), Signal::KILL);
    assert_eq!(child.wait().unwrap().code(), Some(3));
    assert_eq!(machine.reads(), "a");
    assert!(machine.left().is_empty(), "{:?}", machine.left());
    let log = std::fs::read_to_string(machine.home.dir.path().join("log")).unwrap();
    assert!(log.contains("signal 9") && !log.contains("137"), "{log}");
    assert!(log.lines().any(|line| line.starts_with("box: ")), "{log}");
}

/// Both sides are killed at once, as in a power cut without a reboot: recovery is by request.
#[test]
fn what_nobody_could_take_back_is_taken_back_on_request() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let mut child = under_way(&machine, 1109);
    // Otherwise it would read the journal itself after the connection is lost.
    signal(own(&child), Signal::STOP);
    signal(machine.process("remote-guard"), Signal::KILL);
    let verb = machine.verb();
    signal(machine.process("remote"), Signal::KILL);
    signal(verb, Signal::KILL);
    signal(own(&child), Signal::KILL);
    let _ = child.wait();
    assert!(!machine.left().is_empty(), "it had been taken back already");
    let ran = machine.run(&["trial", "--recover"], 1110);
    // 1: something of other processes is left on this machine, with another state directory.
    assert!(
        matches!(ran.code, Some(0 | 1)),
        "{} {}",
        ran.stdout,
        ran.stderr
    );
    as_it_was(&machine);
}
