//! Other machines over ssh, as a user reaches them: real servers of OpenSSH on ports of this one, some of them
//! with a root of their own, some of them hostile.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

#[path = "../common/mod.rs"]
mod common;

use common::servers::{Servers, little_root};
use common::{Home, Ran};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn run(home: &Home, config: &str, args: &[&str]) -> Ran {
    let mut command = home.command(args);
    command.args(["--ssh-config", config]);
    command.env("XDG_CONFIG_HOME", home.dir.path().join("config"));
    common::ended(command)
}

fn fingerprints(document: &Value) -> BTreeSet<String> {
    let all = document["findings"].as_array().unwrap().iter();
    // Programs are searched for copies of libraries on the machine itself alone.
    let everywhere = |rule: &str| !rule.contains("mapped") && !rule.starts_with("openssl-copy");
    all.filter(|finding| everywhere(finding["rule"].as_str().unwrap()))
        .map(|finding| format!("{} {}", finding["fingerprint"], finding["certainty"]))
        .collect()
}

#[test]
fn a_machine_over_ssh_is_checked_as_if_assay_ran_there() {
    let Some(mut servers) = Servers::new() else {
        return;
    };
    let banner = servers.path("banner");
    std::fs::write(&banner, "Authorised use only: assay-bundle 1 of them\n").unwrap();
    let banner = format!(
        "Banner {}\nForceCommand echo Welcome to this machine; exec $SSH_ORIGINAL_COMMAND",
        banner.display()
    );
    servers.machine("box", &banner);
    servers.machine("plain", "");
    let config = servers.config();
    let home = Home::new();
    let local = home.assay(&["check", "--json"]);
    let local = fingerprints(&json(&local.stdout));
    for name in ["box", "plain"] {
        let there = run(&home, &config, &["check", "--json", "--host", name]);
        assert!(
            [Some(0), Some(1), Some(3)].contains(&there.code),
            "{}",
            there.stderr
        );
        assert_eq!(fingerprints(&json(&there.stdout)), local);
    }
    // The same by hand, through a file and through a pipe.
    let script = home.assay(&["facts", "--script"]);
    assert_eq!(script.code, Some(0));
    let file = home.dir.path().join("collector");
    std::fs::write(&file, &script.stdout).unwrap();
    let sent = Command::new("ssh")
        .args(["-F", &config, "box", "sh"])
        .stdin(std::fs::File::open(&file).unwrap())
        .output()
        .unwrap();
    let bundle = home.dir.path().join("box.bundle");
    std::fs::write(&bundle, sent.stdout).unwrap();
    let there = home.assay(&["check", "--json", "--root", bundle.to_str().unwrap()]);
    assert_eq!(fingerprints(&json(&there.stdout)), local);
    let mut piped = home.command(&["facts", "--root", "-", "kernel.release"]);
    piped.stdin(std::fs::File::open(&bundle).unwrap());
    let piped = common::ended(piped);
    assert!(piped.stdout.contains("kernel"), "{}", piped.stderr);
    // What lies under a path of that machine.
    let stack = run(&home, &config, &["stack", "--host", "box", "/usr"]);
    let here = home.assay(&["stack", "/usr"]);
    let layers = |text: &str| text.lines().next().map(str::to_owned);
    assert_eq!(stack.code, here.code, "{}", stack.stderr);
    assert_eq!(layers(&stack.stdout), layers(&here.stdout));
}

#[test]
fn one_sudo_for_a_machine() {
    let Some(mut servers) = Servers::new() else {
        return;
    };
    let count = servers.path("sudo.count");
    let body = format!(
        "printf '%s\\n' \"$*\" >> {}\n[ \"$1\" = -n ] || exit 9\nshift\nexec \"$@\"",
        count.display()
    );
    common::script(servers.dir.path(), "sudo", &body);
    let path = format!("SetEnv PATH={}:/usr/bin:/bin", servers.dir.path().display());
    servers.machine("box", &path);
    let refused = servers.path("refused");
    std::fs::create_dir(&refused).unwrap();
    common::script(
        &refused,
        "sudo",
        "echo 'sudo: a password is required' >&2; exit 1",
    );
    servers.machine(
        "closed",
        &format!("SetEnv PATH={}:/usr/bin:/bin", refused.display()),
    );
    let config = servers.config();
    let home = Home::new();
    let ran = run(
        &home,
        &config,
        &["facts", "--host", "box", "--sudo", "kernel"],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(&count).unwrap(), "-n sh\n");
    let ran = run(&home, &config, &["facts", "--host", "closed", "--sudo"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""));
    assert!(ran.stderr.contains("without a password"), "{}", ran.stderr);
}

