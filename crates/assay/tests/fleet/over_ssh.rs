//! One machine over ssh: checked as if assay ran there, with and without sudo.

use super::common::servers::{Servers, little_root};
use super::common::{self, Home};
use super::{json, run};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

fn fingerprints(document: &Value) -> BTreeSet<String> {
    let all = document["findings"].as_array().unwrap().iter();
    // The users of libraries change while tests run.
    all.filter(|finding| !finding["rule"].as_str().unwrap().contains("mapped"))
        .map(|finding| format!("{} {}", finding["fingerprint"], finding["certainty"]))
        .collect()
}

/// Removes the rules that the other document lists as not asked.
fn without_those_not_asked(mut local: Value, there: &Value) -> Value {
    let not_asked: BTreeSet<&str> = there["not_asked"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["rule"].as_str().unwrap())
        .collect();
    assert!(not_asked.contains("openssl-copy-ended"), "{not_asked:?}");
    let findings = local["findings"].as_array_mut().unwrap();
    findings.retain(|finding| !not_asked.contains(finding["rule"].as_str().unwrap()));
    local
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
    let local = json(&local.stdout);
    for name in ["box", "plain"] {
        let there = run(&home, &config, &["check", "--json", "--host", name]);
        assert!(
            [Some(0), Some(1), Some(3)].contains(&there.code),
            "{}",
            there.stderr
        );
        let there = json(&there.stdout);
        let local = without_those_not_asked(local.clone(), &there);
        assert_eq!(fingerprints(&there), fingerprints(&local));
    }
    let text = run(&home, &config, &["check", "--host", "plain"]);
    assert!(
        text.stdout.contains("openssl-copy-ended"),
        "{}",
        text.stdout
    );
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
    let there = json(&there.stdout);
    let local = without_those_not_asked(local, &there);
    assert_eq!(fingerprints(&there), fingerprints(&local));
    let mut piped = home.command(&["facts", "--root", "-", "kernel.release"]);
    piped.stdin(std::fs::File::open(&bundle).unwrap());
    let piped = common::ended(piped);
    assert!(piped.stdout.contains("kernel"), "{}", piped.stderr);
    // The layers under a path of that machine.
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
    // On a busy machine a line of progress comes first.
    let error = ran.stderr.lines().last().unwrap_or_default();
    insta::assert_snapshot!(home.told(error), @"assay: closed: sudo: a password is required: let this user run `sh` by sudo without a password, log in as root, or leave --sudo out and know less");
}

/// Machines with each shell and each awk give the same findings, also with a configuration on one
/// line; a broken awk is reported and not taken for a machine without faults.
#[test]
fn machines_with_each_shell_and_awk_give_the_same_findings() {
    let Some(mut servers) = Servers::new() else {
        return;
    };
    let nginx = "http { server { listen 443 ssl; ssl_certificate /etc/tls/site.pem; ssl_certificate_key /etc/tls/site.key; ssl_protocols SSLv3; } }\n";
    let files = [
        ("etc/nginx/nginx.conf", nginx),
        ("etc/tls/site.key", "KEY"),
        (
            "etc/ssh/sshd_config",
            "PermitRootLogin yes\nPasswordAuthentication yes\n",
        ),
        (
            "var/lib/dpkg/status",
            "Package: a\nStatus: install ok installed\nDepends: nobody-is-this\nVersion: 1\n\n",
        ),
    ];
    let mut names = Vec::new();
    for (number, pair) in assay_testing::servers::shells::shell_awk_pairs()
        .iter()
        .enumerate()
    {
        let name = format!("m{number}");
        let Some(root) = little_root(&servers, &name, &files) else {
            return;
        };
        pair.furnish(&root).unwrap();
        servers.machine(
            &name,
            &format!("ForceCommand chroot {} /bin/sh", root.display()),
        );
        names.push(name);
    }
    let root = little_root(&servers, "broken", &files).unwrap();
    std::fs::remove_file(root.join("bin/awk")).unwrap();
    common::script(
        &root.join("bin"),
        "awk",
        "echo 'awk: line 1: syntax error at or near x' >&2; exit 2",
    );
    servers.machine(
        "broken",
        &format!("ForceCommand chroot {} /bin/dash", root.display()),
    );
    let dash = assay_testing::servers::find("dash").unwrap();
    assay_testing::servers::shells::copy_program(&dash, &root).unwrap();
    let config = servers.config();
    let home = Home::new();
    let mut args = vec!["fleet", "check", "--json", "broken"];
    args.extend(names.iter().map(String::as_str));
    let ran = run(&home, &config, &args);
    let document = json(&ran.stdout);
    let machines = document["machines"].as_array().unwrap();
    assert_eq!(machines.len(), names.len() + 1, "{}", ran.stderr);
    for machine in machines {
        if machine["name"] == "broken" {
            assert_eq!(machine["failed"]["kind"], "bundle");
            let reason = machine["failed"]["reason"].as_str().unwrap();
            assert!(reason.contains("syntax error"), "{reason}");
            continue;
        }
        let found = machine["findings"]
            .as_array()
            .unwrap_or_else(|| panic!("{machine}"));
        let rules: BTreeSet<&str> = found
            .iter()
            .filter(|finding| finding["certainty"] == "violated")
            .map(|finding| finding["rule"].as_str().unwrap())
            .collect();
        for rule in ["nginx-sslv3", "key-file-open", "dpkg-unmet-dependency"] {
            assert!(rules.contains(rule), "{rule}: {rules:?}");
        }
        assert_eq!(
            found.len(),
            machines.last().unwrap()["findings"]
                .as_array()
                .unwrap()
                .len()
        );
    }
}
