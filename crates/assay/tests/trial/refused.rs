//! Refusals before anything is changed or measured.

use super::{Own, SLOW, args, text};
use crate::common::{self, Home};
use std::fs;

#[test]
fn a_dry_run_and_a_refusal_touch_nothing() {
    let (home, own) = (Home::new(), Own::new(SLOW));
    let page = own.page();
    let dry = home.assay(&args(&["trial", text(&page), "--dry-run"], &[]));
    assert_eq!(dry.code, Some(0), "{}", dry.stderr);
    let heads = dry
        .stdout
        .lines()
        .filter(|line| !line.starts_with(' ') && !line.is_empty());
    insta::assert_snapshot!(heads.collect::<Vec<_>>().join("\n"), @r"
    sleep-less: Sleep less
    What would change
    What is measured
    What decides
    How long it takes
    ");
    // There is no terminal to ask on.
    let asked = home.assay(&args(&["trial", text(&page)], &[]));
    assert_eq!(asked.code, Some(2));
    assert!(asked.stderr.contains("--yes"), "{}", asked.stderr);
    assert_eq!(own.value(), SLOW);
    let mut said = String::new();
    for words in [
        vec!["trial"],
        vec!["trial", "qcow2-cluster-sise", "."],
        vec!["trial", "qcow2-cluster-size", "/nowhere/at/all"],
        vec!["trial", "qcow2-cluster-size", ".", "--set", "sise=8K"],
        vec!["trial", "qcow2-cluster-size", ".", "--set", "size=3K"],
        vec!["trial", "--resume"],
        vec!["trial", "--show", "7"],
    ] {
        let ran = home.assay(&words);
        assert_eq!(ran.code, Some(2), "{words:?}: {}", ran.stderr);
        said += &home.told(&format!("{words:?}: {}", ran.stderr));
    }
    insta::assert_snapshot!(said, @r#"
    ["trial"]: assay: name the advice and the target, such as `assay trial qcow2-cluster-size .`; `assay advice` lists all advice
    ["trial", "qcow2-cluster-sise", "."]: assay: there is no advice `qcow2-cluster-sise`; did you mean `qcow2-cluster-size`?; `assay advice` lists all
    ["trial", "qcow2-cluster-size", "/nowhere/at/all"]: assay: /nowhere/at/all: there is no such file or directory; fio would create it and measure whatever is mounted above: create it, or check that the file system is mounted
    ["trial", "qcow2-cluster-size", ".", "--set", "sise=8K"]: assay: `qcow2-cluster-size` has no parameter `sise`; did you mean `size`?; it has `size`
    ["trial", "qcow2-cluster-size", ".", "--set", "size=3K"]: assay: `3K` is not a value of `size`: it is one of `512`, `1K`, `2K`, `4K`, `8K`, `16K`, `32K`, `128K`, `256K`, `512K`, `1M` and `2M`; did you mean `1K`?
    ["trial", "--resume"]: assay: there is no trial `last`; nothing was tried yet: `assay advice`
    ["trial", "--show", "7"]: assay: there is no trial `7`; nothing was tried yet: `assay advice`
    "#);
}

#[test]
fn advice_that_does_not_apply_says_which_fact_speaks_against_it() {
    let (home, own) = (Home::new(), Own::new(SLOW));
    let when = "[[when]]\ncel = 'facts[\"memory.total\"] < 1'\notherwise = \"too much memory\"\n";
    let text_of = own
        .text()
        .replace("[parameters.to]", &format!("{when}[parameters.to]"));
    fs::write(own.page(), &text_of).unwrap();
    let page = own.page();
    let ran = home.assay(&["trial", text(&page), "--yes"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let why = assay_testing::normalize_output(&ran.stderr, &[(own.dir.path(), "OWN")]);
    insta::assert_snapshot!(assay_testing::without_figures(why), @"sleep-less does not apply here: too much memory [memory.total is # (/proc/meminfo)]");
    assert_eq!(own.value(), SLOW);
    // A page without a trial can only be explained.
    let (head, _) = text_of.split_once("[parameters.to]").unwrap();
    let head = head
        .replace(when, "")
        .replace("sleep(1)\"", "It cannot be changed in place.\"");
    let (_, body) = text_of.rsplit_once("+++\n").unwrap();
    fs::write(own.page(), format!("{head}+++\n{body}")).unwrap();
    let ran = home.assay(&["trial", text(&page), "--yes"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    insta::assert_snapshot!(assay_testing::normalize_output(&ran.stderr, &[(own.dir.path(), "OWN")]), @"assay: `sleep-less` cannot be tried: It cannot be changed in place.");
}

#[test]
fn a_page_that_is_wrong_is_told_by_its_line() {
    let (home, own) = (Home::new(), Own::new(SLOW));
    let page = own.page();
    fs::write(
        &page,
        own.text().replace("metric = \"p50\"", "metric = \"speed\""),
    )
    .unwrap();
    let ran = home.assay(&["trial", text(&page), "--yes"]);
    assert!(matches!(ran.code, Some(2 | 3)), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("sleep-less.md:21") && ran.stderr.contains("speed"),
        "{}",
        ran.stderr
    );
}

/// A directory that others can write, own or replace is refused as the state directory of root.
#[test]
fn a_state_directory_that_is_not_ours_alone_is_refused_by_every_verb() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let home = Home::new();
    let place = home.dir.path();
    let mode = |name: &str, mode| {
        fs::set_permissions(place.join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    for name in ["open", "sticky", "group", "theirs", "above/below"] {
        fs::create_dir_all(place.join(name)).unwrap();
    }
    mode("open", 0o777);
    mode("sticky", 0o1777);
    mode("group", 0o770);
    mode("above", 0o777);
    symlink(place.join("above"), place.join("link")).unwrap();
    let mut bad = vec![
        "open",
        "sticky",
        "group",
        "above/below",
        "link",
        "link/below",
    ];
    match rustix::process::geteuid().is_root() {
        true => {
            std::os::unix::fs::chown(place.join("theirs"), Some(4242), None).unwrap();
            bad.push("theirs");
        }
        false => assay_testing::skipped("root", "only root can give a directory away"),
    }
    let target = home.target();
    let target = text(target.path());
    for state in bad {
        for verb in [
            &["trial", "--recover"][..],
            &["trial", "zfs-recordsize", target, "--dry-run"],
            &["run", "quick", target],
            &["stack", target, "--measure", "--yes"],
            &["lab", "list"],
            &["web", "http://127.0.0.1:1/"],
            &["net", "serve"],
            &["dups", "scan", target],
            &["disks", target],
            &["study", "run", "optane-points"],
            &["facts"],
            &["check"],
            &["advice"],
            &["runs"],
            &["demo"],
            &[],
        ] {
            let mut command = home.command(verb);
            let ran = common::ended({
                command.env("ASSAY_STATE", place.join(state));
                command
            });
            assert_eq!(ran.code, Some(2), "{state} {verb:?}: {}", ran.stderr);
            assert!(ran.stderr.contains("ASSAY_STATE"), "{}", ran.stderr);
        }
        let kept = fs::read_dir(place.join(state)).unwrap();
        assert!(
            kept.filter_map(Result::ok)
                .all(|one| one.file_name() == "below")
        );
    }
    assert_eq!(fs::read_dir(target).unwrap().count(), 0);
}

/// A budget without a possible verdict is refused before anything begins, and the suggested one
/// works.
#[test]
fn a_budget_without_a_verdict_is_refused_before_anything_begins() {
    let (home, own) = (Home::new(), Own::new(SLOW));
    let page = own.page();
    let with = |budget: &str| {
        let words = args(
            &["trial", text(&page), "--dry-run", "--slot", "2s"],
            &["--budget", budget],
        );
        home.assay(&words)
    };
    let ran = with("10s");
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
    assert!(
        ran.stdout.is_empty() && ran.stderr.contains("--budget"),
        "{}",
        ran.stderr
    );
    // Six pairs of two slots of 2 s.
    assert!(ran.stderr.contains("24.0 s"), "{}", ran.stderr);
    assert_eq!(with("24s").code, Some(0));
    assert_eq!(own.value(), SLOW);
}

/// If the value is in effect already, both sides are the same.
#[test]
fn what_is_so_already_is_not_tried() {
    let (home, own) = (Home::new(), Own::new("0.01"));
    let page = own.page();
    for more in [vec!["--yes"], vec!["--dry-run"]] {
        let ran = home.assay(&args(&["trial", text(&page)], &more));
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        // Beside notes about changes of other processes.
        let said = ran.stderr.lines().filter(|line| !line.starts_with("note:"));
        assert_eq!(said.count(), 1, "the answer and no plan: {}", ran.stderr);
        assert!(ran.stdout.is_empty(), "{}", ran.stdout);
    }
}

/// A missing privilege is detected before the noise is measured.
#[test]
fn what_may_not_be_changed_is_known_before_the_load_runs() {
    let (home, own) = (Home::new(), Own::new(SLOW));
    // A change that cannot be reverted stays in the machine's record and would disturb the next
    // test.
    let apply = format!("#!/bin/sh\n[ \"$1\" = {SLOW} ]\n");
    fs::write(own.apply(), apply).unwrap();
    let marker = own.dir.path().join("ran");
    fs::write(
        own.load(),
        format!("#!/bin/sh\ntouch '{}'\n", text(&marker)),
    )
    .unwrap();
    let ran = home.assay(&args(&["trial", text(&own.page()), "--yes"], &[]));
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(!marker.exists(), "nothing was measured");
    assert_eq!(own.value(), SLOW);
}
