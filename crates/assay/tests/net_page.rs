//! The page of `assay net serve` in a real browser.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;
mod serving;

use assay_bed::{Bed, BedError, Discipline, SERVER, Shape};
use common::browser::Browser;
use serde_json::{Value, json};
use serving::{Serving, role};
use std::time::Duration;

#[test]
fn a_phone_takes_part_and_what_it_did_not_see_is_void() {
    let Some(mut browser) = Browser::start(&|mut command| command.spawn().unwrap()) else {
        return;
    };
    let serving = Serving::here();
    let address = format!("{}.phone", serving.address("client"));
    let (tab, session) = browser.open(&address);
    browser.until(
        &session,
        "document.getElementById('state')?.textContent.startsWith('Joined')",
    );
    let plan = serving.plan(
        "name = 'one'\nseconds = 4\n[[person]]\nname = 'Anna'\nroles = ['voip', 'browsing', 'upload', 'download', 'call']\n",
    );
    let ran = serving.controller(&[&plan, "--json"]);
    let value: Value =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
    let record = &value["run"]["people"][0]["record"];
    assert!(
        record["agent"].as_str().unwrap().starts_with("browser"),
        "{record}"
    );
    for name in ["voip", "browsing"] {
        let role = role(&value, name);
        assert_eq!(role["failed"], 0, "{role}");
        assert!(
            role["counted"].as_u64().unwrap() + role["void"].as_u64().unwrap() >= 2,
            "{role}"
        );
    }
    for name in ["upload", "download"] {
        assert!(
            role(&value, name)["bit_per_s"].as_f64().unwrap() > 1e6,
            "{name}"
        );
    }
    // A browser has no UDP: that is said, and nothing is made up.
    let call = role(&value, "call");
    assert_eq!(
        (&call["grade"], &call["counted"]),
        (&json!("unknown"), &json!(0))
    );

    // Another tab in front: all of it is void.
    let (other, _) = browser.open("about:blank");
    browser.call("Target.activateTarget", json!({ "targetId": other }), None);
    browser.until(&session, "document.hidden");
    let ran = serving.controller(&[&plan, "--json"]);
    let value: Value =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
    for name in ["voip", "browsing", "upload", "download"] {
        let role = role(&value, name);
        assert_eq!(
            (&role["grade"], &role["counted"]),
            (&json!("unknown"), &json!(0)),
            "{role}"
        );
        let seconds = role["seconds"].as_array().unwrap();
        assert!(
            seconds.len() == 4 && seconds.iter().all(|second| second["void"] == true),
            "{role}"
        );
    }
    browser.call("Target.activateTarget", json!({ "targetId": tab }), None);
    let picture = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("net-phone.png");
    browser.picture(&session, &picture);
    assert!(std::fs::metadata(&picture).unwrap().len() > 5000);
}

#[test]
fn an_upload_of_a_browser_is_what_went_through_the_link() {
    let shape = |mbit: f64| Shape {
        bit_per_s: mbit * 1e6,
        discipline: Discipline::FqCodel,
        buffer: Duration::from_millis(100),
        delay: Duration::from_millis(2),
        loss: 0.0,
    };
    let bed = match Bed::new(1, shape(50.0), shape(10.0), 1) {
        Ok(bed) => bed,
        Err(error @ (BedError::Namespace(_) | BedError::Tun(_))) => {
            assay_testing::skipped("root", error);
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let start = |mut command: std::process::Command| {
        let person = bed.person(0).unwrap();
        person.inside(move || command.spawn().unwrap()).unwrap()
    };
    let Some(mut browser) = Browser::start(&start) else {
        return;
    };
    let serving = Serving::at(SERVER.into(), &|mut command| {
        bed.server()
            .inside(move || command.spawn().unwrap())
            .unwrap()
    });
    let address = format!("{}.phone", serving.address("client"));
    let (_, session) = browser.open(&address);
    browser.until(
        &session,
        "document.getElementById('state')?.textContent.startsWith('Joined')",
    );
    let plan =
        serving.plan("name = 'one'\nseconds = 8\n[[person]]\nname = 'Anna'\nroles = ['upload']\n");
    let before = bed.counters().1.read().0;
    let ran = bed
        .server()
        .inside(|| serving.controller(&[&plan, "--json"]))
        .unwrap();
    let through = bed.counters().1.read().0 - before;
    let value: Value =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
    let counted = role(&value, "upload")["bit_per_s"].as_f64().unwrap();
    // Heads of IP, TCP and TLS are 3.6 %; what was under way at the end is not the run's.
    // So many bits a second for eight seconds are as many bytes.
    let share = counted / through as f64;
    println!("the page's upload: {counted} bit/s of 10 Mbit/s; of what went through: {share}");
    assert!((4e6..10e6).contains(&counted), "{counted}");
    assert!((0.9..0.97).contains(&share), "{share}");
}
