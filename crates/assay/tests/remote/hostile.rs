//! Machines that cannot or will not do what is requested.

use crate::Machine;
use crate::common::servers::Servers;
use crate::common::{self, Home};
use std::process::Command;

/// Starts a server whose every command is this script.
fn forced(script: &str) -> Option<(Servers, Home, String)> {
    let mut servers = Servers::new()?;
    let path = common::script(servers.dir.path(), "forced", script);
    servers.machine("box", &format!("ForceCommand {}", path.display()));
    let config = servers.config();
    Some((servers, Home::new(), config))
}

/// Returns the error of a run there, which ends within a minute.
fn error(script: &str) -> Option<String> {
    let (_servers, home, config) = forced(script)?;
    let mut command = home.command(&["run", "quick", "/tmp", "--host", "box", "--deadline", "20"]);
    command.args(["--ssh-config", &config, "--silence", "10"]);
    command.args(["--remote-assay", common::uploaded()]);
    let begun = std::time::Instant::now();
    let ran = common::ended(command);
    assert!(begun.elapsed().as_secs() < 90, "{}", ran.stderr);
    assert!(
        matches!(ran.code, Some(2 | 3)),
        "{:?} {}",
        ran.code,
        ran.stderr
    );
    assert!(!ran.stderr.contains('\u{1b}'), "{}", ran.stderr);
    // The store contains nothing of it.
    let list = home.assay(&["runs", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&list.stdout).unwrap_or_default();
    assert!(list["runs"].as_array().is_none_or(Vec::is_empty), "{list}");
    Some(ran.stderr)
}

#[test]
fn machines_that_do_something_else_cost_one_line() {
    let all = [
        ("exit 0", ""),
        ("echo 'no shell for you' >&2; exit 1", "no shell for you"),
        ("exec sleep 600", "--deadline"),
        ("exec cat /dev/zero", "1 MiB"),
        ("yes 'assay-remote 1 place x86_64 /etc'", ""),
        (
            "echo 'assay-remote 1 place s390 /tmp/assay-remote.x'; exec sleep 600",
            "",
        ),
        (
            "echo 'assay-remote 1 place aarch64 /tmp/assay-remote.x'; exec sleep 600",
            "--remote-assay",
        ),
        ("echo 'assay-remote 1 no-place x86_64'", "execute"),
        ("echo 'assay-remote 1 no-sha256sum'; sleep 1", "sha256sum"),
        ("echo 'assay-remote 1 ready 0.0.1'; exec sleep 600", "0.0.1"),
        (
            "printf '\\033]0;owned\\007assay-remote 1 ready \\033[31m0.2\\n'; exec sleep 600",
            "0.2",
        ),
    ];
    std::thread::scope(|threads| {
        for (script, expected) in all {
            threads.spawn(move || {
                if let Some(said) = error(script) {
                    assert!(said.contains(expected), "{script}: {said}");
                }
            });
        }
    });
}

/// A user who waits for a machine can interrupt.
#[test]
fn ctrl_c_on_the_way_there() {
    let Some((servers, home, config)) = forced("exec sleep 600") else {
        return;
    };
    for verb in [&["run", "quick", "/tmp"][..], &["check"]] {
        let asked = servers.dir.path().join("log");
        let mut command = home.command(verb);
        command.args(["--host", "box", "--ssh-config", &config]);
        let mut child = crate::start(command, &asked);
        crate::until("ssh runs", crate::LIMIT, || crate::ssh_of(&child).is_some());
        crate::signal(
            rustix::process::Pid::from_child(&child),
            rustix::process::Signal::INT,
        );
        let said = || std::fs::read_to_string(&asked).unwrap_or_default();
        assert_eq!(
            child.wait().unwrap().code(),
            Some(130),
            "{verb:?}: {}",
            said()
        );
    }
}

/// It reports that it is ready, then sends endless invalid frames.
#[test]
fn garbage_after_the_greeting_has_an_end() {
    let version = env!("CARGO_PKG_VERSION");
    let script = format!(
        "echo 'assay-remote 1 ready {version}'; head -c 3000000 /dev/urandom; exec sleep 600"
    );
    if let Some(said) = error(&script) {
        // On a busy machine lines of progress come before.
        let last = said.lines().last().unwrap_or_default();
        insta::assert_snapshot!(assay_testing::without_figures(last), @"assay: box: nothing was heard from it for # s: it reverts the changes by itself");
    }
}

/// `/tmp` is mounted noexec, as on hardened machines.
#[test]
fn a_machine_whose_tmp_may_not_execute() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let mounted = Command::new("unshare")
        .args([
            "-m",
            "sh",
            "-c",
            "mount -t tmpfs -o noexec none /tmp && test ! -x /tmp/x",
        ])
        .output()
        .is_ok_and(|output| output.status.success());
    if !mounted {
        assay_testing::skipped("mount", "no mount namespaces here");
        return;
    }
    // The server runs in a mount namespace with a noexec /tmp.
    let mut servers = machine.servers;
    let at = servers.dir.path().display().to_string();
    let port = servers.start_in(
        "hardened",
        &[
            "unshare",
            "-m",
            "sh",
            "-c",
            "mount --bind /tmp /tmp && mount -o remount,bind,noexec /tmp && exec \"$@\"",
            "sh",
        ],
    );
    servers.name("hardened", port, "");
    let config = servers.config();
    let mut command = machine
        .home
        .command(&["trial", "--recover", "--host", "hardened"]);
    command.args(["--ssh-config", &config]);
    let ran = common::ended(command);
    // 1: something of other processes is left on this machine; the program ran anyway.
    let ended = matches!(ran.code, Some(0 | 1));
    assert!(ended, "{at} {} {}", ran.stdout, ran.stderr);
}
