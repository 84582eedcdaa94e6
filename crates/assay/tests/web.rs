//! Tests `assay web` on a real nginx: figures, pages, refusals, interruption.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use assay_testing::servers::http2::{Http2Server, Http2ServerKind};
use assay_testing::servers::nginx::Nginx;
use common::{Home, ran};
use serde_json::Value;
use std::process::Stdio;
use std::time::Duration;

fn nginx() -> Option<Nginx> {
    if let Some(lacking) = assay_testing::servers::find_missing(&["nginx"], false) {
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
    // A busy machine may void every step, which the exit status shows.
    assert!(matches!(out.code, Some(0 | 1)), "{}", out.stderr);
    let value: Value = serde_json::from_str(&out.stdout).unwrap();
    let steps = value["steps"].as_array().unwrap();
    // Three rounds of two closed loops, and of one open loop for each server with a capacity.
    let closed = steps
        .iter()
        .filter(|step| step["pace"]["kind"] == "closed")
        .count();
    assert_eq!(closed, 12);
    assert!(out.code == Some(1) || steps.len() > closed);
    for step in steps {
        // On a busy machine all requests of a short open loop may be late.
        let counted = match step["pace"]["kind"] == "closed" {
            true => "answers",
            false => "received",
        };
        assert!(step["measured"][counted].as_u64().unwrap() > 0, "{step}");
        assert!(step["server"]["Ok"]["cpu"].as_u64().unwrap() > 0, "{step}");
        assert_eq!(step["measured"]["failures"].as_array().unwrap().len(), 0);
        assert_eq!(step["link"]["Ok"]["interface"], "lo");
    }
    let judged = value["judged"]["steps"].as_array().unwrap();
    assert!(judged.iter().all(|step| step["limit"]["who"].is_string()));
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.matches("<svg").count() >= 4);
    let (_, title) = html.split_once("<title>").unwrap();
    insta::assert_snapshot!(title.split("</title>").next().unwrap(), @"Load on 2 servers");
    let shown = home.assay(&[&["web", &a, "--quiet"], &SHORT[..]].concat());
    assert!(
        shown.stdout.contains("answers/s") && shown.stdout.contains("limited by"),
        "{}",
        shown.stdout
    );
    assert!(shown.stderr.is_empty(), "{}", shown.stderr);
}

