//! Tests `assay run login` with a real sshd, Dovecot and nginx: the part that waits is named with its cause.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod causes;
#[path = "../common/mod.rs"]
mod common;
mod failures;
mod pam_logins;
mod planted_table;
mod uncommon_logins;

use assay_testing::servers::dns::{ADDRESS, SlowDns};
use assay_testing::servers::dovecot::{Dovecot, USER};
use assay_testing::servers::nginx::Nginx;
use assay_testing::servers::sshd::Sshd;
use common::{Home, Ran, ended};
use serde_json::Value;
use std::ffi::OsString;
use std::process::Command;
use std::time::Duration;

fn skipped(programs: &[&str]) -> bool {
    let lacking = assay_testing::servers::find_missing(programs, true);
    if let Some(lacking) = &lacking {
        assay_testing::skipped(programs[0], format_args!("lacks {lacking}"));
    }
    lacking.is_some()
}

/// Runs `assay run login ssh` inside the namespace of the rig, with its key.
fn ssh(home: &Home, sshd: &Sshd, more: &[&str]) -> Ran {
    ssh_as(home, sshd, &format!("root@{ADDRESS}"), &[], more)
}

/// The same for another target, with options before those of the rig.
fn ssh_as(home: &Home, sshd: &Sshd, target: &str, options: &[&str], more: &[&str]) -> Ran {
    let file = |name: &str| sshd.dir().join(name).display().to_string();
    let own = [
        format!("UserKnownHostsFile={}", file("known")),
        format!("IdentityFile={}", file("id")),
        "StrictHostKeyChecking=no".to_owned(),
        "IdentitiesOnly=yes".to_owned(),
    ];
    let mut words: Vec<&str> = vec!["run", "login", "ssh", target, "-q"];
    for option in options
        .iter()
        .copied()
        .chain(own.iter().map(|option| &option[..]))
    {
        words.extend(["-o", option]);
    }
    words.extend(more);
    let plain = home.command(&words);
    let mut argv: Vec<OsString> = vec![plain.get_program().to_owned()];
    argv.extend(plain.get_args().map(ToOwned::to_owned));
    let argv = sshd.dns.inside(&argv);
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]);
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    ended(command)
}

fn json(out: &Ran) -> Value {
    serde_json::from_str(&out.stdout).unwrap_or_else(|_| panic!("{}{}", out.stdout, out.stderr))
}