/// A dozen machines behind a bastion with the usual limits, some without it, and some that do not behave.
#[test]
fn a_fleet_with_a_bastion_and_machines_that_hang_lie_or_are_others() {
    let Some(mut servers) = Servers::new() else {
        return;
    };
    // Each of these is an empty machine of its own, quickly read.
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
        // Different machines to assay: another user name would do as well.
        let port = servers.start(&format!("inner{number}"), &inside);
        servers.name(&format!("inner{number}"), port, "  ProxyJump gate\n");
    }
    servers.name("direct", inner, "");
    servers.name("alias", inner, "");
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    servers.name("silent", silent.local_addr().unwrap().port(), "");
    // It ends with its connection, and so leaves nothing behind.
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
    // One of three names was asked, the others are the same machine.
    let names = ["direct", "alias", "<script>alert(1)</script>"];
    let asked = names
        .iter()
        .filter(|name| machine(name)["findings"].is_array());
    assert_eq!(asked.count(), 1);
    assert!(!ran.stdout.contains('\u{1b}'));

    let ran = ask(&[]);
    let text = &ran.stdout;
    assert!(
        text.starts_with("20 machines: 13 checked, 5 could not be asked."),
        "{text}"
    );
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
    // Nothing changed on any of them.
    let changed = home.assay(&["changed"]);
    assert_eq!(
        (changed.code, changed.stdout.as_str()),
        (Some(0), ""),
        "{}",
        changed.stderr
    );
    assay_testing::attacked("machines that hang, lie or are others", 5, 5);
}

