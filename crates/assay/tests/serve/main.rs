//! `assay serve` as a user meets it: the real program, its forms, and what a trial leaves when it is stopped, or when
//! the server is killed.
#![allow(
    clippy::disallowed_methods,
    reason = "tests drive the real program and look at what it leaves"
)]

#[path = "../common/mod.rs"]
mod common;
mod in_browser;
mod service_units;
mod started_server;

use common::Home;
use serde_json::Value;
use started_server::{BEFORE, Served, status, until};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};

#[test]
fn attack_forms_of_others_start_nothing() {
    let served = Served::start();
    let (form, good) = (served.form(), served.headers());
    let replaced = |from: &str, to: &str| {
        let headers = good.replace(from, to);
        assert_ne!(headers, good, "{from}");
        headers
    };
    let origin = format!("Origin: http://{}\r\n", served.address);
    let cookie = format!("Cookie: assay_session={}\r\n", served.cookie);
    let host = format!("Host: {}\r\n", served.address);
    for (headers, expected) in [
        (replaced(&origin, ""), 403),
        (replaced(&origin, "Origin: null\r\n"), 403),
        (replaced(&origin, "Origin: http://evil.example\r\n"), 403),
        (replaced(&origin, &format!("{origin}{origin}")), 403),
        (
            replaced(
                &origin,
                &format!("Origin: http://{}.evil.example\r\n", served.address),
            ),
            403,
        ),
        (replaced("same-origin", "cross-site"), 403),
        (replaced("same-origin", "same-site"), 403),
        (replaced(&cookie, ""), 401),
        (replaced(&cookie, "Cookie: assay_session=00\r\n"), 401),
        (replaced(&host, "Host: evil.example\r\n"), 421),
        (
            replaced("application/x-www-form-urlencoded", "text/plain"),
            415,
        ),
    ] {
        let answer = served.post("/actions/start", &form, &headers);
        assert_eq!(status(&answer), expected, "{headers}");
    }
    let other = |from: &str, to: &str| form.replace(from, to);
    for (body, expected) in [
        (other(&served.form_token, ""), 403),
        (other(&served.form_token, &"0".repeat(64)), 403),
        (other("planted-mode", "nothing-such"), 400),
        (other("planted-mode", "%2Ftmp%2Fmine.md"), 400),
        (other("slot=1s", "slot=1s+--keep"), 400),
        (other("&slot", "%0A--keep&slot"), 400),
        (other("&slot", "%00&slot"), 400),
        (other("&slot", "&target=%2Fetc&slot"), 403),
        (other("kind=trial", "kind=fix"), 400),
        (format!("{form}&x={}", "y".repeat(20_000)), 413),
    ] {
        let answer = served.post("/actions/start", &body, &good);
        assert_eq!(status(&answer), expected, "{body}\n{answer}");
    }
    for path in ["/actions/start", "/actions/stop"] {
        assert!(matches!(status(&served.get(path)), 404 | 405), "{path}");
    }
    assert_eq!(status(&served.post("/runs", &form, &good)), 405);
    assert_eq!(
        status(&served.post(
            "/actions/stop",
            &format!("form_token={}&job=7", served.form_token),
            &good
        )),
        404
    );
    assert_eq!(
        fs::read_to_string(served.home.state().join("serve/actions.jsonl")).unwrap(),
        ""
    );
    assert_eq!(served.conf(), BEFORE);
}

