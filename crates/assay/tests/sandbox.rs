//! Tests restricted machines: system calls that the kernel or a sandbox lacks, no shared memory, a read-only home, no
//! root.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use common::{Home, Ran, ended, entries};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

/// System calls that are recent, or that sandboxes block (ENOSYS), with their users.
const LATE: &str = "statx,io_uring_setup,pidfd_open,pidfd_send_signal,memfd_create,openat2,name_to_handle_at,\
                    open_by_handle_at,copy_file_range,renameat2,close_range";

/// A run of one second.
fn quick(dir: &str) -> [&str; 12] {
    let [rounds, runtime, ramp, size] = ["--rounds", "--runtime", "--ramp", "--size"];
    [
        "run", "quick", dir, rounds, "1", runtime, "1s", ramp, "0s", size, "16M", "--quiet",
    ]
}

fn strace() -> bool {
    let mut there = Command::new("strace");
    let there = there.arg("-V").stdout(Stdio::null()).status();
    if there.is_ok_and(|status| status.success()) {
        return true;
    }
    assay_testing::skipped("strace", "needs strace to leave calls out");
    false
}

/// Runs assay while these calls fail with "Function not implemented", and returns which ones it
/// made.
fn without(home: &Home, calls: &str, args: &[&str]) -> (Ran, String) {
    let trace = home.dir.path().join("trace");
    let plain = home.command::<&str>(&[]);
    let mut command = Command::new("strace");
    command
        .args(["-f", "-qq", "-o"])
        .arg(&trace)
        .args(["-e", &format!("inject={calls}:error=ENOSYS")])
        .arg(plain.get_program())
        .args(args)
        .stdin(Stdio::null());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let ran = ended(command);
    let trace = std::fs::read_to_string(&trace).unwrap_or_default();
    let refused: Vec<&str> = trace
        .lines()
        .filter(|line| line.contains("(INJECTED)"))
        .collect();
    (ran, refused.join("\n"))
}

/// Verbs that do not need the calls print the same; other verbs name the missing one.
#[test]
fn attack_calls_that_a_sandbox_leaves_out() {
    if !strace() {
        return;
    }
    let home = Home::new();
    let target = home.target();
    let dir = target.path().to_str().unwrap();
    let mut asked = String::new();
    let mut tried = 0;
    for args in [
        &["version", "--json"][..],
        &["advice"],
        &["plan", "layout", "4T", "4T"],
        &["lint", "fio --name=t --rw=randread --iodepth=32"],
        &["runs"],
        &["trial", "--recover"],
        &["stack", dir],
        &["lab", "list"],
        &["facts", "kernel"],
        &["fleet", "list"],
    ] {
        let (ran, refused) = without(&home, LATE, args);
        let usual = home.assay(args);
        assert_eq!(ran.code, usual.code, "{args:?}: {}", ran.stderr);
        asked.push_str(&refused);
        tried += 1;
    }
    if common::fio() {
        let quick = quick(dir);
        let (ran, refused) = without(&home, LATE, &quick);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(entries(target.path()), Vec::<String>::new());
        asked.push_str(&refused);
        tried += 1;
    }
    // Otherwise the test would show nothing.
    for call in ["statx", "pidfd_open", "openat2"] {
        assert!(asked.contains(call), "{call} was never asked for");
    }
    // Without it hard links of one file cannot be detected, which is reported.
    let (ran, refused) = without(&home, "statx", &["dups", "scan", dir]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(
        refused.contains("statx") && ran.stderr.contains("statx(2)"),
        "{}",
        ran.stderr
    );
    let (ran, refused) = without(
        &home,
        LATE.split_once(',').unwrap().1,
        &["dups", "scan", dir],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(refused.contains("openat2"), "{refused}");
    // The script for another machine is written to a file instead of memory.
    let (ran, refused) = without(
        &home,
        "memfd_create",
        &["facts", "--host", "nobody@127.0.0.1"],
    );
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(refused.contains("memfd_create"));
    assert!(!ran.stderr.contains("not implemented"), "{}", ran.stderr);
    tried += 3;
    assay_testing::attacked("calls that a sandbox leaves out", tried, tried);
}

/// An unprivileged user with a read-only home and without shared memory: read-only verbs work, and
/// others name the variable or option for another directory.
#[test]
fn nobody_with_a_home_that_cannot_be_written_to() {
    const NOBODY: &str = "65534";
    if !common::root() {
        return;
    }
    // Readable for others, on a file system that permits this.
    let dir = tempfile::Builder::new()
        .permissions(std::fs::Permissions::from_mode(0o755))
        .tempdir_in("/var/tmp")
        .unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::copy(env!("CARGO_BIN_EXE_assay"), at("assay")).unwrap();
    for name in ["home", "own"] {
        std::fs::create_dir(at(name)).unwrap();
    }
    std::os::unix::fs::chown(at("own"), Some(65534), Some(65534)).unwrap();
    let run = |more: &[(&str, &str)], args: &[&str]| {
        let script = "mount -t tmpfs -o ro none /dev/shm && mount --bind home home && \
                      mount -o remount,ro,bind home && cd own && \
                      exec setpriv --reuid \"$1\" --regid \"$1\" --clear-groups \"$0\" \"${@:2}\"";
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "bash", "-c", script])
            .arg(at("assay"))
            .arg(NOBODY)
            .args(args)
            .current_dir(dir.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", at("home"))
            .envs(more.iter().copied())
            .stdin(Stdio::null());
        ended(command)
    };
    for args in [
        &["advice", "noatime"][..],
        &["runs"],
        &["facts", "kernel"],
        &["plan", "layout", "4T", "4T"],
        &["fleet", "list"],
    ] {
        let ran = run(&[], args);
        assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
    }
    let quick = quick(".");
    for (args, way_out) in [
        (&quick[..], "ASSAY_STATE"),
        (&["trial", "--recover"], "ASSAY_STATE"),
        (&["lab", "list"], "ASSAY_STATE"),
        (&["watch", "list"], "ASSAY_STATE"),
        (&["dups", "scan", "."], "--index"),
    ] {
        let ran = run(&[], args);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{args:?}");
        assert!(ran.stderr.contains(way_out), "{args:?}: {}", ran.stderr);
        assert_eq!(ran.stderr.trim().lines().count(), 1, "{}", ran.stderr);
    }
    if common::fio() {
        let state = at("own").join(".state");
        let store = at("own").join(".store.db");
        let named = [
            ("ASSAY_STATE", state.to_str().unwrap()),
            ("ASSAY_STORE", store.to_str().unwrap()),
        ];
        let ran = run(&named, &quick);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(run(&named, &["show", "last"]).code, Some(0));
    }
}
