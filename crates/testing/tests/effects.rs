//! Tests that each service shows the effect for which it exists.
#![allow(clippy::disallowed_methods, reason = "a test drives real services")]

use assay_config::{get, set};
use assay_loads::{Cancel, LoadResult, Timing, command, imap};
use assay_model::Nanos;
use assay_model::change::ConfigLanguage::{Dovecot, Nginx, Ssh};
use assay_testing::servers::dns::SlowDns;
use assay_testing::servers::{dovecot, nginx, skip, sshd};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const TIMING: Timing = Timing {
    washout: Nanos(300_000_000),
    runtime: Nanos(200_000_000),
    limit: Nanos(20_000_000_000),
};

/// Changes one setting as a trial does: validates the configuration, then reloads it.
fn change(
    language: assay_model::change::ConfigLanguage,
    file: &Path,
    section: &[String],
    (key, value): (&str, &str),
    validate: &[String],
    reload: &[String],
) {
    let text = std::fs::read(file).unwrap();
    std::fs::write(file, set(language, &text, section, key, value).unwrap()).unwrap();
    let validate: Vec<String> = validate
        .iter()
        .map(|part| part.replace("{file}", &file.to_string_lossy()))
        .collect();
    for argv in [&validate[..], reload] {
        let output = Command::new(&argv[0]).args(&argv[1..]).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{argv:?}: {stderr}");
    }
    let text = std::fs::read(file).unwrap();
    let found = get(language, &text, section, key).unwrap().unwrap();
    assert_eq!(found.value, value);
}

fn fastest(measured: &LoadResult) -> Duration {
    assert!(measured.errors.is_empty(), "{:?}", measured.errors);
    Duration::from_nanos(measured.worker.operations.values().next().unwrap().lat.min)
}

/// Regression test: a stale lock in root's own start-up files once made a login wait for a minute.
#[test]
fn who_logs_in_has_nothing_of_the_machines_root() {
    if skip(&["ip", "unshare", "nsenter", "getent"], true) {
        return;
    }
    let dns = SlowDns::start(Some(Duration::ZERO)).unwrap();
    let argv = dns.inside(&["getent", "passwd", "root"]);
    let found = Command::new(&argv[0]).args(&argv[1..]).output().unwrap();
    let found = String::from_utf8(found.stdout).unwrap();
    let fields: Vec<&str> = found.trim_end().split(':').collect();
    assert_eq!(fields[6], "/bin/sh");
    assert_eq!(std::fs::read_dir(fields[5]).unwrap().count(), 0);
}

#[test]
fn use_dns_waits_for_the_resolver() {
    if skip(
        &["sshd", "ssh", "ssh-keygen", "ip", "unshare", "nsenter"],
        true,
    ) {
        return;
    }
    let delay = Duration::from_millis(300);
    let sshd = sshd::Sshd::start(SlowDns::start(Some(delay)).unwrap()).unwrap();
    let login = command::CommandRequest {
        argv: sshd.login(),
        timing: Timing {
            // For a moment after a reload no process listens.
            washout: Nanos(1_500_000_000),
            ..TIMING
        },
        prints: None,
    };
    let slow = command::run(&login, &Cancel::default());
    let slow = slow.unwrap_or_else(|error| panic!("{error}\n{}", sshd.log()));
    assert!(fastest(&slow) >= delay);
    let asked = sshd.dns.queries();
    assert!(asked > 0);
    let no = ("UseDNS", "no");
    change(
        Ssh,
        &sshd.config(),
        &[],
        no,
        &sshd.validate(),
        &sshd.reload(),
    );
    let quick = command::run(&login, &Cancel::default()).unwrap();
    assert!(quick.errors.is_empty());
    assert_eq!(sshd.dns.queries(), asked);
}

#[test]
fn pam_before_sql_waits_for_pam() {
    if skip(&["dovecot", "doveconf", "doveadm"], true) || !Path::new("/etc/pam.d/dovecot").exists()
    {
        return;
    }
    let dovecot = dovecot::Dovecot::start().unwrap();
    let logins = imap::ImapRequest {
        address: dovecot.address(),
        user: dovecot::USER.to_owned(),
        password: imap::Secret::new(dovecot::PASSWORD),
        sessions: 1,
        timing: TIMING,
    };
    let run = || {
        let measured = imap::run(&logins, &Cancel::default());
        fastest(&measured.unwrap_or_else(|error| panic!("{error}\n{}", dovecot.log())))
    };
    let config = dovecot.config();
    let slow = run();
    // pam_unix requests 2 s, which libpam varies by up to a half (pam_fail_delay(3)).
    assert!(slow >= Duration::from_millis(900), "{slow:?}");
    assert!(dovecot.asked_pam() > 0);
    for (key, value, asks) in [
        ("passdb[driver]", "sql pam", false),
        ("passdb[driver]", "pam sql", true),
        ("passdb[driver=pam]", "off", false),
    ] {
        let setting = (key, value);
        change(
            Dovecot,
            &config,
            &[],
            setting,
            &dovecot.validate(),
            &dovecot.reload(),
        );
        // Flushes responses of processes from before the reload.
        run();
        let before = dovecot.asked_pam();
        run();
        assert_eq!(dovecot.asked_pam() > before, asks, "{value}");
    }
}

#[test]
fn nginx_reads_what_was_changed() {
    if skip(&["nginx"], true) {
        return;
    }
    let nginx = nginx::Nginx::start("").unwrap();
    nginx.file("a", 1024).unwrap();
    let http = ["http".to_owned()];
    let off = ("sendfile", "off");
    change(
        Nginx,
        &nginx.config(),
        &http,
        off,
        &nginx.validate(),
        &nginx.reload(),
    );
    let two = ("worker_processes", "2");
    change(
        Nginx,
        &nginx.config(),
        &[],
        two,
        &nginx.validate(),
        &nginx.reload(),
    );
}
