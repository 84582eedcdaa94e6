//! `assay web` on a real nginx: figures, pages, refusals, interruption.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use assay_rigs::nginx::Nginx;
use common::{Home, ran};
use serde_json::Value;
use std::process::Stdio;
use std::time::Duration;

fn nginx() -> Option<Nginx> {
    if let Some(lacking) = assay_rigs::lacks(&["nginx"], false) {
        assay_testing::skipped("nginx", format_args!("lacks {lacking}"));
        return None;
    }
    let nginx =
        Nginx::start("location = /gone { return 404; } location = /moved { return 301 /page; }")
            .unwrap();
    nginx.file("page", 1000).unwrap();
    Some(nginx)
}

const SHORT: [&str; 7] = [
    "--concurrency",
    "1,2",
    "--at",
    "50",
    "--seconds",
    "300ms",
    "--washout=100ms",
];

#[test]
fn two_servers_are_measured_and_compared() {
    let (Some(one), Some(other)) = (nginx(), nginx()) else {
        return;
    };
    let home = Home::new();
    let page = home.dir.path().join("web.html");
    let (a, b) = (one.url("/page"), other.url("/page"));
    let args = [
        &["web", &a, &b, "--json", "--html", page.to_str().unwrap()],
        &SHORT[..],
    ]
    .concat();
    let out = home.assay(&args);
    // A machine with other work may void every step, and then the exit status says so.
    assert!(matches!(out.code, Some(0 | 1)), "{}", out.stderr);
    let value: Value = serde_json::from_str(&out.stdout).unwrap();
    let steps = value["steps"].as_array().unwrap();
    // Three rounds of two closed loops, and of one open loop where a capacity was found, for each.
    let closed = steps
        .iter()
        .filter(|step| step["pace"]["kind"] == "closed")
        .count();
    assert_eq!(closed, 12);
    assert!(out.code == Some(1) || steps.len() > closed);
    for step in steps {
        assert!(step["measured"]["answers"].as_u64().unwrap() > 0, "{step}");
        assert!(step["server"]["Ok"]["cpu"].as_u64().unwrap() > 0, "{step}");
        assert_eq!(step["measured"]["failures"].as_array().unwrap().len(), 0);
        assert_eq!(step["link"]["Ok"]["interface"], "lo");
    }
    let judged = value["judged"]["steps"].as_array().unwrap();
    assert!(judged.iter().all(|step| step["limit"]["who"].is_string()));
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.contains("Load on 2 servers") && html.matches("<svg").count() >= 4);
    let shown = home.assay(&[&["web", &a, "--quiet"], &SHORT[..]].concat());
    assert!(
        shown.stdout.contains("answers/s") && shown.stdout.contains("limited by"),
        "{}",
        shown.stdout
    );
    assert!(shown.stderr.is_empty(), "{}", shown.stderr);
}

#[test]
fn what_cannot_be_measured_is_refused_with_the_way_out() {
    let Some(nginx) = nginx() else { return };
    let home = Home::new();
    let (page, gone, moved) = (nginx.url("/page"), nginx.url("/gone"), nginx.url("/moved"));
    let refuse = |args: &[&str], said: &str| {
        let out = home.assay(&[&["web"], args].concat());
        assert_eq!(
            (out.code, out.stdout.is_empty()),
            (Some(2), true),
            "{args:?} {}",
            out.stdout
        );
        assert!(out.stderr.contains(said), "{args:?}: {}", out.stderr);
    };
    refuse(&[&gone], "--status");
    refuse(&[&moved], "/page");
    refuse(&["http://192.0.2.1/", "--limit", "200ms"], "assay-consent");
    refuse(&["ftp://localhost/"], "http://");
    refuse(&["http://no-such-host.invalid/"], "no address");
    refuse(&[&page, "--concurrency", "0"], "--concurrency");
    refuse(
        &[&page, "--concurrency", "", "--at", ""],
        "nothing to measure",
    );
    refuse(&[&page, "-H", "Content-Length: 7"], "Content-Length");
    refuse(&[&page, "--server-pid", "4294967290"], "--server-pid");
    refuse(&[&page, "--cgroup", "no/such"], "control group");
    refuse(&[&page, "--path", "no slash"], "no path");
    refuse(&[&page.replace("http:", "https:"), "--insecure"], "TLS");
}

#[test]
fn interrupted_it_shows_what_was_measured() {
    let Some(nginx) = nginx() else { return };
    let home = Home::new();
    let url = nginx.url("/page");
    let mut command = home.command(&["web", &url, "--json", "--rounds", "100"]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(4));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let out = ran(child.wait_with_output().unwrap());
    assert_eq!(out.code, Some(130), "{}", out.stderr);
    let value: Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(value["interrupted"], true);
    assert!(!value["steps"].as_array().unwrap().is_empty());
}
