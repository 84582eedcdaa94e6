//! A trial that was killed while its change was in effect: every verb lists it, measurements are refused, and a
//! forced measurement has a doubt. A live session is not listed.

#![allow(clippy::disallowed_methods, reason = "tests look at files")]

mod common;

use common::Home;
use common::pages::SETTING;
use rustix::process::{Pid, Signal, kill_process};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Message at the start of a verb about a session.
const NAMED: &str = "`assay trial --recover` tries it";

struct Changed {
    home: Home,
    dir: tempfile::TempDir,
    file: PathBuf,
}

impl Changed {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("service.conf");
        std::fs::write(&file, "workers = 2\n").unwrap();
        let page = SETTING.replace("FILE", file.to_str().unwrap());
        std::fs::write(dir.path().join("workers.md"), page).unwrap();
        Self {
            home: Home::new(),
            dir,
            file,
        }
    }

    fn words(&self, words: &[&str]) -> Vec<String> {
        let path = |name: &str| self.dir.path().join(name).to_str().unwrap().to_owned();
        let words = words.iter().map(|word| match *word {
            "DIR" => path(""),
            "PAGE" => path("workers.md"),
            "PAGE.html" => path("page.html"),
            word => word.to_owned(),
        });
        words.collect()
    }

    /// Starts a trial and stops it while its change is in effect.
    fn stopped(&self) -> std::process::Child {
        let words = self.words(&["trial", "PAGE", "DIR", "--yes", "--quiet", "--slot", "2s"]);
        let mut child = self.home.command(&words).spawn().unwrap();
        let process = Pid::from_child(&child);
        let end = Instant::now() + Duration::from_secs(120);
        let mut changed = false;
        while !changed && Instant::now() < end {
            let _ = kill_process(process, Signal::STOP);
            std::thread::sleep(Duration::from_millis(2));
            changed = std::fs::read_to_string(&self.file).unwrap().contains('8');
            if !changed {
                let _ = kill_process(process, Signal::CONT);
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        if !changed {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("the change did not come");
        }
        child
    }
}

/// A failing test leaves no record of its change on this machine.
impl Drop for Changed {
    fn drop(&mut self) {
        let _ = self.home.command(&["trial", "--recover"]).output();
    }
}

const VERBS: [&[&str]; 21] = [
    &["runs"],
    &["advice"],
    &["advice", "noatime"],
    &["check", "--root", "DIR"],
    &["lint", "fio --name=a --rw=read"],
    &["facts", "cpu"],
    &["disks"],
    &["trial", "--list"],
    &["trial", "PAGE", "DIR", "--dry-run"],
    &["run", "--print-plan", "DIR"],
    &["stack", "DIR"],
    &["study"],
    &["export", "last"],
    &["version"],
    &["plan", "layout", "4T", "4T"],
    &["pool", "show"],
    &["store", "keep"],
    &["lab", "list"],
    &["changed"],
    &["watch", "list"],
    &[],
];

#[test]
fn a_change_that_a_killed_trial_left_is_named_and_not_measured() {
    if !common::fio() {
        return;
    }
    let changed = Changed::new();
    let home = &changed.home;
    let mut child = changed.stopped();
    // It is alive, although it does nothing, so nothing is left over.
    let beside = home.assay(&changed.words(&["facts", "cpu"]));
    assert!(!beside.stderr.contains(NAMED), "{}", beside.stderr);
    child.kill().unwrap();
    child.wait().unwrap();
    for words in VERBS {
        let ran = home.assay(&changed.words(words));
        let named = ran.stderr.lines().filter(|line| line.contains(NAMED));
        assert_eq!(named.count(), 1, "{words:?}: {}", ran.stderr);
        assert!(!ran.stdout.contains(NAMED), "{words:?}");
    }
    let measured: [&[&str]; 5] = [
        &["run", "quick", "DIR"],
        &["trial", "PAGE", "DIR", "--yes"],
        &["web", "http://127.0.0.1:9/"],
        &["stack", "DIR", "--measure", "--yes"],
        &["study", "kvm-cache-modes", "DIR"],
    ];
    for words in measured {
        let ran = home.assay(&changed.words(words));
        assert_eq!(ran.code, Some(2), "{words:?}: {}", ran.stderr);
        let refusal = ran.stderr.lines().last().unwrap();
        assert!(
            refusal.contains("--despite-open-change"),
            "{words:?}: {refusal}"
        );
    }
    let run = [
        "run",
        "DIR",
        "--rw",
        "randwrite",
        "--bs",
        "4k",
        "--size",
        "4MiB",
        "--runtime",
        "300ms",
        "--json",
    ];
    let doubts = |ran: &common::Ran| {
        assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.stderr);
        ran.stdout.matches("\"open-change\"").count()
    };
    let despite = [&run[..], &["--despite-open-change"]].concat();
    assert!(doubts(&home.assay(&changed.words(&despite))) > 0);
    let back = home.assay(&["trial", "--recover"]);
    assert!(!back.stderr.contains(NAMED), "{}", back.stderr);
    assert_eq!(
        std::fs::read_to_string(&changed.file).unwrap(),
        "workers = 2\n"
    );
    let after = home.assay(&changed.words(&run));
    assert_eq!(doubts(&after), 0);
    assert!(!after.stderr.contains(NAMED), "{}", after.stderr);
}
