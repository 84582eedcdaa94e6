//! Machines that hang, lie or are replaced, and an assay that is killed during a fleet check.

use super::common::servers::{Servers, little_root};
use super::common::{self, Home};
use super::{json, run};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::BufRead as _;
use std::net::TcpListener;
use std::process::Stdio;
use std::time::Duration;

/// A dozen machines behind a bastion with default limits, some without it, and some misbehaving.
#[test]
fn a_fleet_with_a_bastion_and_machines_that_hang_lie_or_are_others() {
    let Some(mut servers) = Servers::new() else {
        return;
    };
    // Each is a separate, empty machine, quickly read.
    let Some(root) = little_root(
        &servers,
        "root",
        &[("etc/os-release", "ID=debian\nVERSION_ID=\"12\"\n")],
    ) else {
        return;
    };
    let inside = format!(
        "ForceCommand exec chroot {} /bin/busybox sh",
        root.display()
    );
    let bastion = servers.start("gate", "");
    servers.name("gate", bastion, "");
    let inner = servers.start("inner", &inside);
    for number in 1..=12 {
        // Different machines for assay: another user name would do too.
        let port = servers.start(&format!("inner{number}"), &inside);
        servers.name(&format!("inner{number}"), port, "  ProxyJump gate\n");
    }
    servers.name("direct", inner, "");
    servers.name("alias", inner, "");
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    servers.name("silent", silent.local_addr().unwrap().port(), "");
    // It ends with its connection, so it leaves nothing behind.
    servers.machine("asleep", "ForceCommand while printf .; do sleep 1; done");
    servers.machine("talker", "ForceCommand head -c 100000000 /dev/zero");
    servers.machine(
        "liar",
        "ForceCommand printf '\\033[31mno bundle <script>\\n'",
    );
    servers.machine("exchanged", &inside);
    let other = servers.public("other");
    let last = servers.known.trim_end().rfind('\n').map_or(0, |at| at + 1);
    let place = servers.known[last..].split(' ').next().unwrap().to_owned();
    servers.known.truncate(last);
    let _ = writeln!(servers.known, "{place} {other}");
    let config = servers.config();
    let home = Home::new();
    let inventory = home.dir.path().join("fleet.toml");
    std::fs::write(
        &inventory,
        "deadline = 30\n[groups]\nall-of-it = [\"inner*\", \"direct\", \"alias\", \"silent\", \"asleep\", \"talker\", \"liar\", \"exchanged\", \"<script>alert(1)</script>\"]\n\
         [machines.silent]\ndeadline = 3\n[machines.asleep]\ndeadline = 3\n[machines.\"<script>alert(1)</script>\"]\naddress = \"direct\"\nsudo = false\n",
    )
    .unwrap();
    let inventory = inventory.to_str().unwrap();
    let ask = |more: &[&str]| {
        let mut args = vec![
            "fleet",
            "check",
            "all-of-it",
            "--inventory",
            inventory,
            "--quiet",
        ];
        args.extend(more);
        run(&home, &config, &args)
    };
    let ran = ask(&["--json"]);
    assert_eq!(ran.code, Some(3), "{}\n{}", ran.stderr, ran.stdout);
    common::schemas::holds("fleet-check", &ran.stdout, &[]);
    let facts = run(
        &home,
        &config,
        &["fleet", "facts", "direct", "--json", "--quiet"],
    );
    common::schemas::holds("fleet-facts", &facts.stdout, &["/machines/0"]);
    let document = json(&ran.stdout);
    let machine = |name: &str| {
        let all = document["machines"].as_array().unwrap();
        let found = all.iter().find(|one| one["name"] == name);
        found
            .unwrap_or_else(|| panic!("{name}: {}", ran.stdout))
            .clone()
    };
    for number in 1..=12 {
        let one = machine(&format!("inner{number}"));
        assert!(one["findings"].is_array(), "{one}\n{}", servers.log("gate"));
    }
    assert!(
        !servers.log("gate").contains("MaxStartups"),
        "{}",
        servers.log("gate")
    );
    for (name, kind) in [
        ("silent", "deadline"),
        ("asleep", "deadline"),
        ("talker", "too-much"),
        ("liar", "bundle"),
        ("exchanged", "host-key"),
    ] {
        assert_eq!(machine(name)["failed"]["kind"], kind, "{}", machine(name));
    }
    // One of three names was checked, the others are the same machine.
    let names = ["direct", "alias", "<script>alert(1)</script>"];
    let asked = names
        .iter()
        .filter(|name| machine(name)["findings"].is_array());
    assert_eq!(asked.count(), 1);
    assert!(!ran.stdout.contains('\u{1b}'));

    let ran = ask(&[]);
    let text = &ran.stdout;
    let (lines, report) = crate::parts(text);
    // Two are the same machine as another one.
    assert_eq!(lines.len(), 18, "{lines:?}");
    insta::assert_snapshot!(report.split('.').next().unwrap(), @"20 machines: 13 checked, 5 could not be asked");
    assert!(!text.contains('\u{1b}'), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    assert_eq!(
        text.matches("silent: no bundle after 3 s").count(),
        1,
        "{text}"
    );
    // For monitoring, and as a page in a file.
    let ran = ask(&["--format", "prometheus"]);
    let up = |value: char| {
        let lines = ran.stdout.lines();
        let is = |line: &&str| line.starts_with("assay_check_up{") && line.ends_with(value);
        lines.filter(is).count()
    };
    assert_eq!((up('1'), up('0')), (13, 5), "{}", ran.stdout);
    assert!(
        ran.stdout
            .contains("assay_check_findings{machine=\"inner1\",severity=\"high\"} ")
    );
    let nagios = ask(&["--format", "nagios"]);
    assert_eq!(nagios.stdout.lines().count(), 1, "{}", nagios.stdout);
    assert_eq!(nagios.stdout.matches('|').count(), 1);
    assert!(
        nagios.stdout.contains("machines=13;;;0 failed=5;;;0"),
        "{}",
        nagios.stdout
    );
    assert_eq!(nagios.code, Some(3));
    let page = home.dir.path().join("page.html");
    let html = ask(&["--format", "html", "-o", page.to_str().unwrap()]);
    assert_eq!(
        (html.code, html.stdout.as_str()),
        (Some(3), ""),
        "{}",
        html.stderr
    );
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("inner12") && !page.contains("<script>alert(1)"));
    // No machine changed.
    let changed = home.assay(&["changed"]);
    assert_eq!(
        (changed.code, changed.stdout.as_str()),
        (Some(0), ""),
        "{}",
        changed.stderr
    );
    assay_testing::attacked("machines that hang, lie or are others", 5, 5);
}

