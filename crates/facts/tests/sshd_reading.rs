//! Compares sshd's interpretation of random configurations with assay's, for every Match block.
#![allow(
    clippy::disallowed_methods,
    reason = "tests run sshd, on configurations of their own"
)]

use assay_config::effective::files::OfHost;
use assay_config::effective::ssh_sample::{self, Accounts};
use assay_config::effective::{Program, read_effective};
use assay_facts::{CollectOptions, collect};
use assay_host::{Recorded, Root};
use assay_model::Facts;
use std::path::Path;
use std::process::{Command, Output};

const SERVER: &str = "/etc/ssh/sshd_config";

const OPTIONS: CollectOptions<'static> = CollectOptions {
    with_identity: false,
    services: true,
    accounts: true,
    targets: &[],
};

/// Lines that may occur both inside and outside of Match blocks.
const ANYWHERE: [&str; 13] = [
    "PasswordAuthentication yes",
    "PasswordAuthentication no",
    "PermitRootLogin prohibit-password",
    "PermitRootLogin without-password",
    "PermitRootLogin yes",
    "KbdInteractiveAuthentication no",
    "ChallengeResponseAuthentication yes",
    "MaxAuthTries 3",
    "LogLevel VERBOSE",
    "TrustedUserCAKeys /etc/ssh/ca.pub",
    "TrustedUserCAKeys none",
    "RevokedKeys \"/etc/ssh/re voked\"",
    "HostbasedAuthentication=yes",
];
/// Lines outside of Match blocks.
const OUTSIDE: [&str; 6] = [
    "UseDNS yes",
    "StrictModes no",
    "IgnoreRhosts shosts-only",
    "UsePAM yes",
    "ExposeAuthInfo yes",
    "GSSAPIAuthentication yes",
];
const HEADS: [&str; 12] = [
    "Match User ann,bob",
    "Match User !bob,b*",
    "Match Group root",
    "Match Group nosuchgroup",
    "Match Address 10.0.0.0/8,2001:db8::/32",
    "Match Address !10.1.0.0/16,10.0.?.7",
    "Match Host *.example.org User r??t",
    "Match LocalPort 2222",
    "Match LocalAddress 192.0.2.0/30 User nobody",
    "Match all",
    "Match User !ann",
    "Match RDomain x",
];

struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }

    fn one<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

fn text(dice: &mut Dice) -> String {
    let mut out = String::new();
    for _ in 0..dice.below(6) {
        let line = match dice.below(3) {
            0 => dice.one(&OUTSIDE),
            _ => dice.one(&ANYWHERE),
        };
        out.push_str(&format!("{line}\n"));
    }
    for _ in 0..dice.below(5) {
        out.push_str(&format!("{}\n", dice.one(&HEADS)));
        for _ in 0..dice.below(4) {
            out.push_str(&format!("  {}\n", dice.one(&ANYWHERE)));
        }
    }
    out
}

/// Runs sshd in a mount namespace that provides /run/sshd. This directory exists only after the service was started.
fn sshd(file: &Path, spec: &str) -> Option<Output> {
    if !Path::new("/usr/sbin/sshd").exists() {
        assay_testing::skipped("sshd", "no sshd");
        return None;
    }
    let script = "mount -t tmpfs tmpfs /run && mkdir /run/sshd && exec /usr/sbin/sshd -T \"$@\"";
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh", "-f"])
        .arg(file)
        .args(["-C", spec])
        .output()
        .unwrap();
    let says = String::from_utf8_lossy(&output.stderr);
    if says.contains("unshare") || says.contains("mount:") {
        assay_testing::skipped("mount", says);
        return None;
    }
    Some(output)
}

fn groups(user: &str) -> String {
    let output = Command::new("id").args(["-nG", "--", user]).output();
    String::from_utf8(output.unwrap().stdout).unwrap()
}

struct OfTest;

impl Accounts for OfTest {
    fn groups_of(&self, user: &str) -> Option<Vec<String>> {
        Some(groups(user).split_whitespace().map(str::to_owned).collect())
    }

    fn member_of(&self, group: &str) -> Option<String> {
        (group == "root").then(|| "root".to_owned())
    }
}