#[test]
fn a_trial_is_started_stopped_and_undone() {
    let served = Served::start();
    let started = served.post("/actions/start", &served.form(), &served.headers());
    assert_eq!(status(&started), 303, "{started}");
    assert!(started.contains("location: /jobs/1"), "{started}");
    served.wait_for_change();
    // The URL of a store may contain a password, and every user can read arguments.
    let children = Command::new("ps")
        .args(["-o", "args=", "--ppid", &served.child.id().to_string()])
        .output()
        .unwrap();
    let children = String::from_utf8(children.stdout).unwrap();
    assert!(children.contains("planted-mode"), "{children}");
    assert!(!children.contains("--store"), "{children}");
    // Two measurements would disturb each other.
    let second = served.post("/actions/start", &served.form(), &served.headers());
    assert_eq!(status(&second), 409, "{second}");
    until("the trial on its page", || {
        served.get("/trials/last").contains("value=\"1\"><button")
    });
    let stop = format!("form_token={}&job=1", served.form_token);
    let stopped = served.post("/actions/stop", &stop, &served.headers());
    assert_eq!(status(&stopped), 303, "{stopped}");
    until("the undo", || served.is_undone());
    until("the end of the job", || {
        !served.get("/jobs/1").contains("data-live")
    });
    // What has ended is not stopped.
    served.post("/actions/stop", &stop, &served.headers());
    let log = served.log();
    let events: Vec<&str> = log
        .iter()
        .map(|line| line["event"].as_str().unwrap())
        .collect();
    assert_eq!(events, ["start", "stop", "end"]);
    assert_eq!(log[2]["end"], "exit status 130", "{log:?}");
    assert!(log[0]["command"].as_str().unwrap().contains("planted-mode"));
    // What was measured is stored.
    let trials: Value = {
        let answer = served.get("/api/v1/trials");
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    };
    assert_eq!(trials["trials"].as_array().unwrap().len(), 1, "{trials:#}");
}

#[test]
fn attack_a_visitor_cannot_start_any_number_of_commands() {
    let served = Served::start();
    let form = format!("form_token={}&kind=why&for=60s", served.form_token);
    let start = || status(&served.post("/actions/start", &form, &served.headers()));
    let answers: Vec<u16> = (0..12).map(|_| start()).collect();
    assert_eq!(answers[0], 303, "{answers:?}");
    assert_eq!(answers[11], 409, "{answers:?}");
}

#[test]
fn attack_a_killed_server_leaves_nothing_changed() {
    let mut served = Served::start();
    let started = served.post("/actions/start", &served.form(), &served.headers());
    assert_eq!(status(&started), 303, "{started}");
    served.wait_for_change();
    served.child.kill().unwrap();
    served.child.wait().unwrap();
    until("the undo", || served.is_undone());
}

#[test]
fn without_the_flag_nothing_can_be_started() {
    let (home, port) = (Home::new(), "127.0.0.1:0");
    let mut child = home
        .command(&["serve", "--listen", port])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let address = line.split("http://").nth(1).unwrap();
    let address = address.split('/').next().unwrap().to_owned();
    let request = format!(
        "POST /actions/start HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\nContent-Length: 0\r\n\
         Connection: close\r\n\r\n"
    );
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(status(&answer), 403, "{answer}");
}

#[test]
fn documents_equal_those_of_the_command() {
    let served = Served::start();
    let started = served.post("/actions/start", &served.form(), &served.headers());
    assert_eq!(status(&started), 303, "{started}");
    served.wait_for_change();
    let stop = format!("form_token={}&job=1", served.form_token);
    served.post("/actions/stop", &stop, &served.headers());
    until("the end of the job", || {
        !served.get("/jobs/1").contains("data-live")
    });
    let pairs: [(&str, &[&str]); 4] = [
        ("/api/v1/trials", &["trial", "--list", "--json"]),
        ("/api/v1/trials/1", &["trial", "--show=1", "--json"]),
        ("/api/v1/runs", &["report", "runs", "--json"]),
        ("/api/v1/tuning", &["tune", "--list", "--json"]),
    ];
    for (path, words) in pairs {
        let answer = served.get(path);
        let ran = served.home.assay(words);
        assert_eq!(ran.code, Some(0), "{path}: {}", ran.stderr);
        let document: Value = serde_json::from_str(&ran.stdout).unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        assert_eq!(
            serde_json::from_str::<Value>(body).unwrap(),
            document,
            "{path}"
        );
    }
}