/// A hanging machine delays no other result, and results so far are kept after an interruption.
#[test]
fn answers_are_printed_as_they_come() {
    let Some(mut servers) = Servers::new() else {
        return;
    };
    let files = [("etc/os-release", "ID=debian\n")];
    let Some(root) = little_root(&servers, "root", &files) else {
        return;
    };
    let inside = format!(
        "ForceCommand exec chroot {} /bin/busybox sh",
        root.display()
    );
    servers.machine("good", &inside);
    servers.machine("asleep", "ForceCommand while printf .; do sleep 1; done");
    let config = servers.config();
    let home = Home::new();
    let args = [
        "fleet",
        "check",
        "asleep",
        "good",
        "--deadline",
        "3000",
        "--quiet",
        "--ssh-config",
        &config,
    ];
    let mut child = home.command(&args).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    assert!(first.starts_with("good "), "{first}");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(
        rest.join("\n")
            .contains("2 machines: 1 checked, 1 could not"),
        "{rest:?}"
    );
    assert_eq!(common::entries(&home.state().join("fleet")), ["good"]);
}

/// A connection that ends before, in or after the bundle's first line is named, whatever a banner says.
#[test]
fn a_lost_connection_is_no_broken_bundle() {
    let Some(mut servers) = Servers::new() else {
        return;
    };
    let banner = servers.path("banner");
    std::fs::write(&banner, "NOTICE: authorised users only\n").unwrap();
    let banner = format!("Banner {}\n", banner.display());
    // The parent of the command is sshd's process of the session.
    for (name, words) in [
        ("early", "kill -9 $PPID"),
        ("begun", "echo 'assay-bundle 1 none'; kill -9 $PPID"),
        (
            "talked",
            "echo 'Welcome: to this machine'; echo 'assay-bundle 1 none'; kill -9 $PPID",
        ),
    ] {
        servers.machine(name, &format!("{banner}ForceCommand {words}; sleep 20"));
    }
    let config = servers.config();
    let home = Home::new();
    let args = [
        "fleet", "check", "early", "begun", "talked", "--quiet", "--json",
    ];
    let ran = run(&home, &config, &args);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    for machine in json(&ran.stdout)["machines"].as_array().unwrap() {
        let failed = &machine["failed"];
        assert_eq!(failed["kind"], "unreachable", "{machine}");
        // What ssh says depends on whether it was writing.
        let reason = failed["reason"].as_str().unwrap();
        let is_named = reason.contains("closed") || reason.contains("Broken pipe");
        assert!(is_named && !reason.contains("NOTICE"), "{reason}");
    }
}

/// Killed at any time, assay loses no reported result and leaves no partial one.
#[test]
fn attack_killed_at_any_moment_keeps_what_was_kept() {
    let Some(mut servers) = Servers::new() else {
        return;
    };
    let files = [("etc/os-release", "ID=debian\n")];
    let Some(root) = little_root(&servers, "root", &files) else {
        return;
    };
    servers.machine(
        "one",
        &format!(
            "ForceCommand exec chroot {} /bin/busybox sh",
            root.display()
        ),
    );
    let config = servers.config();
    let home = Home::new();
    let args = ["fleet", "check", "one", "--quiet", "--ssh-config", &config];
    let dir = home.state().join("fleet/one");
    let lines = || -> Vec<Value> {
        let text = std::fs::read_to_string(dir.join("log.jsonl")).unwrap_or_default();
        text.lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    };
    let mut before = 0;
    let kills = 10 * assay_testing::attack_factor();
    for number in 0..kills {
        let mut child = home.command(&args).stdout(Stdio::null()).spawn().unwrap();
        // From before the session to after the last line.
        std::thread::sleep(Duration::from_millis(60 + 61 * (number % 12)));
        let _ = child.kill();
        let _ = child.wait();
        let known = lines();
        assert!(known.len() >= before, "something that was kept is gone");
        for entry in &known {
            let bundle = dir.join(format!("{}.bundle", entry["bundle"].as_str().unwrap()));
            assert!(bundle.exists(), "{entry}");
        }
        before = known.len();
    }
    let ran = home.assay(&args);
    insta::assert_snapshot!(ran.stdout.split('.').next().unwrap(), @"1 machine: 1 checked");
    let (known, bundles) = (lines().len(), common::entries(&dir));
    assert!(known > before);
    assert!(
        bundles.iter().all(|name| !name.ends_with(".part")),
        "{bundles:?}"
    );
    let bundles = bundles
        .iter()
        .filter(|name| name.ends_with(".bundle"))
        .count();
    assert!(bundles <= known, "{bundles} bundles for {known} lines");
    let changed = home.assay(&["changed"]);
    assert!(changed.stdout.is_empty(), "{}", changed.stdout);
    assay_testing::attacked("kills of the hub", kills, kills);
}