fn parts(value: &Value) -> Vec<String> {
    let parts = value["parts"].as_array().unwrap().iter();
    parts
        .map(|part| part["part"]["kind"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_server_that_looks_names_up_waits_there_and_its_own_configuration_is_the_cause() {
    if skipped(&["sshd", "ssh", "ssh-keygen", "unshare", "nsenter", "ip"]) {
        return;
    }
    let sshd = Sshd::start(SlowDns::start(Some(Duration::from_millis(1500))).unwrap()).unwrap();
    let home = Home::new();
    let out = ssh(&home, &sshd, &["--rounds", "1", "--command-only", "--json"]);
    assert_eq!(out.code, Some(0), "{}{}", out.stdout, out.stderr);
    let value = json(&out);
    assert_eq!(
        parts(&value),
        [
            "name",
            "tcp",
            "banner",
            "key-exchange",
            "user",
            "method",
            "session"
        ]
    );
    assert_eq!(value["waits"]["kind"], "user", "{value}");
    assert_eq!(causes::ids(&value), ["usedns"], "{value}");
    assert!(value["causes"][0]["seen"].is_string(), "{value}");
}

#[test]
fn a_start_up_file_that_waits_is_named_with_its_line() {
    if skipped(&[
        "sshd",
        "ssh",
        "ssh-keygen",
        "unshare",
        "nsenter",
        "ip",
        "bash",
    ]) {
        return;
    }
    let sshd = Sshd::start(SlowDns::start(Some(Duration::ZERO)).unwrap()).unwrap();
    let directory = sshd.dns.home();
    // A tool that waits for a stale lock.
    std::fs::write(
        directory.join(".profile"),
        "SECRET=hunter2\nsleep 2 # the tool\n",
    )
    .unwrap();
    let home = Home::new();
    let out = ssh(&home, &sshd, &["--rounds", "1", "--many", "1,3", "--json"]);
    assert_eq!(out.code, Some(0), "{}{}", out.stdout, out.stderr);
    let value = json(&out);
    let parts_of = [
        "/logins/0",
        "/startup/0",
        "/crowds/0",
        "/parts/0",
        "/causes/0",
    ];
    common::schemas::holds("run-login", &out.stdout, &parts_of);
    assert_eq!(value["waits"]["kind"], "prompt", "{value}");
    let place = value["startup"][0]["place"].as_str().unwrap();
    assert!(place.ends_with(".profile:2"), "{value}");
    assert_eq!(value["startup"][0]["command"], "sleep");
    assert!(!out.stdout.contains("hunter2"));
    assert_eq!(value["control"].as_array().unwrap().len(), 1);
    let crowds = value["crowds"].as_array().unwrap();
    assert_eq!(crowds.len(), 2);
    assert_eq!(crowds[1]["took"].as_array().unwrap().len(), 3, "{value}");
    // As text, and interrupted by the limit.
    std::fs::write(directory.join(".profile"), "\nsleep 61.25\n").unwrap();
    let out = ssh(&home, &sshd, &["--rounds", "1", "--limit", "6s"]);
    assert!(
        out.stdout.contains("prompt") && out.stdout.contains(".profile:2"),
        "{}{}",
        out.stdout,
        out.stderr
    );
    // An interrupted command ends on the remote side too.
    let left = || {
        let out = Command::new("pgrep").args(["-xf", "sleep 61.25"]).output();
        out.is_ok_and(|out| !out.stdout.is_empty())
    };
    let end = std::time::Instant::now() + Duration::from_secs(20);
    while left() && std::time::Instant::now() < end {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(!left(), "what a login that was cut off waited for is left");
    std::fs::write(directory.join(".profile"), "").unwrap();
    // Without the key the login fails.
    let out = ssh(&home, &sshd, &["-o", "PubkeyAuthentication=no", "--json"]);
    assert_eq!(out.code, Some(1), "{}{}", out.stdout, out.stderr);
    assert!(
        json(&out)["failed"]
            .as_str()
            .unwrap()
            .contains("Permission denied")
    );
}

#[test]
fn mail_is_logged_in_to_and_a_password_is_not_told() {
    if skipped(&["dovecot", "doveconf"]) {
        return;
    }
    let Ok(dovecot) = Dovecot::start() else {
        assay_testing::skipped("dovecot", "Dovecot does not start here");
        return;
    };
    let home = Home::new();
    let file = dovecot.password_file();
    let (address, file) = (dovecot.address(), file.to_str().unwrap());
    let mail = ["run", "login", "imap", &address, "-q", "--rounds", "2"];
    let out = home.assay(
        &[
            &mail[..],
            &["--user", USER, "--password-file", file, "--json"],
        ]
        .concat(),
    );
    assert_eq!(out.code, Some(0), "{}{}", out.stdout, out.stderr);
    let value = json(&out);
    assert_eq!(
        parts(&value),
        ["name", "tcp", "banner", "user", "method", "session"]
    );
    assert_eq!(value["logins"].as_array().unwrap().len(), 2);
    let wrong = home.dir.path().join("wrong");
    std::fs::write(&wrong, "hunter2\n").unwrap();
    let wrong = ["--user", USER, "--password-file", wrong.to_str().unwrap()];
    let out = home.assay(&[&mail[..], &wrong].concat());
    assert_eq!(out.code, Some(1), "{}{}", out.stdout, out.stderr);
    assert!(!out.stdout.contains("hunter2") && !out.stderr.contains("hunter2"));
    assert!(
        out.stdout.contains("AUTHENTICATIONFAILED"),
        "{}",
        out.stdout
    );
    // Without credentials the test reaches the server's greeting.
    let out = home.assay(&[&mail[..], &["--json"]].concat());
    assert_eq!(parts(&json(&out)), ["name", "tcp", "banner", "user"]);
    // A service with another protocol.
    let out = home.assay(&["run", "login", "smtp", &address, "-q"]);
    assert_eq!(out.code, Some(1), "{}", out.stdout);
}

/// A jump host that asks for a password would get the one of the target.
#[test]
fn attack_a_jump_host_gets_no_password() {
    if skipped(&["ssh"]) {
        return;
    }
    let home = Home::new();
    let file = home.dir.path().join("password");
    std::fs::write(&file, "hunter2\n").unwrap();
    let ran = home.dir.path().join("ran");
    let command = format!("ProxyCommand=touch {}", ran.display());
    let login = ["login", "ssh", "anna@127.0.0.1", "--password-file"];
    for option in ["ProxyJump=bastion.invalid", &command] {
        let out = home.assay(&[&login[..], &[file.to_str().unwrap(), "-o", option]].concat());
        assert_eq!(out.code, Some(2), "{}{}", out.stdout, out.stderr);
        assert!(!out.stderr.contains("hunter2"), "{}", out.stderr);
    }
    assert!(!ran.exists());
}

#[test]
fn a_page_and_what_cannot_be_meant() {
    let home = Home::new();
    if let Some(nginx) = Nginx::with_files("") {
        let url = nginx.url("/small");
        let out = home.assay(&["run", "login", "http", &url, "-q", "--json"]);
        assert_eq!(out.code, Some(0), "{}{}", out.stdout, out.stderr);
        assert_eq!(parts(&json(&out)), ["name", "tcp", "answer"]);
        common::schemas::holds("run-login", &out.stdout, &["/logins/0"]);
        let out = home.assay(&["run", "login", "http", &url, "-q", "--status", "302"]);
        assert_eq!(out.code, Some(1), "{}", out.stdout);
        assert!(out.stdout.contains("--status"));
    }
    let password = home.dir.path().join("pw");
    std::fs::write(&password, "x\n").unwrap();
    let password = password.to_str().unwrap();
    let refuse = |args: &[&str], said: &str| {
        let out = home.assay(&[&["run", "login"], args].concat());
        assert_eq!(out.code, Some(2), "{args:?}: {}", out.stdout);
        assert!(out.stderr.contains(said), "{args:?}: {}", out.stderr);
    };
    refuse(&["ssh", "--", "-oProxyCommand=reboot"], "[USER@]HOST");
    refuse(&["ssh", "host:x"], "port");
    refuse(&["imap", "a b"], "HOST[:PORT]");
    refuse(
        &[
            "imap",
            "192.0.2.1",
            "--user",
            "ann",
            "--password-file",
            password,
        ],
        "--tls",
    );
    refuse(&["http", "ftp://x/"], "http://");
    let out = home.assay(&["run", "login", "imap", "127.0.0.1:1", "-q"]);
    assert_eq!(out.code, Some(1), "{}", out.stdout);
    assert!(out.stdout.contains("refused"), "{}", out.stdout);
}
