//! A killed or interrupted session: the machine is restored without another start of assay, and a resumed session
//! ends like an uninterrupted one.

use super::LESS;
use super::planted::{Planted, json, names, until};
use crate::common::ran;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::{Child, Stdio};

/// Default changes at which it is killed; `ASSAY_ATTACK` multiplies.
const KILLS: [u32; 4] = [1, 2, 5, 12];

pub fn begin(planted: &Planted, words: &[String]) -> Child {
    let mut command = planted.home.command(words);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    child.spawn().unwrap()
}

/// Waits until the change was applied this often.
fn wait_for_changes(planted: &Planted, changes: u32) {
    for number in 0..changes {
        if number > 0 {
            until("its end", || !planted.text().contains("mode = fast"));
        }
        until("a change", || planted.text().contains("mode = fast"));
    }
}

pub fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

#[test]
fn after_a_kill_the_machine_is_as_before_and_a_resume_goes_on() {
    let planted = Planted::new();
    let mut words = planted.words(LESS, &["fast", "idle"], &[]);
    for changes in KILLS {
        let mut child = begin(&planted, &words);
        wait_for_changes(&planted, changes);
        signal(&child, Signal::KILL);
        child.wait().unwrap();
        // assay is not started again: the stand-by process reverts.
        until("everything is reverted", || {
            planted.is_as_before() && planted.has_no_open_session()
        });
        words = ["tune", "--resume", "--json", "--no-boot-undo"]
            .map(str::to_owned)
            .into();
        let listed = planted.home.assay(&["tune", "--list"]);
        assert_eq!(listed.stdout.lines().count(), 2, "{}", listed.stdout);
    }
    let child = begin(&planted, &words);
    let ran = ran(child.wait_with_output().unwrap());
    let document = json(&ran);
    assert_eq!(ran.code, Some(0), "{}\n{document:#}", ran.stderr);
    assert_eq!(names(&document, "kept"), ["fast"]);
    assert_eq!(planted.home.assay(&["tune", "--undo"]).code, Some(0));
    assert!(planted.is_as_before());
}

#[test]
fn an_interrupted_session_reverts_and_keeps_what_was_measured() {
    let planted = Planted::new();
    let child = begin(&planted, &planted.words(LESS, &["fast"], &[]));
    wait_for_changes(&planted, 3);
    signal(&child, Signal::INT);
    let ran = ran(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    assert!(planted.is_as_before(), "{}", planted.text());
    let document = json(&ran);
    assert_eq!(document["state"], "stopped");
    assert!(!document["seen"].as_array().unwrap().is_empty());
}

/// A load with a process in the background. Writes the numbers of both processes to the file in its second argument.
const WITH_CHILD: &str = r#"#!/bin/sh
sleep 1000 &
echo $$ $! > "$2.new" && mv "$2.new" "$2"
sleep 0.3
"#;

/// Whether one of the processes still runs the load or its `sleep`. Zombies have no command line.
fn runs(numbers: &str) -> bool {
    let command = |pid: &str| fs::read_to_string(format!("/proc/{pid}/cmdline"));
    let mut commands = numbers.split_whitespace().map(command);
    commands.any(|line| line.is_ok_and(|line| line.contains("sleep") || line.contains("spawns")))
}

#[test]
fn the_load_and_its_processes_end_with_assay() {
    for how in [Signal::KILL, Signal::INT, Signal::TERM] {
        let planted = Planted::new();
        let program = planted.script("spawns", WITH_CHILD);
        let numbers = planted.conf().with_file_name("numbers");
        let load =
            [&program, &planted.conf(), &numbers].map(|path| path.to_str().unwrap().to_owned());
        let mut words = planted.words(LESS, &["fast"], &[]);
        words[2] = load.join(" ");
        let mut child = begin(&planted, &words);
        until("a run of the load", || numbers.exists());
        signal(&child, how);
        child.wait().unwrap();
        until("the end of the load", || {
            !runs(&fs::read_to_string(&numbers).unwrap())
        });
        until("everything is reverted", || {
            planted.is_as_before() && planted.has_no_open_session()
        });
    }
}