#[test]
fn http2_is_measured_and_said() {
    let Some(server) =
        Http2Server::start(Http2ServerKind::Nginx, "http2_max_concurrent_streams 50;")
    else {
        return;
    };
    let home = Home::new();
    let (tls, ca) = (server.url(true, "/small"), server.certificate());
    let plain = server.url(false, "/small");
    let http2: [&[&str]; 2] = [
        &["web", &tls, "--ca", &ca, "--http2", "--streams", "5"],
        &["web", &plain, "--http2"],
    ];
    for (args, streams) in http2.into_iter().zip([5, 1]) {
        let out = home.assay(&[args, &["--json", "-q"], &SHORT[..]].concat());
        assert!(matches!(out.code, Some(0 | 1)), "{}", out.stderr);
        let value: Value = serde_json::from_str(&out.stdout).unwrap();
        let steps = value["steps"].as_array().unwrap();
        assert!(!steps.is_empty());
        for step in steps {
            assert_eq!(step["protocol"], "h2");
            assert_eq!(step["streams"], streams);
            assert!(step["measured"]["answers"].as_u64().unwrap() > 0);
            assert_eq!(step["measured"]["failures"].as_array().unwrap().len(), 0);
        }
        assert!(out.stdout.contains("\"HTTP/2, "), "{}", out.stdout);
    }
    // The run is stored with it, and the plan contains it.
    let kept: Value = serde_json::from_str(&home.assay(&["export", "1"]).stdout).unwrap();
    let load = &kept["run"]["plan"]["workloads"][0]["load"];
    assert!(load["http2"] == true && load["streams"] == 5, "{load}");
    let plan = home.dir.path().join("plan.toml");
    let text = "name = \"h2\"\nrounds = 2\nruntime = \"200ms\"\nramp = \"50ms\"\n[[workload]]\n\
                load = { kind = \"http\", http2 = true, connections = 2, streams = 4 }\n";
    std::fs::write(&plan, text).unwrap();
    let file = plan.to_str().unwrap();
    let out = home.assay(&["run", "--plan-file", file, &plain, "--json"]);
    assert!(matches!(out.code, Some(0 | 1)), "{}", out.stderr);
    let value: Value = serde_json::from_str(&home.assay(&["export", "3"]).stdout).unwrap();
    let seen = &value["samples"][0]["workers"][0]["http"];
    assert!(seen["protocol"] == "h2" && seen["streams"] == 4, "{seen}");
    let refused = |args: &[&str]| {
        let out = home.assay(&[&["web"], args].concat());
        assert_eq!(out.code, Some(2), "{args:?}: {}", out.stdout);
        assay_testing::normalize_output(out.stderr, &[(args[0], "URL")])
    };
    let said = refused(&[&plain, "--http2", "--streams", "51"])
        + &refused(&[&plain, "--streams", "5"])
        + &refused(&[&plain, "--http2", "--streams", "20000"]);
    insta::assert_snapshot!(said, @r"
    assay: URL: the server takes 50 requests at once on a connection (SETTINGS_MAX_CONCURRENT_STREAMS), not 51: ask for fewer with --streams, and more connections
    error: the following required arguments were not provided:
      --http2

    Usage: assay web --http2 --streams <N> --store <FILE|URL> <URL>...

    For more information, try '--help'.
    assay: URL: the server takes 50 requests at once on a connection (SETTINGS_MAX_CONCURRENT_STREAMS), not 20000: ask for fewer with --streams, and more connections
    ");
    if let Some(old) = nginx() {
        let url = old.url("/page");
        let port = url.trim_start_matches("http://").trim_end_matches("/page");
        let said = refused(&[&url, "--http2"]);
        insta::assert_snapshot!(assay_testing::normalize_output(said, &[(port, "NGINX")]), @"assay: URL: NGINX: it does not speak HTTP/2 on this port: what came first are no settings");
    }
}

#[test]
fn what_cannot_be_measured_is_refused_with_the_way_out() {
    let Some(nginx) = nginx() else { return };
    let home = Home::new();
    let (page, gone, moved) = (nginx.url("/page"), nginx.url("/gone"), nginx.url("/moved"));
    let place = nginx.url("");
    let place = place.trim_start_matches("http://").to_owned();
    let mut said = String::new();
    let mut refuse = |args: &[&str]| {
        let out = home.assay(&[&["web"], args].concat());
        assert_eq!(
            (out.code, out.stdout.is_empty()),
            (Some(2), true),
            "{args:?} {}",
            out.stdout
        );
        said += &assay_testing::normalize_output(out.stderr, &[(&place, "NGINX")]);
    };
    refuse(&[&gone]);
    refuse(&[&moved]);
    refuse(&["ftp://localhost/"]);
    refuse(&[&page, "--concurrency", "0"]);
    refuse(&[&page, "--concurrency", "", "--at", ""]);
    refuse(&[&page, "-H", "Content-Length: 7"]);
    refuse(&[&page, "--server-pid", "4294967290"]);
    refuse(&[&page, "--cgroup", "no/such"]);
    refuse(&[&page, "--path", "no slash"]);
    refuse(&[&page.replace("http:", "https:"), "--insecure"]);
    insta::assert_snapshot!(said, @r"
    assay: http://NGINX/gone: it answers with status 404, not 200; name the status of a good answer with --status
    assay: http://NGINX/moved: it answers with status 301, not 200; it leads to http://NGINX/page: name that URL
    assay: ftp://localhost/: not of the form http://HOST:PORT/PATH
    assay: --concurrency: `0` is not more than 0
    assay: there is nothing to measure
    assay: http://NGINX/page: the header Content-Length is assay's own: it decides where a message ends
    assay: --server-pid 4294967290: there is no such process
    assay: /sys/fs/cgroup/no/such: no control group of version 2 whose CPU time can be read: No such file or directory (os error 2)
    assay: http://NGINX/page: `no slash` is no path
    assay: https://NGINX/page: NGINX: TLS: received corrupt message of type InvalidContentType
    ");
    // The resolver reports why not.
    let nowhere = home.assay(&["web", "http://no-such-host.invalid/"]);
    assert_eq!(nowhere.code, Some(2), "{}", nowhere.stdout);
    assert!(nowhere.stderr.contains("no-such-host.invalid/: no address"));
    let elsewhere = home.assay(&["web", "http://192.0.2.1/", "--limit", "200ms"]);
    assert_eq!(elsewhere.code, Some(2), "{}", elsewhere.stdout);
    assert!(
        elsewhere.stderr.contains("assay-consent"),
        "{}",
        elsewhere.stderr
    );
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
    // The search for the numbers of connections comes first, and takes longer on a busy machine.
    std::thread::sleep(Duration::from_secs(12));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let out = ran(child.wait_with_output().unwrap());
    assert_eq!(out.code, Some(130), "{}", out.stderr);
    let value: Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(value["interrupted"], true);
    assert!(!value["steps"].as_array().unwrap().is_empty());
}

#[test]
fn what_was_measured_is_a_run_as_any_other() {
    let Some(nginx) = nginx() else { return };
    let home = Home::new();
    let url = nginx.url("/page");
    for _ in 0..2 {
        let args = [
            &["web", &url, "-q", "-H", "Cookie: session=hunter2"],
            &SHORT[..],
        ]
        .concat();
        let out = home.assay(&args);
        assert!(matches!(out.code, Some(0 | 1)), "{}", out.stderr);
    }
    let listed = home.assay(&["runs", "--json"]);
    let value: Value = serde_json::from_str(&listed.stdout).unwrap();
    let rows = value["runs"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0]["targets"][0], url);
    let shown = home.assay(&["show", "1"]);
    assert!(shown.stdout.contains("server CPU"), "{}", shown.stdout);
    let raw = home.assay(&["show", "1", "--json"]);
    assert!(!raw.stdout.contains("hunter2"), "a cookie was stored");
    let document: Value = serde_json::from_str(&raw.stdout).unwrap();
    let sample = &document["samples"][0];
    assert!(
        sample["workload"].as_str().unwrap().starts_with('c'),
        "{sample}"
    );
    let compared = home.assay(&["compare", "1", "2", "--json"]);
    assert_eq!(compared.code, Some(0), "{}", compared.stderr);
    let value: Value = serde_json::from_str(&compared.stdout).unwrap();
    // A busy machine may void the compared figures.
    assert!(value["rows"].is_array());
    let page = home.dir.path().join("stored.html");
    let out = home.assay(&["report", "1", "--html", page.to_str().unwrap()]);
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.contains("Load on") && html.contains("<svg") && !html.contains("hunter2"));
}

