//! A server that may start things, and a visitor with its cookie.

use crate::common::Home;
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The configuration that the trial changes.
pub const BEFORE: &str = "# Do not edit.\nmode = slow\n  other = 1";

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
pub struct Served {
    pub home: Home,
    pub dir: tempfile::TempDir,
    pub child: Child,
    pub address: String,
    pub token: String,
    pub cookie: String,
    pub form_token: String,
}

pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(90), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

impl Served {
    pub fn start() -> Self {
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

    pub fn get(&self, path: &str) -> String {
        self.send(&format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nCookie: assay_session={}\r\nConnection: close\r\n\r\n",
            self.address, self.cookie
        ))
    }

    /// Sends a form as a browser does, with other headers in place of its own.
    pub fn post(&self, path: &str, body: &str, headers: &str) -> String {
        self.send(&format!(
            "POST {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n{body}",
            body.len()
        ))
    }

    /// The headers of a form of this server.
    pub fn headers(&self) -> String {
        format!(
            "Host: {0}\r\nOrigin: http://{0}\r\nSec-Fetch-Site: same-origin\r\nCookie: assay_session={1}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\n",
            self.address, self.cookie
        )
    }

    /// The form that starts the planted trial.
    pub fn form(&self) -> String {
        let target = self.dir.path().to_str().unwrap().replace('/', "%2F");
        format!(
            "form_token={}&kind=trial&advice=planted-mode&target={target}&slot=1s&budget=10m",
            self.form_token
        )
    }

    pub fn conf(&self) -> String {
        fs::read_to_string(self.dir.path().join("app.conf")).unwrap()
    }

    /// Waits until the change is in effect, and not just being tried out.
    pub fn wait_for_change(&self) {
        until("the change", || {
            let is_made = || self.conf().contains("mode = fast");
            is_made() && {
                std::thread::sleep(Duration::from_millis(200));
                is_made()
            }
        });
    }

    /// Whether everything is as before, and the journal holds nothing open.
    pub fn is_undone(&self) -> bool {
        let sessions = self.home.state().join("journal/sessions");
        self.conf() == BEFORE && fs::read_dir(sessions).unwrap().next().is_none()
    }

    pub fn log(&self) -> Vec<Value> {
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

pub fn status(answer: &str) -> u16 {
    let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
    code.unwrap_or(0)
}
