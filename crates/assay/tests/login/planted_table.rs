//! Twelve logins whose wait is known, three of them healthy, beside what assay names. Prints the table of the book:
//! `ASSAY_LAB_ALL=1 cargo test -p assay --test login twelve -- --nocapture`.

use crate::causes::{self, ids, inside, measured, planted, script};
use crate::skipped;
use assay_testing::servers::dns::SlowDns;
use assay_testing::servers::sshd::Sshd;
use serde_json::Value;
use std::time::Duration;

/// Plain sshd, or with PAM.
const PLAIN: &str = "UsePAM no\nUseDNS no";
const WITH_PAM: &str = "UsePAM yes\nUseDNS no";
const PAM: &str = "account required pam_permit.so\nsession required pam_permit.so\n";

/// A planted login: its description, the expected cause, and how to measure it.
type Planted = (&'static str, Option<&'static str>, fn() -> Value);

fn with_hook(body: &str) -> Sshd {
    let line = "session optional pam_exec.so seteuid {dir}/hook\n";
    let sshd = planted(WITH_PAM, Some(&format!("{PAM}{line}")));
    script(&sshd.dir().join("hook"), body);
    sshd
}

/// Writes a file of the user's home, and measures a login.
fn with_file(name: &str, text: &str) -> Value {
    let sshd = planted(PLAIN, None);
    let file = sshd.dns.home().join(name);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
    measured(&sshd, &[])
}

fn with_key_command() -> Value {
    let settings = "AuthorizedKeysCommand /run/sshd/keys %u\nAuthorizedKeysCommandUser root\nAuthorizedKeysFile none";
    let sshd = planted(&format!("{PLAIN}\n{settings}"), None);
    let key = sshd.dir().join("id.pub").display().to_string();
    let keys = "/run/sshd/keys";
    inside(
        &sshd,
        &format!(
            "chmod 755 /run; printf '#!/bin/sh\\nsleep 2\\ncat {key}\\n' > {keys}; chmod 755 {keys}"
        ),
    );
    measured(&sshd, &[])
}

fn with_motd() -> Value {
    let motd = "session optional pam_motd.so motd=/run/motd.dynamic\n";
    let sshd = planted(WITH_PAM, Some(&format!("{PAM}{motd}")));
    let programs = sshd.dir().join("motd");
    std::fs::create_dir(&programs).unwrap();
    script(&programs.join("50-slow"), "sleep 2");
    sshd.dns.replace("/etc/update-motd.d", &programs).unwrap();
    measured(&sshd, &[])
}

fn with_sshrc() -> Value {
    let sshd = planted(PLAIN, None);
    let etc = sshd.dir().join("etc-ssh");
    std::fs::create_dir(&etc).unwrap();
    std::fs::write(etc.join("sshrc"), "sleep 2\n").unwrap();
    sshd.dns.replace("/etc/ssh", &etc).unwrap();
    measured(&sshd, &[])
}

fn with_client_program() -> Value {
    let sshd = planted(PLAIN, None);
    let program = sshd.dir().join("program");
    script(&program, "sleep 2");
    measured(
        &sshd,
        &[&format!("KnownHostsCommand={} %H", program.display())],
    )
}

fn with_slow_names() -> Value {
    let dns = SlowDns::start(Some(Duration::from_millis(2000))).unwrap();
    let sshd = Sshd::configured(dns, "UsePAM no\nUseDNS yes", None).unwrap();
    measured(&sshd, &[])
}

fn with_start_up_line() -> Value {
    let sshd = planted(PLAIN, None);
    std::fs::write(sshd.dns.home().join(".profile"), "sleep 2\n").unwrap();
    let home = crate::common::Home::new();
    crate::json(&crate::ssh(&home, &sshd, &["--rounds", "1", "--json"]))
}

const LOGINS: [Planted; 12] = [
    ("healthy: keys, no PAM", None, || {
        measured(&planted(PLAIN, None), &[])
    }),
    ("healthy: PAM", None, || {
        measured(&planted(WITH_PAM, Some(PAM)), &[])
    }),
    (
        "healthy: a hook of pam_exec that ends at once",
        None,
        || measured(&with_hook("true"), &[]),
    ),
    ("a hook of pam_exec takes 2 s", Some("pam-exec"), || {
        measured(&with_hook("sleep 2"), &[])
    }),
    (
        "a program of pam_motd takes 2 s",
        Some("pam-motd"),
        with_motd,
    ),
    ("`~/.ssh/rc` takes 2 s", Some("ssh-rc"), || {
        with_file(".ssh/rc", "sleep 2\n")
    }),
    ("`/etc/ssh/sshrc` takes 2 s", Some("sshrc"), with_sshrc),
    ("ForceCommand takes 2 s", Some("force-command"), || {
        let forced = "ForceCommand sleep 2; eval \"$SSH_ORIGINAL_COMMAND\"";
        measured(&planted(&format!("{PLAIN}\n{forced}"), None), &[])
    }),
    (
        "AuthorizedKeysCommand takes 2 s, twice",
        Some("authorized-keys-command"),
        with_key_command,
    ),
    (
        "UseDNS asks a server that answers after 2 s",
        Some("usedns"),
        with_slow_names,
    ),
    (
        "line 1 of `~/.profile` takes 2 s",
        Some("start-up-line"),
        with_start_up_line,
    ),
    (
        "KnownHostsCommand takes 2 s, twice",
        Some("known-hosts-command"),
        with_client_program,
    ),
];

#[test]
fn twelve_planted_logins() {
    if std::env::var_os("ASSAY_LAB_ALL").is_none() {
        return assay_testing::skipped("long", "it takes minutes; ASSAY_LAB_ALL=1 runs it");
    }
    if skipped(&causes::NEEDS) {
        return;
    }
    println!("| planted | the whole login | assay names | not explained |\n|---|--:|---|--:|");
    let seconds = |value: &Value| format!("{:.2} s", value.as_f64().unwrap_or(0.0) / 1e9);
    let sum_of_parts = |value: &Value| {
        let parts = value["parts"].as_array().unwrap().iter();
        Value::from(
            parts
                .filter_map(|part| part["median"].as_f64())
                .sum::<f64>(),
        )
    };
    let mut wrong = Vec::new();
    for (planted, expected, measure) in LOGINS {
        let value = measure();
        let named = ids(&value);
        let causes = value["causes"].as_array().unwrap().iter();
        let shown: Vec<String> = causes
            .map(|cause| {
                format!(
                    "`{}` {}",
                    cause["id"].as_str().unwrap(),
                    seconds(&cause["took"])
                )
            })
            .collect();
        let rest = value["unexplained"].as_array().unwrap().iter();
        let rest: f64 = rest.filter_map(|one| one["took"].as_f64()).sum();
        println!(
            "| {planted} | {} | {} | {:.2} s |",
            seconds(&sum_of_parts(&value)),
            if shown.is_empty() {
                "nothing".to_owned()
            } else {
                shown.join(", ")
            },
            rest / 1e9
        );
        if named != expected.into_iter().collect::<Vec<_>>() {
            wrong.push((planted, format!("{value}")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