#[test]
fn a_log_is_replayed_at_its_own_times_and_says_what_was_left_out() {
    let Some(nginx) = nginx() else { return };
    let home = Home::new();
    let log = home.dir.path().join("access.log");
    let line = |second: u32, request: &str, status: u16| {
        format!(
            "::1 - - [22/Nov/2026:18:05:0{second} +0000] \"{request}\" {status} 9 \"-\" \"x\"\n"
        )
    };
    let mut text: String = (0..3)
        .flat_map(|second| std::iter::repeat_n(line(second, "GET /page HTTP/1.1", 200), 40))
        .collect();
    text.push_str(&line(1, "POST /page HTTP/1.1", 200));
    text.push_str(&line(1, "GET /gone HTTP/1.1", 200));
    text.push_str("no log\n");
    std::fs::write(&log, text).unwrap();
    let (url, log) = (nginx.url("/"), log.to_str().unwrap());
    let out = home.assay(&[
        "web", &url, "--log", log, "--speed", "2", "--rounds", "1", "--json", "-q",
    ]);
    assert!(matches!(out.code, Some(0 | 1)), "{}", out.stderr);
    let value: Value = serde_json::from_str(&out.stdout).unwrap();
    let steps = value["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 1);
    let (pace, measured) = (&steps[0]["pace"], &steps[0]["measured"]);
    assert_eq!(pace["kind"], "replay");
    // Every request that can be replayed was due, and the one with another response failed.
    assert_eq!(measured["due"], 121, "{measured}");
    let answered = measured["latency"].as_array().unwrap().iter();
    let answered: u64 = answered.map(|bin| bin[1].as_u64().unwrap()).sum();
    assert_eq!(answered, 120, "{measured}");
    assert_eq!(measured["failures"][0]["kind"], "wrong-status");
    let remarks = value["remarks"][0].to_string();
    for said in ["2 of 123 lines", "POST", "404 instead of 200"] {
        assert!(remarks.contains(said), "{said}: {remarks}");
    }
    // nginx's own log contains the first requests and the replayed ones.
    let list = home.dir.path().join("list");
    std::fs::write(&list, "/page\n/gone\nhttp://elsewhere/\n").unwrap();
    let list = list.to_str().unwrap();
    let args = [&["web", &url, "--list", list, "--json", "-q"], &SHORT[..]].concat();
    let out = home.assay(&args);
    assert!(matches!(out.code, Some(0 | 1)), "{}", out.stderr);
    let value: Value = serde_json::from_str(&out.stdout).unwrap();
    let remarks = value["remarks"][0].to_string();
    assert!(
        remarks.contains("another server") && remarks.contains("404"),
        "{remarks}"
    );
    assert!(
        value["steps"][0]["measured"]["failures"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    // A file without usable requests.
    let out = home.assay(&["web", &url, "--log", "/dev/null"]);
    assert_eq!(out.code, Some(2), "{}", out.stdout);
    let out = home.assay(&["web", &url, "--log", list]);
    assert_eq!(out.code, Some(2), "{}", out.stdout);
    let said = assay_testing::normalize_output(
        home.refusal(&out),
        &[(url.trim_end_matches("/page"), "NGINX")],
    );
    insta::assert_snapshot!(said, @"assay: NGINX: no line of the log can be replayed: 3 no line of an access log (the first is line 1)");
}
