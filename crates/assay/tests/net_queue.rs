//! Tests queues, losses and congestion control of `assay lab net`: a FIFO queue, a fair queue, and random losses,
//! each on a separate network.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use assay_lab::network_bed::{Bed, BedError, Discipline, LinkShape, Rate};
use common::Home;
use serde_json::Value;
use std::time::Duration;

const PLAN: &str = "name = 'two'\nseconds = 8\n[[person]]\nname = 'Anna'\nroles = ['call']\n\
                    [[person]]\nname = 'Ben'\nroles = ['download']\n";

/// Whether this machine supports the network.
fn can() -> bool {
    let shape = LinkShape {
        rate: Rate::BitPerS(1e7),
        discipline: Discipline::Fifo,
        buffer: Duration::from_millis(200),
        delay: Duration::ZERO,
        loss: 0.0,
    };
    match Bed::new(1, shape.clone(), shape, 1) {
        Ok(_) => true,
        Err(error @ (BedError::Namespace(_) | BedError::Tun(_))) => {
            assay_testing::skipped("root", error);
            false
        }
        Err(error) => panic!("{error}"),
    }
}

struct Ran {
    value: Value,
    text: String,
}

/// Runs a call beside a download on 10 Mbit/s with these options.
fn ran(options: &[&str]) -> Ran {
    ran_plan(PLAN, options)
}

/// Runs a plan on 10 Mbit/s with these options.
fn ran_plan(text: &str, options: &[&str]) -> Ran {
    let home = Home::new();
    let plan = home.dir.path().join("two.toml");
    std::fs::write(&plan, text).unwrap();
    let mut words = vec!["lab", "net", plan.to_str().unwrap(), "--down", "10mbit"];
    words.extend(["--buffer", "200ms", "-q", "--json"]);
    words.extend(options);
    let out = home.assay(&words);
    let value =
        serde_json::from_str(&out.stdout).unwrap_or_else(|_| panic!("{options:?}: {}", out.stderr));
    Ran {
        value,
        text: out.stdout,
    }
}

/// Returns the microseconds that a queue added for the caller; 0 without a queue.
fn added(ran: &Ran) -> u64 {
    let queue = &ran.value["judged"][0]["queue"];
    let of = |name: &str| queue[name].as_u64().unwrap_or(0);
    of("loaded_us").saturating_sub(of("idle_us"))
}

/// Returns the fraction of lost packets of the call.
fn lost(ran: &Ran) -> f64 {
    ran.value["judged"][0]["roles"][0]["lost"]["share"]
        .as_f64()
        .unwrap()
}

/// Returns the algorithms of the server and of all devices.
fn algorithms(ran: &Ran) -> Vec<(Value, Value)> {
    let people = ran.value["run"]["people"].as_array().unwrap();
    let pair = |person: &Value| {
        let both = &person["record"]["congestion"];
        (both["server"].clone(), both["client"].clone())
    };
    people.iter().map(pair).collect()
}

#[test]
fn a_plain_queue_is_named_with_who_filled_it_and_a_fair_one_is_not() {
    if !can() {
        return;
    }
    let plain = ran(&["--queue", "fifo"]);
    let queue = &plain.value["judged"][0]["queue"];
    assert!(added(&plain) > 30_000, "{queue}");
    assert_eq!(queue["measured_by"], "packets");
    let filler = &queue["filled_by"][0];
    assert_eq!(
        (&filler["person"], &filler["role"]),
        (&"Ben".into(), &"download".into())
    );
    // The downloader has no packets: its own requests show the same queue.
    assert_eq!(plain.value["judged"][1]["queue"]["measured_by"], "control");
    assert_eq!(plain.value["judged"][1]["client"], "device-2");
    assert!(
        algorithms(&plain)
            .iter()
            .all(|pair| *pair == ("cubic".into(), "cubic".into()))
    );
    let fair = ran(&["--queue", "fq-codel"]);
    assert!(
        added(&fair) < added(&plain) / 2,
        "{}",
        fair.value["judged"][0]
    );
    // TCP that fills a link retransmits some segments: they are counted, whatever the grade.
    let download = &fair.value["judged"][1]["roles"][0];
    assert_eq!(download["lost"]["what"], "segments");
    assert!(download["lost"]["of"].as_u64().unwrap() > 100);
}

/// Pages, a call and a download on one device: TCP fills the queue and loses packets in it. The queue is the cause,
/// not the losses.
#[test]
fn a_queue_that_one_device_fills_is_no_loss() {
    if !can() {
        return;
    }
    let plan = "name = 'one'\nseconds = 10\n[[person]]\nname = 'Anna'\n\
                roles = ['browsing', 'call', 'download']\n";
    let one = ran_plan(plan, &["--queue", "fifo", "--congestion", "cubic"]);
    let anna = &one.value["judged"][0];
    assert!(added(&one) > 30_000, "{anna}");
    let fillers = anna["queue"]["filled_by"].as_array().unwrap();
    let own = |filler: &Value| filler["person"] == "Anna";
    assert!(!fillers.is_empty() && fillers.iter().all(own), "{anna}");
    for role in anna["roles"].as_array().unwrap() {
        assert_ne!(role["cause"]["kind"], "loss", "{role}");
    }
    assert_eq!(anna["roles"][1]["cause"]["kind"], "queue", "{anna}");
    // What TCP sent again is counted beside it.
    assert_eq!(anna["roles"][2]["lost"]["what"], "segments");
    assert_eq!(algorithms(&one), [("cubic".into(), "cubic".into())]);
}

#[test]
fn random_losses_are_named_whatever_the_grade_and_are_no_queue() {
    if !can() {
        return;
    }
    let lossy = ran(&["--queue", "fq-codel", "--loss", "1"]);
    // 1 % in each direction, of 400 packets.
    assert!((0.001..0.08).contains(&lost(&lossy)), "{}", lost(&lossy));
    assert_eq!(
        lossy.value["judged"][0]["roles"][0]["lost"]["what"],
        "packets"
    );
    let cause = &lossy.value["judged"][0]["roles"][0]["cause"];
    assert_ne!(cause["kind"], "queue", "{cause}");
}

#[test]
fn a_plan_says_with_which_congestion_control_both_ends_send() {
    if !can() {
        return;
    }
    let usable = assay_net::congestion::usable();
    let reno = ran(&["--congestion", "reno", "--seconds", "3"]);
    assert!(
        algorithms(&reno)
            .iter()
            .all(|pair| *pair == ("reno".into(), "reno".into())),
        "{}",
        reno.text
    );
    if !usable.contains(&"bbr".to_owned()) {
        assay_testing::skipped("bbr", "this kernel has no BBR");
        return;
    }
    let listed = reno.value["run"]["congestion"].as_array().unwrap();
    assert!(listed.contains(&"bbr".into()), "{listed:?}");
    // One run with each, and a comparison.
    let both = ran(&["--queue", "fifo", "--congestion", "cubic,bbr"]);
    assert_eq!(both.value["kind"], "net-comparison");
    assert_eq!(both.value["runs"], serde_json::json!(["cubic", "bbr"]));
    let long = |run: usize| {
        let queue = &both.value["judged"][run][0]["queue"];
        queue["loaded_us"].as_u64().unwrap_or(0)
    };
    assert!(long(1) < long(0), "{} {}", long(1), long(0));
}
