//! Secrets of the machine on which a trial, a study and comparisons run.

use super::common::pages::{SETTING, STUDY};
use super::common::{self, Home, Ran, fio, root};
use super::plant::Plant;
use super::{Private, Search};
use assay_testing::servers::skip;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn well(ran: Ran) -> Ran {
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran
}

#[test]
fn attack_secrets_of_trials_studies_and_comparisons() {
    if !root() || !fio() || skip(&["mkfs.ext4", "mount"], true) {
        return;
    }
    let home = Home::new();
    let mut plant = Plant::default();
    let target = home.target();
    let dir = target.path().to_str().unwrap();
    let Some(private) = Private::new(&home, &mut plant, target.path()) else {
        return;
    };
    let own = |name: &str| home.dir.path().join(name);
    let (page, study, file) = (own("workers.md"), own("bare.toml"), own("service.conf"));
    let secret = plant.secret("the file that a trial changes");
    let original = format!("workers = 2\npassword = {secret}\n");
    std::fs::write(&file, &original).unwrap();
    std::fs::write(&page, SETTING.replace("FILE", file.to_str().unwrap())).unwrap();
    std::fs::write(&study, STUDY).unwrap();
    let (page, study) = (page.to_str().unwrap(), study.to_str().unwrap());
    let html = own("page.html");
    let html_text = html.to_str().unwrap().to_owned();
    let mut search = Search::default();

    let run = [
        "run",
        "--rw",
        "randread",
        "--size",
        "4M",
        "--rounds",
        "1",
        "--runtime",
        "100ms",
        dir,
    ];
    for _ in 0..2 {
        search.ran(&plant, "run", &well(private.ran(&run)));
    }
    for args in [
        vec!["compare", "last~1", "last"],
        vec!["compare", "last~1", "last", "--json"],
    ] {
        search.ran(&plant, &args.join(" "), &well(private.ran(&args)));
    }

    let carry = ["study", study, dir, "--quiet", "--html", &html_text];
    search.ran(&plant, "study", &well(private.ran(&carry)));
    search.file(&plant, "the page of a study", &html);
    for args in [
        vec!["study", "show", "--json"],
        vec!["study", "show", "--markdown"],
        vec!["study", "show"],
        vec!["study", "--list", "--json"],
    ] {
        search.ran(&plant, &args.join(" "), &well(private.ran(&args)));
    }

    let short = [
        "--pairs",
        "1",
        "--slot",
        "200ms",
        "--washout",
        "50ms",
        "--size",
        "4MiB",
    ];
    let trial = [&["trial", page, dir, "--yes"][..], &short].concat();
    search.ran(&plant, "trial", &well(private.ran(&trial)));
    for args in [
        vec!["trial", "--show", "last", "--html", &html_text],
        vec!["trial", "--show", "last", "--json"],
        vec!["trial", "--show", "last", "--markdown"],
        vec!["trial", "--list", "--json"],
    ] {
        search.ran(&plant, &args.join(" "), &well(private.ran(&args)));
    }
    search.file(&plant, "the page of a trial", &html);

    // A trial that is killed while the file is changed leaves its journal.
    let long = [
        "--pairs",
        "6",
        "--slot",
        "2s",
        "--washout",
        "50ms",
        "--size",
        "4MiB",
    ];
    let mut command =
        private.command(&[&["trial", page, dir, "--yes", "--quiet"][..], &long].concat());
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while std::fs::read_to_string(&file).unwrap() == original {
        let lives = child.try_wait().unwrap().is_none();
        assert!(lives && begun.elapsed() < Duration::from_secs(120));
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let (journals, copies) = state(&home.state());
    assert!(!journals.is_empty() && !copies.is_empty(), "{journals:?}");
    for path in &journals {
        search.file(&plant, "the journal of a trial", path);
    }
    // The whole file is kept for the revert, readable for root only.
    for path in &copies {
        let mode = std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}", path.display());
    }
    search.ran(&plant, "a bare call", &private.ran(&[]));
    let recover = ["trial", "--recover"];
    search.ran(&plant, "trial --recover", &well(private.ran(&recover)));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), original);
    search.store(&plant, &home);
    search.end("secrets of trials, studies and comparisons");
}

/// Returns files below a state directory: journals, and copies of the user's files.
fn state(dir: &Path) -> (Vec<std::path::PathBuf>, Vec<std::path::PathBuf>) {
    let mut found = (Vec::new(), Vec::new());
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for name in common::entries(&dir) {
            let path = dir.join(&name);
            match path {
                path if path.is_dir() => dirs.push(path),
                path if name.ends_with(".saved") => found.1.push(path),
                path if path.is_file() => found.0.push(path),
                _ => {}
            }
        }
    }
    found
}