/// Builds a machine with this configuration, and with the output of sshd for each block.
fn machine(text: &str, dir: &Path, change: impl Fn(String) -> String) -> Option<Recorded> {
    let file = dir.join("sshd_config");
    std::fs::write(&file, text).unwrap();
    let plain = Recorded::new().file(SERVER, text);
    let all = read_effective(Program::Sshd, Path::new(SERVER), &OfHost(&plain)).unwrap();
    let mut host = Recorded::new()
        .file(SERVER, text)
        .file("/etc/group", "root:x:0:\n");
    for (id, _) in all.scopes() {
        let Some(made) = ssh_sample::sample_connection(&all.scope(id).head, &OfTest) else {
            continue;
        };
        let spec = ssh_sample::connection_spec(&made).unwrap();
        let output = sshd(&file, &spec)?;
        let stdout = change(String::from_utf8_lossy(&output.stdout).into_owned());
        let stderr =
            String::from_utf8_lossy(&output.stderr).replace(file.to_str().unwrap(), SERVER);
        let status = output.status.code().unwrap();
        let user = made.user.unwrap();
        host = host
            .command_with(&["sshd", "-T", "-C", &spec], status, &stdout, &stderr)
            .command(&["id", "-nG", "--", &user], &groups(&user));
    }
    Some(host)
}

fn differing(facts: &Facts) -> Vec<(String, serde_json::Value)> {
    facts
        .map
        .keys()
        .filter(|key| key.starts_with("sshd.reading.") && key.ends_with(".differ"))
        .map(|key| (key.clone(), facts.get(key).unwrap().clone()))
        .collect()
}

#[test]
fn attack_every_block_of_random_configurations_is_read_as_sshd_reads_it() {
    let dir = tempfile::tempdir().unwrap();
    let (mut blocks, mut files) = (0_u64, 0_u64);
    for seed in 1..=40 * assay_testing::attack_factor() {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let text = text(&mut dice);
        let Some(host) = machine(&text, dir.path(), |stdout| stdout) else {
            return;
        };
        let facts = collect(&host, &OPTIONS);
        files += 1;
        for (key, differ) in differing(&facts) {
            assert_eq!(differ, serde_json::json!([]), "{key}\n{text}");
            blocks += 1;
        }
        assert_eq!(facts.get("sshd.refused"), None, "{text}");
    }
    println!("sshd: {files} configurations, {blocks} blocks held against its own word");
    assert!(blocks > files, "{blocks} of {files}");
    assay_testing::attacked("blocks of sshd beside its own word", blocks, blocks);
}

/// A difference is detected, in the correct block.
#[test]
fn a_difference_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let text = "UseDNS yes\nMatch User ann\n  MaxAuthTries 3\n";
    let change = |stdout: String| stdout.replace("maxauthtries 3\n", "maxauthtries 4\n");
    let Some(host) = machine(text, dir.path(), change) else {
        return;
    };
    let facts = collect(&host, &OPTIONS);
    let found = differing(&facts);
    assert_eq!(
        found,
        [
            (
                "sshd.reading.Match-1.differ".to_owned(),
                serde_json::json!(["maxauthtries"])
            ),
            (
                "sshd.reading.everywhere.differ".to_owned(),
                serde_json::json!([])
            ),
        ]
    );
    // No fact contains the user or host of a connection.
    let told = serde_json::to_string(&facts).unwrap();
    assert!(!told.contains("ann") && !told.contains("192.0.2"));
}

/// A configuration that sshd rejects is reported with its line.
#[test]
fn what_sshd_refuses() {
    let dir = tempfile::tempdir().unwrap();
    for (text, place) in [
        (
            "UseDNS yes\nPermitRootLogin perhaps\n",
            "/etc/ssh/sshd_config:2",
        ),
        (
            "UseDNS yes\n\nNoSuchKeyword yes\n",
            "/etc/ssh/sshd_config:3",
        ),
    ] {
        let Some(host) = machine(text, dir.path(), |stdout| stdout) else {
            return;
        };
        let facts = collect(&host, &OPTIONS);
        let refused = facts.map.get("sshd.refused").expect(text);
        assert_eq!(refused.place.to_string(), place);
    }
}

/// Programs in a tree of files are never run, not even sshd.
#[test]
fn a_tree_is_not_asked() {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("etc/ssh/sshd_config", "UseDNS yes\n"),
        ("usr/sbin/sshd", "x"),
    ] {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let facts = collect(&Root::open(dir.path()).unwrap(), &OPTIONS);
    assert_eq!(differing(&facts), []);
    assert_eq!(facts.get("sshd.refused"), None);
}