#[test]
fn what_changed_has_its_cause() {
    let Some(mut servers) = Servers::new() else {
        return;
    };
    let package = |version: &str| {
        format!("Package: nginx\nStatus: install ok installed\nVersion: {version}\n")
    };
    let before = [
        (
            "etc/os-release",
            "ID=debian\nVERSION_ID=\"12\"\n".to_owned(),
        ),
        (
            "etc/ssh/sshd_config",
            "Include /etc/ssh/sshd_config.d/*.conf\nUsePAM yes\n".to_owned(),
        ),
        (
            "etc/sysctl.d/50-own.conf",
            "vm.swappiness = 10\n".to_owned(),
        ),
        ("proc/sys/vm/swappiness", "10\n".to_owned()),
        ("proc/sys/vm/dirty_ratio", "20\n".to_owned()),
        ("proc/sys/kernel/osrelease", "6.1.0-17-amd64\n".to_owned()),
        ("proc/stat", "btime 1700000000\n".to_owned()),
        ("proc/uptime", "1000.00 0\n".to_owned()),
        (
            "proc/meminfo",
            "MemTotal: 1000 kB\nMemAvailable: 500 kB\n".to_owned(),
        ),
        ("var/lib/dpkg/status", package("1.22.1-9")),
    ];
    let files: Vec<(&str, &str)> = before
        .iter()
        .map(|(path, text)| (*path, text.as_str()))
        .collect();
    let mut roots = Vec::new();
    for name in ["one", "two", "same"] {
        let Some(root) = little_root(&servers, name, &files) else {
            return;
        };
        servers.machine(
            name,
            &format!(
                "ForceCommand exec chroot {} /bin/busybox sh",
                root.display()
            ),
        );
        roots.push(root);
    }
    let config = servers.config();
    let home = Home::new();
    let check = || {
        run(
            &home,
            &config,
            &["fleet", "check", "one", "two", "same", "--quiet"],
        )
    };
    let first = check();
    assert!(
        first.stdout.starts_with("3 machines: 3 checked"),
        "{}\n{}",
        first.stdout,
        first.stderr
    );
    let none = home.assay(&["changed"]);
    assert_eq!(
        (none.code, none.stdout.as_str()),
        (Some(0), ""),
        "{}",
        none.stderr
    );

    let put = |root: &Path, path: &str, text: &str| {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    // Planted on the first: a drop-in with a finding, another value while it runs, a package.
    put(
        &roots[0],
        "etc/ssh/sshd_config.d/10-dns.conf",
        "# why\nUseDNS yes\n",
    );
    put(&roots[0], "proc/sys/vm/dirty_ratio", "5\n");
    put(
        &roots[0],
        "var/lib/dpkg/status",
        &package("1.22.1-9+deb12u1"),
    );
    // On the second: another kernel after a restart, a value that follows its file.
    put(&roots[1], "proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
    put(&roots[1], "proc/stat", "btime 1700090000\n");
    put(&roots[1], "etc/sysctl.d/50-own.conf", "vm.swappiness = 1\n");
    put(&roots[1], "proc/sys/vm/swappiness", "1\n");
    // On all, what changes all the time.
    for root in &roots {
        put(
            root,
            "proc/meminfo",
            "MemTotal: 1000 kB\nMemAvailable: 17 kB\n",
        );
        put(root, "proc/uptime", "2000.00 0\n");
    }
    // Times are kept in seconds.
    std::thread::sleep(Duration::from_secs(1));
    let second = check();
    assert!(
        second.stdout.starts_with("3 machines: 3 checked"),
        "{}",
        second.stdout
    );
    let changed = home.assay(&["changed", "--json"]);
    assert_eq!(changed.code, Some(1), "{}", changed.stderr);
    common::schemas::holds("changed", &changed.stdout, &["/machines/0"]);
    let document = json(&changed.stdout);
    let of = |name: &str| {
        let all = document["machines"].as_array().unwrap();
        let one = all.iter().find(|one| one["name"] == name).unwrap();
        one["changes"].as_array().unwrap().clone()
    };
    let cause = |name: &str, what: &str| {
        let found = of(name).into_iter().find(|change| change["what"] == what);
        let found = found.unwrap_or_else(|| panic!("{what}: {}", changed.stdout));
        found["cause"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(
        cause("one", "sysctl.vm.dirty_ratio"),
        "it was set while the machine ran"
    );
    assert_eq!(
        cause("one", "package.nginx.version"),
        "the package nginx has another version"
    );
    assert_eq!(
        cause("one", "sshd.usedns"),
        "/etc/ssh/sshd_config.d/10-dns.conf:2 was edited"
    );
    let findings: Vec<Value> = of("one")
        .into_iter()
        .filter(|change| change["kind"] == "finding-came")
        .collect();
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(
        findings[0]["cause"],
        "/etc/ssh/sshd_config.d/10-dns.conf:2 was edited"
    );
    assert_eq!(
        cause("two", "kernel.release"),
        "the machine was started anew with it"
    );
    assert_eq!(
        cause("two", "sysctl.vm.swappiness"),
        "/etc/sysctl.d/50-own.conf:1 was edited"
    );
    assert!(of("same").is_empty(), "{:?}", of("same"));
    let text = home.assay(&["changed", "same"]);
    assert_eq!((text.code, text.stdout.as_str()), (Some(0), ""));
    let text = home.assay(&["changed"]);
    assert!(
        text.stdout.contains("~ sysctl.vm.dirty_ratio: 20 → 5"),
        "{}",
        text.stdout
    );
    assert!(!text.stdout.contains("same"), "{}", text.stdout);

    // The store knows since when; what did not change, since when it was looked at.
    let spans = |words: &[&str]| {
        let ran = home.assay(&[&["changed", "--json"], words].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let all = json(&ran.stdout)["spans"].as_array().unwrap().clone();
        let closed: &[&str] = if all.is_empty() { &[] } else { &["/spans/0"] };
        common::schemas::holds("changed-key", &ran.stdout, closed);
        all
    };
    let now = spans(&["--key", "sysctl.vm.dirty_ratio"]);
    let mut told: Vec<(&str, bool)> = now
        .iter()
        .map(|span| (span["machine"].as_str().unwrap(), span["changed"] == true))
        .collect();
    told.sort_unstable();
    assert_eq!(told, [("one", true), ("same", false), ("two", false)]);
    let one = now.iter().find(|span| span["machine"] == "one").unwrap();
    assert_eq!(one["until"], Value::Null);
    assert!(one["after"].as_str() < one["since"].as_str(), "{one:#}");
    assert_ne!(one["before"], one["value"]);
    // All that changed on one machine, the finding among it.
    let all = spans(&["--key", "", "--since", "1h", "one"]);
    let has = |key: &str| all.iter().any(|span| span["key"] == key);
    assert!(
        has("sysctl.vm.dirty_ratio") && has("package.nginx.version"),
        "{all:#?}"
    );
    assert!(
        all.iter().any(|span| span["about"] == "finding"),
        "{all:#?}"
    );
    assert_eq!(
        spans(&["--key", "", "--since", "1h", "same"]),
        [] as [Value; 0]
    );
    let none = home.assay(&["changed", "--key", "sysctl.", "nowhere"]);
    assert_eq!(none.code, Some(2), "{}", none.stdout);
    assert!(none.stderr.contains("one, same, two"), "{}", none.stderr);
}

/// Killed at any moment, assay loses nothing that it had told, and leaves nothing half done.
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
    let kills = 10 * assay_testing::factor();
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
    assert!(
        ran.stdout.starts_with("1 machine: 1 checked"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
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

#[test]
fn names_that_are_none_and_inventories_that_are_wrong() {
    let home = Home::new();
    let ask = |args: &[&str]| {
        let mut command = home.command(args);
        command
            .env("HOME", home.dir.path())
            .env("XDG_CONFIG_HOME", home.dir.path());
        common::ended(command)
    };
    let ran = ask(&["facts", "--host=-oProxyCommand=touch /tmp/x"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("begins with a hyphen"),
        "{}",
        ran.stderr
    );
    let ran = ask(&["changed"]);
    assert_eq!(ran.code, Some(2));
    // A machine that sends by itself, and one that sends something else.
    let receive = |bytes: &[u8]| {
        let file = home.dir.path().join("sent");
        std::fs::write(&file, bytes).unwrap();
        let mut command = home.command(&["fleet", "receive", "pushed"]);
        command.stdin(std::fs::File::open(&file).unwrap());
        common::ended(command)
    };
    assert_eq!(receive(b"Welcome\n").code, Some(3));
    assert!(!home.state().join("fleet/pushed").exists());
    let bundle = include_bytes!("../../../hostile/fixtures/bundle.tar");
    for _ in 0..2 {
        let ran = receive(bundle);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (Some(0), ""),
            "{}",
            ran.stderr
        );
    }
    let ran = ask(&["changed", "pushed"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), ""),
        "{}",
        ran.stderr
    );
    let ran = ask(&["fleet", "list"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), ""),
        "{}",
        ran.stderr
    );
    let file = home.dir.path().join("bad.toml");
    std::fs::write(&file, "[groups]\nweb = 7\n").unwrap();
    let ran = ask(&["fleet", "list", "--inventory", file.to_str().unwrap()]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("bad.toml") && ran.stderr.contains("line 2"),
        "{}",
        ran.stderr
    );
    let list = home.dir.path().join("ansible.json");
    std::fs::write(
        &list,
        r#"{"web":{"hosts":["web1"]},"_meta":{"hostvars":{"web1":{"ansible_host":"10.0.0.1"}}}}"#,
    )
    .unwrap();
    let ran = ask(&[
        "fleet",
        "list",
        "--ansible",
        list.to_str().unwrap(),
        "--json",
    ]);
    common::schemas::holds("fleet-list", &ran.stdout, &["/machines/0"]);
    assert_eq!(json(&ran.stdout)["machines"][0]["address"], "10.0.0.1");
    let ran = ask(&[
        "fleet",
        "check",
        "nobody",
        "--ansible",
        list.to_str().unwrap(),
    ]);
    assert!(ran.stderr.contains("there are web, web1"), "{}", ran.stderr);
}
