//! `assay check mail` with the machine's SpamAssassin.
#![allow(clippy::disallowed_methods, reason = "tests start programs")]

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// The text that every filter takes for spam (spamassassin(1), GTUBE).
const MARK: &str = "XJS*C4JDBQADN1.NSBN3*2IDNEN*GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X";

fn mail(text: &str) -> String {
    format!(
        "Received: from mx.example.net (mx.example.net [203.0.113.7])\r\n\
         \tby mail.example.org (Postfix) with ESMTPS id 4A;\
         \r\n\tMon, 23 Nov 2026 10:00:00 +0000 (UTC)\r\nFrom: Somebody <a@example.net>\r\nTo: me@example.org\r\n\
         Subject: Meeting\r\nDate: Mon, 23 Nov 2026 09:59:57 +0000\r\nMessage-ID: <abcdef.1234@example.net>\r\n\r\n\
         {text}\r\n"
    )
}

fn check(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_assay"))
        .args(["check", "mail"])
        .args(arguments)
        .current_dir(dir)
        .output()
        .unwrap()
}

fn json(dir: &Path, arguments: &[&str]) -> (Value, Option<i32>) {
    let mut all = vec!["--json"];
    all.extend(arguments);
    let output = check(dir, &all);
    let value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    (value, output.status.code())
}

#[test]
fn spam_and_other_mail_get_different_verdicts() {
    let Some(_) = assay_testing::servers::find("spamassassin") else {
        return assay_testing::skipped("spamassassin", "not installed");
    };
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("spam.eml"), mail(MARK)).unwrap();
    std::fs::write(
        dir.path().join("ham.eml"),
        mail("Shall we meet at three on Monday?"),
    )
    .unwrap();
    let (spam, status) = json(dir.path(), &["spam.eml"]);
    assert_eq!(status, Some(1), "{spam:#}");
    let rules = spam["spamassassin"]["rules"].as_array().unwrap();
    let mark = rules.iter().find(|rule| rule["name"] == "GTUBE").unwrap();
    assert!(mark["score"].as_f64().unwrap() >= 100.0);
    assert!(
        mark["line"].is_u64() && mark["description"].is_string(),
        "{mark:#}"
    );
    let place = mark["file"].as_str().unwrap();
    let line = usize::try_from(mark["line"].as_u64().unwrap()).unwrap();
    let text = std::fs::read_to_string(place).unwrap();
    assert!(text.lines().nth(line - 1).unwrap().contains("GTUBE"));
    let (ham, status) = json(dir.path(), &["ham.eml"]);
    assert_eq!(status, Some(0), "{ham:#}");
}

#[test]
fn a_server_on_a_list() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.eml"), mail("Hello")).unwrap();
    std::fs::write(dir.path().join("list"), "; a list\n203.0.113.0/24 ; SBL1\n").unwrap();
    std::fs::write(dir.path().join("other"), "198.51.100.0/24\nnonsense\n").unwrap();
    let (found, status) = json(dir.path(), &["a.eml", "--list", "list", "--list", "other"]);
    assert_eq!(status, Some(1), "{found:#}");
    let listed = &found["hops"][0]["listed"];
    assert_eq!(found["hops"][0]["address"], "203.0.113.7");
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(
        (&listed[0]["network"], &listed[0]["line"]),
        (&"203.0.113.0/24".into(), &2.into())
    );
    assert_eq!(found["lists"][1]["unread"], 1);
}

#[test]
fn what_is_no_mail_or_no_list() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.eml"), mail("Hello")).unwrap();
    std::fs::write(dir.path().join("text"), "no header\n").unwrap();
    for arguments in [
        &["text"][..],
        &["a.eml", "--list", "text"],
        &["a.eml", "--timeout", "x"],
    ] {
        let output = check(dir.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty());
    }
    assert_eq!(check(dir.path(), &["missing"]).status.code(), Some(3));
}
