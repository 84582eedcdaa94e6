//! Tests the page of `assay net serve` in a real browser.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;
mod serving;

use assay_lab::network_bed::{Bed, BedError, Discipline, LinkShape, Rate, SERVER};
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
    // Six connections per port do not suffice for ten objects: the second port is used, and no
    // object is missing.
    assert!(
        record["ceiling_bit_per_s"].as_f64().unwrap() > 1e6,
        "{record}"
    );
    let ports =
        "new Set(performance.getEntriesByType('resource').map(it => new URL(it.name).port)).size";
    assert_eq!(browser.evaluate(&session, "origins.length"), 2);
    assert_eq!(browser.evaluate(&session, ports), 2);
    // The protocol of the first port; the browser does not report it for the other one.
    let spoken = "[...new Set(performance.getEntriesByType('resource').map(it => \
                  it.nextHopProtocol).filter(Boolean))].join()";
    assert_eq!(browser.evaluate(&session, spoken), "http/1.1");
    assert_eq!(record["remarks"], json!([]));
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
    // A browser has no UDP: this is reported, and there are no invented values.
    let call = role(&value, "call");
    assert_eq!(
        (&call["grade"], &call["counted"]),
        (&json!("unknown"), &json!(0))
    );

    // The page ends with the verdict of its person, equal to that of the controller.
    browser.until(&session, "!document.getElementById('verdict').hidden");
    let shown = browser.evaluate(&session, "document.getElementById('verdict').className");
    assert_eq!(shown, value["judged"][0]["grade"]);
    let text = browser.evaluate(&session, "document.getElementById('verdict').textContent");
    assert!(text.as_str().unwrap().len() > 20, "{text}");
    // The congestion control of the server is known, that of the browser is not.
    assert!(record["congestion"]["server"].is_string(), "{record}");
    assert!(record["congestion"]["client"].is_null(), "{record}");
    assert!(!record["trips"].as_array().unwrap().is_empty());

    // Another tab in front makes all of it void.
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

/// Creates a network with this many people behind a link of these Mbit/s down and up.
fn bed(people: usize, down: f64, up: f64) -> Option<Bed> {
    let shape = |mbit: f64| LinkShape {
        rate: Rate::BitPerS(mbit * 1e6),
        discipline: Discipline::FqCodel,
        buffer: Duration::from_millis(100),
        delay: Duration::from_millis(2),
        loss: 0.0,
    };
    match Bed::new(people, shape(down), shape(up), 1) {
        Ok(bed) => Some(bed),
        Err(error @ (BedError::Namespace(_) | BedError::Tun(_))) => {
            assay_testing::skipped("root", error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Starts a server, and a page of the first person that joined as `phone`.
fn with_phone<T>(bed: &Bed, then: impl FnOnce(&Serving, &mut Browser) -> T) -> Option<T> {
    let start = |mut command: std::process::Command| {
        let person = bed.person(0).unwrap();
        person.inside(move || command.spawn().unwrap()).unwrap()
    };
    let mut browser = Browser::start(&start)?;
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
    Some(then(&serving, &mut browser))
}

fn run(bed: &Bed, serving: &Serving, plan: &str) -> Value {
    let plan = serving.plan(plan);
    let ran = bed
        .server()
        .inside(|| serving.controller(&[&plan, "--json"]))
        .unwrap();
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr))
}

/// Whether tests that take minutes run.
fn is_long() -> bool {
    std::env::var_os("ASSAY_LAB_ALL").is_some()
}

#[test]
fn an_upload_of_a_browser_is_what_went_through_the_link() {
    let links: &[f64] = if is_long() {
        &[1.0, 5.0, 20.0, 50.0]
    } else {
        &[10.0]
    };
    for &mbit in links {
        let Some(bed) = bed(1, 50.0, mbit) else {
            return;
        };
        // Requests in flight at the end of the run use the link afterwards; on a slow link they are
        // a tenth of eight seconds.
        let seconds = if mbit < 2.0 { 40 } else { 8 };
        let seen = with_phone(&bed, |serving, _| {
            let before = bed.counters().1.read().0;
            let plan = format!(
                "name = 'one'\nseconds = {seconds}\n[[person]]\nname = 'Anna'\nroles = ['upload']\n"
            );
            let value = run(&bed, serving, &plan);
            let through = bed.counters().1.read().0 - before;
            let counted = role(&value, "upload")["bit_per_s"].as_f64().unwrap();
            (counted, counted / 8.0 * f64::from(seconds) / through as f64)
        });
        let Some((counted, share)) = seen else { return };
        // Headers of IP, TCP and TLS are 3.6 %; requests in flight at the end are not part of the
        // run.
        println!(
            "upload of the page: {counted} bit/s of {mbit} Mbit/s; of what went through: {share}"
        );
        assert!(
            (0.4 * mbit * 1e6..mbit * 1e6).contains(&counted),
            "{counted}"
        );
        assert!((0.9..0.97).contains(&share), "{share}");
    }
}

#[test]
fn a_page_and_a_program_say_the_same_of_four_links() {
    if !is_long() {
        assay_testing::skipped("long", "it takes minutes; ASSAY_LAB_ALL=1 runs it");
        return;
    }
    let mut differ = Vec::new();
    for mbit in [1.0, 5.0, 20.0, 50.0] {
        let Some(bed) = bed(2, mbit, mbit) else {
            return;
        };
        let seen = with_phone(&bed, |serving, _| {
            let mut command = serving.client("program");
            let person = bed.person(1).unwrap();
            let child = person.inside(move || command.spawn().unwrap());
            let _client = serving::Ends(child.unwrap());
            for name in ["voip", "browsing", "4kstream"] {
                let of = ["phone", "program"].map(|client| {
                    let plan = format!(
                        "name = 'one'\nseconds = 10\n[[person]]\nname = 'Anna'\nclient = '{client}'\nroles = ['{name}']\n"
                    );
                    let value = run(&bed, serving, &plan);
                    let role = role(&value, name);
                    println!(
                        "{mbit} Mbit/s, {name}, {client}: {} ({} of {} over, {} void, p50 {} us)",
                        role["grade"], role["over"], role["counted"], role["void"], role["latency"]["p50"]
                    );
                    role["grade"].as_str().unwrap().to_owned()
                });
                let known = !of.contains(&"unknown".to_owned());
                if known && of[0] != of[1] {
                    differ.push(format!("{mbit} Mbit/s, {name}: {of:?}"));
                }
            }
        });
        if seen.is_none() {
            return;
        }
    }
    assert!(differ.is_empty(), "{differ:?}");
}
