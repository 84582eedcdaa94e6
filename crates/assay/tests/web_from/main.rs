//! Tests `assay web --from`: a real nginx is loaded from three machines at once, each a real sshd in a separate
//! network namespace. One is killed within a step, one has little CPU time, and all end at the user's request.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

#[path = "../common/mod.rs"]
mod common;
mod hostile;
mod machines;

use common::{Home, Ran, ran};
use machines::{Machines, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::process::{Child, Stdio};

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr))
}

fn start(home: &Home, machines: &Machines, args: &[&str]) -> Child {
    from(home, machines, "gen1,gen2,gen3", args)
}

fn from(home: &Home, machines: &Machines, from: &str, args: &[&str]) -> Child {
    let mut command = home.command(&["web"]);
    command
        .args(args)
        .env("XDG_CONFIG_HOME", home.dir.path())
        .args(["--ssh-config", &machines.config, "--from", from])
        .args(["--remote-assay", common::uploaded()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn load(home: &Home, machines: &Machines, args: &[&str]) -> Ran {
    ran(start(home, machines, args).wait_with_output().unwrap())
}

fn counts(step: &Value, name: &str) -> u64 {
    step["measured"][name].as_u64().unwrap()
}

/// Returns the latencies of a step or a part by bin.
fn bins(of: &Value) -> std::collections::BTreeMap<u64, u64> {
    let all = of["measured"]["latency"].as_array().unwrap();
    all.iter()
        .map(|bin| (bin[0].as_u64().unwrap(), bin[1].as_u64().unwrap()))
        .collect()
}

#[test]
fn three_machines_load_one_server_together() {
    let Some(machines) = Machines::new() else {
        return;
    };
    let home = Home::new();
    let page = home.dir.path().join("web.html");
    let (url, page) = (machines.url(80), page.to_str().unwrap());
    let ran = load(
        &home,
        &machines,
        &[
            &url,
            "--concurrency",
            "2,6",
            "--at",
            "30",
            "--rounds",
            "2",
            "--seconds",
            "400ms",
            "--washout",
            "100ms",
            "--json",
            "--html",
            page,
        ],
    );
    // A busy machine may void every step, which the exit status shows.
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.stderr);
    let value = json(&ran);
    let steps = value["steps"].as_array().unwrap();
    let closed: Vec<&Value> = steps
        .iter()
        .filter(|step| step["pace"]["kind"] == "closed")
        .collect();
    assert_eq!(closed.len(), 4);
    for step in steps {
        let parts = step["parts"].as_array().unwrap();
        // Two connections are for two of them.
        let connections = step["connections"].as_u64().unwrap();
        assert_eq!(parts.len() as u64, connections.min(3), "{step}");
        let mut all = std::collections::BTreeMap::new();
        for part in parts {
            assert!(part["lost"].is_null() && part["clock"]["error_us"].as_i64().unwrap() >= 0);
            assert!(counts(part, "answers") > 0, "{part}");
            for (nanos, count) in bins(part) {
                *all.entry(nanos).or_insert(0) += count;
            }
        }
        assert_eq!(bins(step), all, "merged exactly");
        for name in ["answers", "due", "bytes", "connections"] {
            let sum: u64 = parts.iter().map(|part| counts(part, name)).sum();
            assert_eq!(counts(step, name), sum, "{name}");
        }
    }
    let names = |step: &Value| -> Vec<String> {
        let parts = step["parts"].as_array().unwrap().iter();
        parts
            .map(|part| part["generator"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(closed[1]), ["gen1", "gen2", "gen3"]);
    let given = value["judged"]["steps"][1]["generators"]
        .as_array()
        .unwrap();
    let share: f64 = given.iter().map(|one| one["share"].as_f64().unwrap()).sum();
    assert!((share - 1.0).abs() < 1e-9 && given.len() == 3, "{given:?}");
    let remarks = value["remarks"][0].to_string();
    assert!(
        remarks.contains("loaded from gen1, gen2, gen3 at once"),
        "{remarks}"
    );
    // The machines of the test are one, and that is said where it can be known.
    let known = assay_facts::machine(&assay_host::LiveHost).is_some();
    assert_eq!(remarks.contains("are one machine"), known, "{remarks}");
    assert!(remarks.contains("2099-12-31"), "{remarks}");
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.contains("Who gave how much") && html.contains("gen3"));
    // What was stored tells the same.
    let shown = home.assay(&["show", "last"]);
    assert!(
        shown.stdout.contains("gen1") && shown.stdout.contains("gen3"),
        "{}",
        shown.stdout
    );
    machines.nothing_left();
}

#[test]
fn nobody_is_loaded_who_does_not_agree_with_each_of_them() {
    let Some(machines) = Machines::new() else {
        return;
    };
    let home = Home::new();
    let refuse = |args: &[&str], code: i32, said: &str| {
        let ran = load(&home, &machines, args);
        assert_eq!(ran.code, Some(code), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(said), "{args:?}: {}", ran.stderr);
        machines.nothing_left();
    };
    refuse(&[&machines.url(81)], 2, "gen1: http://10.77.0.1:81/");
    assert!(
        machines
            .asked(81)
            .iter()
            .all(|path| path == "/.well-known/assay-consent"),
        "nothing else is sent: {:?}",
        machines.asked(81)
    );
    refuse(&["http://127.0.0.1:80/"], 2, "127.0.0.1");
    refuse(&[&machines.url(80), "--log", "x"], 2, "--log");
    refuse(
        &[&machines.url(80), "--from=-oProxyCommand=x"],
        2,
        "-oProxyCommand",
    );
    // What the server agrees to is for all of them together.
    let url = machines.url(82);
    let args = [
        &url,
        "--concurrency",
        "",
        "--at",
        "",
        "--rate",
        "1000",
        "--rounds",
        "1",
        "--seconds",
        "500ms",
        "--json",
    ];
    let value = json(&load(&home, &machines, &args));
    let step = &value["steps"][0];
    assert_eq!(step["pace"]["per_s"], 300.0);
    for part in step["parts"].as_array().unwrap() {
        assert_eq!(part["pace"]["per_s"], 100.0);
        assert!(counts(part, "due") <= 51, "{part}");
    }
}

/// One of three is gone in the first of two steps: it is named, the others end at once, and the step is void.
fn gone_in_mid_step(signal: Signal, said: &str) {
    let Some(machines) = Machines::new() else {
        return;
    };
    let home = Home::new();
    let url = machines.url(83);
    let args = [
        &url,
        "--concurrency",
        "3",
        "--at",
        "",
        "--rounds",
        "2",
        "--seconds",
        "200s",
        // What ends before anything is counted is no step.
        "--washout",
        "0s",
        "--silence",
        "10",
        "--json",
        "-q",
    ];
    let child = start(&home, &machines, &args);
    until("gen2 loads", || machines.loads(83, 2) > 200);
    let verb = machines.generator(2).expect("it is there");
    kill_process(verb, signal).unwrap();
    let ran = ran(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(
        ran.stderr.contains(said) && ran.stderr.contains("is run 1"),
        "{}",
        ran.stderr
    );
    let value = json(&ran);
    let steps = value["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 1, "the measurement ends with it");
    let parts = steps[0]["parts"].as_array().unwrap();
    let lost: Vec<bool> = parts.iter().map(|part| part["lost"].is_string()).collect();
    assert_eq!(lost, [false, true, false]);
    for part in [&parts[0], &parts[2]] {
        let measured = &part["measured"];
        assert!(measured["interrupted"] == true, "nobody waits: {measured}");
    }
    let judged = &value["judged"]["steps"][0];
    assert_eq!(
        (&judged["rounds"], &judged["rounds_void"]),
        (&0.into(), &1.into())
    );
    let doubts = judged["doubts"].to_string();
    assert!(
        doubts.contains("generator-lost") && doubts.contains("gen2: "),
        "{doubts}"
    );
    machines.nothing_left();
}

#[test]
fn a_generator_that_dies_in_mid_step_is_named_and_the_step_is_void() {
    gone_in_mid_step(Signal::KILL, "gen2: its assay was ended by signal 9");
}

/// It says nothing more, while the way to it is as good as before, and does not hear that it shall end.
#[test]
fn a_generator_that_is_stopped_in_mid_step_is_named_and_nothing_is_left() {
    gone_in_mid_step(Signal::STOP, "gen2: nothing was heard from it for 10 s");
}

#[test]
fn a_generator_without_cpu_time_is_named_and_its_steps_are_void() {
    let Some(machines) = Machines::new() else {
        return;
    };
    let capped = machines::Capped::new();
    let home = Home::new();
    let url = machines.url(80);
    let args = [
        &url,
        "--concurrency",
        "",
        "--at",
        "",
        "--rate",
        "1500",
        "--rounds",
        "2",
        "--seconds",
        "2s",
        "--washout",
        "100ms",
        "--threads",
        "1",
        "--json",
        "-q",
    ];
    let child = start(&home, &machines, &args);
    until("gen3 is there", || machines.generator(3).is_some());
    capped.take(machines.generator(3).expect("it is there"));
    let ran = ran(child.wait_with_output().unwrap());
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.stderr);
    let value = json(&ran);
    let judged = &value["judged"]["steps"][0];
    assert!(judged["rounds_void"].as_u64().unwrap() >= 1, "{judged}");
    let doubts = judged["doubts"].as_array().unwrap();
    let named = doubts.iter().any(|doubt| {
        let code = doubt["code"].as_str().unwrap();
        ["late-sends", "generator-full", "not-together"].contains(&code)
            && doubt["evidence"].as_str().unwrap().contains("gen3")
    });
    assert!(named, "{doubts:?}");
    machines.nothing_left();
}

#[test]
fn all_of_them_end_when_the_user_says_so() {
    let Some(machines) = Machines::new() else {
        return;
    };
    let home = Home::new();
    let url = machines.url(83);
    let args = [
        &url,
        "--concurrency",
        "6",
        "--at",
        "",
        "--rounds",
        "1",
        "--seconds",
        "60s",
        "--washout",
        "0s",
        "--json",
        "-q",
    ];
    let child = start(&home, &machines, &args);
    until("all load", || {
        (1..=3).all(|which| machines.loads(83, which) > 200)
    });
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ran = ran(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    let value = json(&ran);
    let step = &value["steps"][0];
    assert!(
        step["measured"]["interrupted"] == true && counts(step, "answers") > 0,
        "{step}"
    );
    // What was counted is divided by the time in which it was, not by that which was planned.
    let rate = |of: &Value| counts(of, "answers") as f64 / counts(of, "window") as f64;
    let parts = step["parts"].as_array().unwrap();
    let sum: f64 = parts.iter().map(rate).sum();
    assert!((rate(step) / sum - 1.0).abs() < 1e-3, "{step}");
    assert!(counts(step, "window") < 60_000_000_000, "{step}");
    assert_eq!(step["parts"].as_array().unwrap().len(), 3);
    machines.nothing_left();
}
