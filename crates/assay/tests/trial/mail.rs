//! Trials of mail servers: limits of processes and connections.

use super::common::Home;
use super::{SHORT, args, json, skip, text};
use assay_testing::servers::dovecot::{Dovecot, USER};
use assay_testing::servers::postfix::Postfix;
use std::fs;
use std::path::Path;

/// Runs two pairs of a page, and checks that the file is restored.
fn tried(page: &str, target: &str, config: &Path, sets: &[String]) {
    let home = Home::new();
    let before = fs::read(config).unwrap();
    let mut words = args(&["trial", page, target], &SHORT);
    words.extend(args(&["--yes", "--json", "--pairs", "2"], &[]));
    let file = format!("config={}", text(config));
    for set in sets.iter().chain([&file]) {
        words.extend(["--set".into(), set.into()]);
    }
    let ran = home.assay(&words);
    assert_eq!(ran.code, Some(0), "{page}: {}", ran.stderr);
    let pairs = json(&ran)["pairs"].as_array().map(Vec::len);
    assert_eq!(pairs, Some(2), "{}", ran.stdout);
    assert_eq!(fs::read(config).unwrap(), before);
}

#[test]
fn postfix_empties_its_queue_with_each_limit() {
    if skip(&["postfix", "smtp-sink", "smtp-source"], true) {
        return;
    }
    let postfix = Postfix::start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let seen = dir.path().join("seen");
    let key = "default_destination_concurrency_limit";
    let load = format!(
        "sh -c '{} >> {} && {}'",
        postfix.program(&format!("postconf -h {key}")),
        text(&seen),
        postfix.send(5)
    );
    let sets = [
        "limit=3".to_owned(),
        format!("validate={}", postfix.program("postfix check")),
        format!("reload={}", postfix.program("postfix reload")),
        format!("load={load}"),
    ];
    let page = "postfix-destination-concurrency";
    tried(page, "localhost", &postfix.config(), &sets);
    let seen = fs::read_to_string(seen).unwrap();
    let limits: std::collections::BTreeSet<&str> = seen.lines().collect();
    assert_eq!(limits.into_iter().collect::<Vec<_>>(), ["20", "3"]);
}

#[test]
fn dovecot_is_told_how_many_logins_a_process_takes() {
    if skip(&["dovecot", "doveconf", "doveadm"], true) {
        return;
    }
    let dovecot = Dovecot::without_pam().unwrap();
    let sets = [
        format!("user={USER}"),
        format!("password_file={}", text(&dovecot.password_file())),
        format!("validate={}", dovecot.validate().join(" ")),
        format!("reload={}", dovecot.reload().join(" ")),
        "sessions=2".to_owned(),
    ];
    let page = "dovecot-login-processes";
    tried(page, &dovecot.address(), &dovecot.config(), &sets);
}
