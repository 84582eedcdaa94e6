//! `assay serve` as a user meets it: the real program, its forms, and what a trial leaves when it is stopped, or when
//! the server is killed.
#![allow(
    clippy::disallowed_methods,
    reason = "tests drive the real program and look at what it leaves"
)]

#[path = "common/browser.rs"]
#[allow(dead_code, reason = "pictures of a phone are taken elsewhere")]
mod browser;
#[path = "common/mod.rs"]
mod common;

use browser::Browser;
use common::Home;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The configuration that the trial changes.
const BEFORE: &str = "# Do not edit.\nmode = slow\n  other = 1";

/// Advice of the user's own: it sets one key while a program runs.
const PAGE: &str = r#"+++
title = "Set mode of the planted program to fast"
statement = "Set mode to fast."
predicts = "The run time changes."
[source]
who = "A colleague"
claimed = "It is faster."
[literature]
standing = "confirmed"
text = "None."
references = ["none"]
[risk]
level = "low"
text = "None."
[trial]
target = "directory"
default_target = "."
metric = "p50"
[trial.change]
kind = "set"
value = "fast"
setting = { kind = "config", file = "FILE", language = "key-value", key = "mode" }
[trial.load]
kind = "command"
argv = ["sleep", "0.05"]
+++
## Claim

It is faster.

## Why it may help

It may.

## When it does not apply

Never.

## How we test

Here.

## Undo

The old value.

## Sources

None.
"#;

/// A server that may start things, with a visitor's cookie and the secret of its forms.
struct Served {
    home: Home,
    dir: tempfile::TempDir,
    child: Child,
    address: String,
    token: String,
    cookie: String,
    form_token: String,
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(90), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

impl Served {
    fn start() -> Self {
        let (home, dir) = (Home::new(), tempfile::tempdir().unwrap());
        let conf = dir.path().join("app.conf");
        fs::write(&conf, BEFORE).unwrap();
        let advice = dir.path().join("advice");
        fs::create_dir_all(advice.join("own")).unwrap();
        let page = PAGE.replace("FILE", conf.to_str().unwrap());
        fs::write(advice.join("own/planted-mode.md"), page).unwrap();
        let mut command = home.command(&[
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--allow-actions",
            "--advice-dir",
            advice.to_str().unwrap(),
        ]);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let url = line.split_once("http://").expect(&line).1;
        let (address, rest) = url.split_once("/?token=").expect(&line);
        let token = rest.split(' ').next().unwrap().to_owned();
        let mut served = Self {
            home,
            dir,
            child,
            address: address.to_owned(),
            token,
            cookie: String::new(),
            form_token: String::new(),
        };
        let signed = served.get(&format!("/actions?token={}", served.token));
        let cookie = signed.split("assay_session=").nth(1).expect(&signed);
        served.cookie = cookie.split(';').next().unwrap().to_owned();
        let page = served.get("/actions");
        let token = page.split("name=\"form_token\" value=\"").nth(1);
        let token = token.expect(&page).split('"').next().unwrap();
        served.form_token = token.to_owned();
        served
    }

    fn send(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let _ = stream.write_all(request.as_bytes());
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn get(&self, path: &str) -> String {
        self.send(&format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nCookie: assay_session={}\r\nConnection: close\r\n\r\n",
            self.address, self.cookie
        ))
    }

    /// Sends a form as a browser does, with other headers in place of its own.
    fn post(&self, path: &str, body: &str, headers: &str) -> String {
        self.send(&format!(
            "POST {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n{body}",
            body.len()
        ))
    }

    /// The headers of a form of this server.
    fn headers(&self) -> String {
        format!(
            "Host: {0}\r\nOrigin: http://{0}\r\nSec-Fetch-Site: same-origin\r\nCookie: assay_session={1}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\n",
            self.address, self.cookie
        )
    }

    /// The form that starts the planted trial.
    fn form(&self) -> String {
        let target = self.dir.path().to_str().unwrap().replace('/', "%2F");
        format!(
            "form_token={}&kind=trial&advice=planted-mode&target={target}&slot=1s&budget=10m",
            self.form_token
        )
    }

    fn conf(&self) -> String {
        fs::read_to_string(self.dir.path().join("app.conf")).unwrap()
    }

    /// Waits until the change is in effect, and not just being tried out.
    fn wait_for_change(&self) {
        until("the change", || {
            let is_made = || self.conf().contains("mode = fast");
            is_made() && {
                std::thread::sleep(Duration::from_millis(200));
                is_made()
            }
        });
    }

    /// Whether everything is as before, and the journal holds nothing open.
    fn is_undone(&self) -> bool {
        let sessions = self.home.state().join("journal/sessions");
        self.conf() == BEFORE && fs::read_dir(sessions).unwrap().next().is_none()
    }

