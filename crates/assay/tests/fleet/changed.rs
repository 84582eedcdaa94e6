//! Changes of machines between two surveys, with their causes.

use super::common::servers::{Servers, little_root};
use super::common::{self, Home};
use super::{json, run};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

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
    let (lines, report) = crate::parts(&first.stdout);
    assert_eq!(lines.len(), 3, "{lines:?}");
    insta::assert_snapshot!(report.split('.').next().unwrap(), @"3 machines: 3 checked");
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
    // On the first machine: a drop-in with a finding, another run-time value, a package.
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
    // On the second: another kernel after a reboot, a value that follows its file.
    put(&roots[1], "proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
    put(&roots[1], "proc/stat", "btime 1700090000\n");
    put(&roots[1], "etc/sysctl.d/50-own.conf", "vm.swappiness = 1\n");
    put(&roots[1], "proc/sys/vm/swappiness", "1\n");
    // On all: values that change all the time.
    for root in &roots {
        put(
            root,
            "proc/meminfo",
            "MemTotal: 1000 kB\nMemAvailable: 17 kB\n",
        );
        put(root, "proc/uptime", "2000.00 0\n");
    }
    // Times are stored in seconds.
    std::thread::sleep(Duration::from_secs(1));
    let second = check();
    let (_, report) = crate::parts(&second.stdout);
    insta::assert_snapshot!(report.split('.').next().unwrap(), @"3 machines: 3 checked");
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
    let line = text
        .stdout
        .lines()
        .find(|line| line.contains("dirty_ratio"));
    insta::assert_snapshot!(line.unwrap().trim(), @"~ sysctl.vm.dirty_ratio: 20 → 5");
    assert!(!text.stdout.contains("same"), "{}", text.stdout);

    // The store knows the start of each value; for unchanged values the first survey.
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
    // All changes of one machine, including the finding.
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
    insta::assert_snapshot!(home.refusal(&none), @"assay: nowhere: was not looked at yet; there are one, same, two");
}

/// Packages without a rule are compared too; many are summarised.
#[test]
fn all_packages_are_compared() {
    let Some(mut servers) = Servers::new() else {
        return;
    };
    let status = |version: &str, changed: usize| -> String {
        let one = |at: usize| {
            let version = if at < changed { version } else { "1.0" };
            format!(
                "Package: lib{at}\nStatus: install ok installed\nMaintainer: A <a@b>\nVersion: {version}\n\n"
            )
        };
        (0..300).map(one).collect()
    };
    let first = status("1.0", 0);
    let files = [
        ("etc/os-release", "ID=debian\n"),
        ("var/lib/dpkg/status", &first),
    ];
    let Some(root) = little_root(&servers, "root", &files) else {
        return;
    };
    let inside = format!(
        "ForceCommand exec chroot {} /bin/busybox sh",
        root.display()
    );
    servers.machine("one", &inside);
    let config = servers.config();
    let home = Home::new();
    let check = || run(&home, &config, &["fleet", "check", "one", "--quiet"]);
    let asked = check();
    assert!(asked.code.is_some_and(|code| code != 2), "{}", asked.stderr);
    for (version, changed) in [("1.1", 2), ("1.2", 150)] {
        std::fs::write(root.join("var/lib/dpkg/status"), status(version, changed)).unwrap();
        // Times are stored in seconds.
        std::thread::sleep(Duration::from_secs(1));
        check();
        let ran = home.assay(&["changed", "--json"]);
        let document = json(&ran.stdout);
        let changes = document["machines"][0]["changes"].as_array().unwrap();
        let named = |change: &&Value| change["what"].as_str().unwrap().starts_with("package.lib");
        assert_eq!(changes.iter().filter(named).count(), changed.min(100));
        let all = changes
            .iter()
            .find(|change| change["what"] == "packages")
            .unwrap();
        let text = all["after"].as_str().unwrap();
        assert!(text.starts_with(&format!("{changed} changed")), "{text}");
    }
}

#[test]
fn packages_of_alpine_are_compared() {
    let Some(mut servers) = Servers::new() else {
        return;
    };
    let installed = |musl: &str| {
        format!("C:Q1x=\nP:musl\nV:{musl}\nm:A <a@b>\n\nC:Q1y=\nP:zlib\nV:1.3.1-r1\n\n")
    };
    let files = [
        ("etc/os-release", "ID=alpine\nVERSION_ID=3.20.3\n"),
        ("lib/apk/db/installed", &installed("1.2.5-r0")),
    ];
    let Some(root) = little_root(&servers, "root", &files) else {
        return;
    };
    let inside = format!(
        "ForceCommand exec chroot {} /bin/busybox sh",
        root.display()
    );
    servers.machine("one", &inside);
    let config = servers.config();
    let home = Home::new();
    let check = || run(&home, &config, &["fleet", "check", "one", "--quiet"]);
    check();
    std::fs::write(root.join("lib/apk/db/installed"), installed("1.2.5-r1")).unwrap();
    // Times are stored in seconds.
    std::thread::sleep(Duration::from_secs(1));
    check();
    let ran = home.assay(&["changed", "--json"]);
    let document = json(&ran.stdout);
    let changes = document["machines"][0]["changes"].as_array().unwrap();
    let [musl] = &changes[..] else {
        panic!("{changes:?}");
    };
    assert_eq!(musl["what"], "package.musl.version");
    assert_eq!(
        (&musl["before"], &musl["after"]),
        (&"1.2.5-r0".into(), &"1.2.5-r1".into())
    );
}
