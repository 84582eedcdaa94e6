//! One machine over ssh: checked as if assay ran there, with and without sudo.

use super::common::servers::Servers;
use super::common::{self, Home};
use super::{json, run};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

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
    insta::assert_snapshot!(home.told(&ran.stderr), @"assay: closed: sudo: a password is required: let this user run `sh` by sudo without a password, log in as root, or leave --sudo out and know less");
}
