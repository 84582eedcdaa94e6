//! Stops assay or its load within a slot: the pair never counts.

use super::{Own, args, json, text, until};
use crate::common::{Home, ran};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Default number of stops of each; `ASSAY_ATTACK` multiplies it.
const STOPS: usize = 1;

fn signal(name: &str, pid: &str) -> bool {
    let mut kill = Command::new("kill");
    kill.args([&format!("-{name}"), pid]).stderr(Stdio::null());
    kill.status().unwrap().success()
}

/// Returns the child processes of a process.
fn children(pid: &str) -> Vec<String> {
    let found = Command::new("pgrep").args(["-P", pid]).output().unwrap();
    let found = String::from_utf8(found.stdout).unwrap();
    found.lines().map(str::to_owned).collect()
}

/// Returns the running load by its script: commands that apply a change run below assay too. The helper process of
/// assay starts the load.
fn load_of(assay: &str, script: &str) -> Option<String> {
    let is_load = |pid: &String| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0)
            .any(|word| word == script.as_bytes())
    };
    let helpers = children(assay);
    helpers.iter().flat_map(|pid| children(pid)).find(is_load)
}

/// Stops assay or its load within a run of the load. A run that ended before the signal does not
/// count: the process continues, and the next run is tried.
fn stop_within_a_run(assay: &str, script: &str, load: bool) -> Option<String> {
    let running = load_of(assay, script)?;
    let victim = if load { running.as_str() } else { assay };
    if !signal("STOP", victim) {
        return None;
    }
    // A zombie keeps its id until assay waits for it, but has no command line.
    if load_of(assay, script).as_deref() == Some(running.as_str()) {
        return Some(victim.to_owned());
    }
    signal("CONT", victim);
    None
}

/// Runs a trial during which assay or its load is stopped once, after the second slot began.
fn stopped(load: bool) -> Value {
    let (home, own) = (Home::new(), Own::new("0.3"));
    let page = own.page();
    let words = args(
        &["trial", text(&page), "--yes", "--json", "--pairs", "4"],
        &["--slot", "1s", "--set", "to=0.31"],
    );
    let mut command = home.command(&words);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    let assay = child.id().to_string();
    // Not the first change, which is a test and reverted at once.
    until("the change", || {
        let changed = || own.value() == "0.31";
        changed() && {
            std::thread::sleep(Duration::from_millis(300));
            changed()
        }
    });
    let script = own.load();
    let mut victim = None;
    until("a stop", || {
        victim = stop_within_a_run(&assay, text(&script), load);
        victim.is_some()
    });
    let victim = victim.unwrap();
    std::thread::sleep(Duration::from_millis(2500));
    signal("CONT", &victim);
    let ran = ran(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    json(&ran)
}

#[test]
fn a_slot_that_was_stopped_never_counts() {
    let factor = std::env::var("ASSAY_ATTACK").ok();
    let factor: usize = factor.and_then(|n| n.parse().ok()).unwrap_or(1);
    // Both mostly wait, so they run in parallel.
    let (tried, held) = std::thread::scope(|scope| {
        let kinds = [false, true].map(|load| scope.spawn(move || stops(load, STOPS * factor)));
        let counts = kinds.map(|kind| kind.join().unwrap());
        (counts[0].0 + counts[1].0, counts[0].1 + counts[1].1)
    });
    println!("attack: stopped slots: tried {tried}, held {held}");
}

/// Stops the load or assay this often; returns the numbers of attempts and successes.
fn stops(load: bool, times: usize) -> (usize, usize) {
    let (mut tried, mut held) = (0, 0);
    for _ in 0..times {
        let trial = stopped(load);
        let pairs = trial["pairs"].as_array().unwrap();
        let void = |pair: &&Value| {
            let reason = pair["reason"].as_str().unwrap_or_default();
            pair["outcome"] == "void" && reason.contains("load-stopped")
        };
        // No counted pair contains a stop of 2.5 s: all sleep about 0.3 s.
        let wild = pairs.iter().filter_map(|pair| pair["effect"].as_f64());
        let wild = wild.filter(|effect| effect.abs() > 1.0).count();
        tried += 1;
        held += usize::from(pairs.iter().any(|pair| void(&pair)) && wild == 0);
        assert_eq!(held, tried, "load {load}: {trial:#}");
    }
    (tried, held)
}
