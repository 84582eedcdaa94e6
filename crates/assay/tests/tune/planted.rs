//! A program whose speed depends on its configuration file, and a user page for each setting.

use crate::common::{Home, Ran};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The original configuration: a comment, odd blanks, no newline at the end.
const BEFORE: &str = "# Do not edit.\nmode = slow\n  bad = no\nidle=1\ntwin-a = 0\ntwin-b = 0\nfails = no\nextra = off";

/// `mode = fast` or a twin takes 40 ms, `extra = on` 60 ms, both 20 ms, otherwise 120 ms; `bad = yes` takes 240 ms;
/// `fails = yes` fails. So far apart that a busy machine does not hide the difference.
const LOAD: &str = r#"#!/bin/sh
conf=$(cat "$1")
t=0.120
case $conf in *"mode = fast"* | *"twin-a = 1"* | *"twin-b = 1"*) t=0.040 ;; esac
case $conf in *"extra = on"*) t=0.060 ;; esac
case $conf in *"mode = fast"*"extra = on"*) t=0.020 ;; esac
case $conf in *"bad = yes"*) t=0.240 ;; esac
case $conf in *"fails = yes"*) echo "cannot start: broken" >&2; exit 3 ;; esac
exec sleep $t
"#;

/// A page that sets KEY to VALUE.
pub const PAGE: &str = r#"+++
title = "Set KEY of the planted program to VALUE"
statement = "Set KEY to VALUE."
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
value = "VALUE"
setting = { kind = "config", file = "FILE", language = "key-value", key = "KEY" }
[trial.load]
kind = "command"
argv = ["LOAD", "FILE"]
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

pub struct Planted {
    pub home: Home,
    dir: tempfile::TempDir,
}

impl Planted {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let planted = Self {
            home: Home::new(),
            dir,
        };
        fs::write(planted.conf(), BEFORE).unwrap();
        planted.script("load", LOAD);
        for (id, key, value) in [
            ("fast", "mode", "fast"),
            ("harm", "bad", "yes"),
            ("idle", "idle", "2"),
            ("twin-one", "twin-a", "1"),
            ("twin-two", "twin-b", "1"),
            ("breaker", "fails", "yes"),
            ("already", "idle", "1"),
            ("extra", "extra", "on"),
        ] {
            let page = PAGE
                .replace("FILE", planted.conf().to_str().unwrap())
                .replace("LOAD", planted.load_program().to_str().unwrap())
                .replace("KEY", key)
                .replace("VALUE", value);
            fs::write(planted.page(id), page).unwrap();
        }
        planted
    }

    pub fn conf(&self) -> PathBuf {
        self.dir.path().join("app.conf")
    }

    /// Returns the current configuration.
    pub fn text(&self) -> String {
        fs::read_to_string(self.conf()).unwrap()
    }

    pub fn is_as_before(&self) -> bool {
        self.text() == BEFORE
    }

    /// Whether the journal has no running session and none that waits for a revert.
    pub fn has_no_open_session(&self) -> bool {
        let sessions = self.home.state().join("journal/sessions");
        fs::read_dir(sessions).unwrap().next().is_none()
    }

    /// Accepts changes of other programs: drops the machine's record with the journal entry.
    pub fn forget_open_changes(&self) {
        let ran = self.home.assay(&["trial", "--recover", "--accept"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }

    pub fn page(&self, id: &str) -> PathBuf {
        self.dir.path().join(format!("{id}.md"))
    }

    /// Writes an executable script beside the configuration.
    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn load_program(&self) -> PathBuf {
        self.dir.path().join("load")
    }

    /// The command line of the load, with more arguments that it ignores.
    pub fn load(&self, more: &str) -> String {
        let program = self.load_program();
        format!("{} {}{more}", program.display(), self.conf().display())
    }

    /// Takes the load away.
    pub fn remove_load(&self) {
        fs::remove_file(self.dir.path().join("load")).unwrap();
    }

    /// The words of a session that tries these pages.
    pub fn words(&self, want: &str, pages: &[&str], more: &[&str]) -> Vec<String> {
        let path = |path: &Path| path.to_str().unwrap().to_owned();
        let load = self.load("");
        let pages: Vec<String> = pages.iter().map(|id| path(&self.page(id))).collect();
        let mut words: Vec<String> = ["tune", "--load", &load, "--want", want, "--yes", "--json"]
            .map(str::to_owned)
            .into();
        words.extend(["--only".to_owned(), pages.join(",")]);
        words.extend(["--slot", "250ms", "--no-tail-guard", "--no-boot-undo"].map(str::to_owned));
        if !more.contains(&"--budget") {
            words.extend(["--budget", "150s"].map(str::to_owned));
        }
        words.extend(more.iter().map(ToString::to_string));
        words
    }

    pub fn tune(&self, want: &str, pages: &[&str], more: &[&str]) -> Ran {
        self.home.assay(&self.words(want, pages, more))
    }
}

pub fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout)
        .unwrap_or_else(|error| panic!("{error}: {} {}", ran.stdout, ran.stderr))
}

/// Returns the advice ids of a list.
pub fn names(document: &Value, list: &str) -> Vec<String> {
    let all = document[list].as_array().unwrap();
    let name = |one: &Value| one["advice"].as_str().unwrap().to_owned();
    all.iter().map(name).collect()
}

/// Waits until a condition holds; no test asserts how long that takes.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(120), "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