    fn log(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.home.state().join("serve/actions.jsonl")).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.collect()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").args(["-INT", &pid]).status();
        let begin = Instant::now();
        while self.child.try_wait().unwrap().is_none() && begin.elapsed() < Duration::from_secs(30)
        {
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn status(answer: &str) -> u16 {
    let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
    code.unwrap_or(0)
}

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

/// Presses a key, as a keyboard does.
fn press(browser: &mut Browser, session: &str, key: &str, text: &str, code: u32) {
    for kind in ["keyDown", "keyUp"] {
        let mut event =
            json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
        if kind == "keyDown" && !text.is_empty() {
            event["text"] = text.into();
        }
        browser.call("Input.dispatchKeyEvent", event, Some(session));
    }
}

#[test]
fn a_trial_is_started_watched_and_stopped_by_keyboard_in_a_browser() {
    let Some(mut browser) = Browser::start(&|mut command: Command| command.spawn().unwrap()) else {
        return;
    };
    let served = Served::start();
    let (_, session) = browser.open("about:blank");
    let session = session.as_str();
    browser.call("Page.enable", json!({}), Some(session));
    let url = format!(
        "http://{}/actions?advice=planted-mode&token={}",
        served.address, served.token
    );
    browser.call("Page.navigate", json!({ "url": url }), Some(session));
    browser.until(
        session,
        "document.querySelector('#start-trial [name=target]') !== null",
    );
    browser.evaluate(
        session,
        "document.querySelector('#start-trial [name=target]').focus()",
    );
    let target: PathBuf = served.dir.path().to_owned();
    browser.call(
        "Input.insertText",
        json!({ "text": target.to_str().unwrap() }),
        Some(session),
    );
    press(&mut browser, session, "Tab", "", 9);
    press(&mut browser, session, "Tab", "", 9);
    browser.call("Input.insertText", json!({ "text": "1s" }), Some(session));
    press(&mut browser, session, "Enter", "\r", 13);
    browser.until(session, "location.pathname == '/jobs/1'");
    served.wait_for_change();
    // Lines come by themselves, and lead to the trial.
    browser.until(
        session,
        "document.querySelector('pre.output')?.textContent.length > 20",
    );
    browser.until(
        session,
        "document.querySelector('a.record')?.pathname.startsWith('/trials/')",
    );
    browser.evaluate(session, "document.querySelector('button.stop').focus()");
    press(&mut browser, session, "Enter", "\r", 13);
    until("the undo", || served.is_undone());
    browser.until(
        session,
        "document.body.innerText.includes('stopped, and undone')",
    );
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

#[test]
fn units_are_written_and_only_those_are_removed() {
    let home = Home::new();
    let dir = tempfile::tempdir().unwrap();
    let units = dir.path().to_str().unwrap();
    let install = ["serve", "install", "--dir", units];
    let shown = home.assay(&[&install[..], &["--dry-run"]].concat());
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    let open = home.assay(&[&install[..], &["--listen", "0.0.0.0:7878"]].concat());
    assert_eq!(open.code, Some(2), "{}", open.stderr);
    let done = home.assay(&install);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let names = common::entries(dir.path());
    assert_eq!(names, ["assay-serve.service", "assay-serve.socket"]);
    let service = fs::read_to_string(dir.path().join("assay-serve.service")).unwrap();
    assert!(service.contains("NoNewPrivileges=yes") && service.contains("ASSAY_STORE="));
    // A file that somebody changed is theirs.
    let socket = dir.path().join("assay-serve.socket");
    fs::write(&socket, "# mine\n").unwrap();
    let again = home.assay(&install);
    assert_eq!(again.code, Some(2), "{}", again.stderr);
    let removed = home.assay(&["serve", "remove"]);
    assert_eq!(removed.code, Some(1), "{}", removed.stderr);
    assert_eq!(common::entries(dir.path()), ["assay-serve.socket"]);
    fs::remove_file(&socket).unwrap();
    assert_eq!(home.assay(&["serve", "remove"]).code, Some(0));
}

#[test]
fn a_socket_of_systemd_is_taken_over() {
    let tool = Command::new("systemd-socket-activate")
        .arg("--version")
        .output();
    if tool.is_err() {
        return eprintln!("skipped: there is no systemd-socket-activate");
    }
    let (home, free) = (
        Home::new(),
        std::net::TcpListener::bind("127.0.0.1:0").unwrap(),
    );
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let serve = home.command(&["serve"]);
    let mut command = Command::new("systemd-socket-activate");
    command
        .args(["-l", &address])
        .arg(serve.get_program())
        .arg("serve");
    // That program passes only what is named.
    for (name, value) in serve.get_envs() {
        if let (Some(name), Some(value)) = (name.to_str(), value.and_then(|value| value.to_str())) {
            command.arg(format!("--setenv={name}={value}"));
        }
    }
    // Options stand before the program.
    let mut words: Vec<String> = command
        .get_args()
        .map(|word| word.to_str().unwrap().to_owned())
        .collect();
    words.sort_by_key(|word| !word.starts_with("--setenv"));
    let mut child = Command::new("systemd-socket-activate")
        .args(words)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut answer = String::new();
    until("the socket", || TcpStream::connect(&address).is_ok());
    let mut stream = TcpStream::connect(&address).unwrap();
    let request = format!("GET /about HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    stream.read_to_string(&mut answer).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(status(&answer), 200, "{answer}");
}
