//! Every input is bounded: its size, its duration, its number of repetitions.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use common::{Home, ran};
use std::process::Command;

/// Runs the program with 3 GB of address space, which endless input would exceed.
fn confined(home: &Home, args: &[&str]) -> common::Ran {
    let inner = home.command(args);
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -v 3000000; exec timeout 60 \"$@\"", "sh"])
        .arg(inner.get_program())
        .args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    ran(command.output().unwrap())
}

#[test]
fn endless_files_are_refused() {
    let home = Home::new();
    let endless = "/dev/zero";
    for args in [
        vec!["run", "--plan-file", endless, "."],
        vec!["lint", endless],
        vec!["import", "--no-store", endless],
        vec!["pins", endless],
        vec!["plan", "clones", "--from", endless],
        vec!["plan", "capacity", "1TiB", "--history", endless],
        vec!["plan", "cache", "--arcstats", endless],
        vec!["web", "http://127.0.0.1:9/", "--ca", endless],
    ] {
        let out = confined(&home, &args);
        assert!(
            matches!(out.code, Some(2 | 3)),
            "{args:?}: {:?} {}",
            out.code,
            out.stderr
        );
    }
}

#[test]
fn endless_times_are_refused() {
    let home = Home::new();
    for (command, options) in [
        (vec!["run", "quick", "."], vec!["--runtime", "--ramp"]),
        (
            vec!["trial", "qcow2-cluster-size", ".", "--dry-run"],
            vec!["--slot", "--washout", "--budget"],
        ),
        (
            vec!["stack", ".", "--measure", "--dry-run"],
            vec!["--runtime", "--ramp"],
        ),
        (vec!["disks"], vec!["--for", "--window"]),
        (
            vec!["web", "http://127.0.0.1:9/"],
            vec!["--seconds", "--washout", "--limit"],
        ),
        (
            vec!["probe", "tls", "127.0.0.1:9"],
            vec!["--timeout", "--deadline"],
        ),
    ] {
        for option in options {
            let mut args = command.clone();
            args.extend([option, "4000000h"]);
            let out = home.assay(&args);
            assert_eq!(out.code, Some(2), "{args:?}: {}", out.stderr);
        }
    }
    // The longest duration does not overflow when multiplied.
    for args in [
        vec![
            "trial",
            "qcow2-cluster-size",
            ".",
            "--slot",
            "8760h",
            "--washout",
            "8760h",
            "--pairs",
            "100000",
            "--dry-run",
        ],
        vec![
            "stack",
            ".",
            "--measure",
            "--runtime",
            "8760h",
            "--rounds",
            "100",
            "--dry-run",
        ],
    ] {
        let out = home.assay(&args);
        assert_ne!(out.code, Some(101), "{args:?}: {}", out.stderr);
    }
}

/// A name that is not UTF-8 is reported with a workaround that works.
#[test]
fn names_that_are_not_utf_8() {
    use std::os::unix::ffi::OsStrExt as _;
    let home = Home::new();
    let there = home.dir.path().join(std::ffi::OsStr::from_bytes(b"a\xffb"));
    std::fs::create_dir(&there).unwrap();
    let words = |verb: &[&str], path: &std::path::Path| {
        let mut words: Vec<std::ffi::OsString> = verb.iter().map(Into::into).collect();
        words.push(path.into());
        words
    };
    for verb in [vec!["run", "quick"], vec!["trial", "qcow2-cluster-size"]] {
        let out = home.assay(&words(&verb, &there));
        assert_eq!(out.code, Some(2), "{verb:?}");
        assert!(out.stderr.contains(r"a\xffb"), "{verb:?}: {}", out.stderr);
    }
    let link = home.dir.path().join("link");
    std::os::unix::fs::symlink(&there, &link).unwrap();
    let out = home.assay(&words(&["trial", "--dry-run", "qcow2-cluster-size"], &link));
    assert_ne!(out.code, Some(2), "{}", out.stderr);
    assert_eq!(
        home.assay(&["stack".as_ref(), there.as_os_str()]).code,
        Some(0)
    );
}
