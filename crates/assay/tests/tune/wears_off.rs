//! A gain that is gone some seconds after each change: every short slot shows it, and a longer time does not.

use super::LESS;
use super::killed::{begin, signal};
use super::planted::{Planted, json, names, until};
use crate::common::ran;
use rustix::process::Signal;
use std::process::Child;
use std::time::{Duration, Instant};

/// `mode = fast` takes 30 ms for 2.5 s after each change of the file, otherwise 120 ms.
const FRESH: &str = r#"#!/bin/sh
t=0.120
if grep -q 'mode = fast' "$1"; then
    now=$(date +%s%3N) then=$(stat -c %.3Y "$1")
    [ $((now - ${then%.*}${then#*.})) -gt 2500 ] || t=0.030
fi
exec sleep $t
"#;

#[test]
fn a_gain_that_wears_off_is_reverted_and_reported() {
    let planted = Planted::new();
    let load = planted.script("fresh", FRESH);
    let load = format!("{} {}", load.display(), planted.conf().display());
    let mut words = planted.words(LESS, &["fast", "idle"], &["--budget", "240s"]);
    words[2] = load;
    let ran = planted.home.assay(&words);
    let document = json(&ran);
    assert_eq!(ran.code, Some(1), "{}\n{document:#}", ran.stderr);
    assert_eq!(document["hold"]["result"], "wears-off", "{document:#}");
    assert!(names(&document, "kept").is_empty() && document["gain"].is_null());
    assert!(names(&document, "tried").contains(&"fast".to_owned()));
    assert!(planted.is_as_before(), "{}", planted.text());
    let shown = json(&planted.home.assay(&["tune", "--show", "--json"]));
    assert_eq!(shown["hold"], document["hold"]);
}

/// Waits until the change has stayed in effect for longer than the slots of a proof, which take 250 ms.
fn wait_for_hold(planted: &Planted, child: &mut Child) {
    let mut since: Option<Instant> = None;
    while since.is_none_or(|since| since.elapsed() < Duration::from_secs(4)) {
        assert!(child.try_wait().unwrap().is_none(), "no hold");
        since = match planted.text().contains("mode = fast") {
            true => since.or_else(|| Some(Instant::now())),
            false => None,
        };
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Killed in its hold, a session is reverted without another start of assay. The resumed session holds the changes.
#[test]
fn a_gain_that_lasts_is_held_and_kept() {
    let planted = Planted::new();
    let mut child = begin(
        &planted,
        &planted.words(LESS, &["fast"], &["--budget", "240s"]),
    );
    wait_for_hold(&planted, &mut child);
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    until("everything is reverted", || {
        planted.is_as_before() && planted.has_no_open_session()
    });
    let resume = ["tune", "--resume", "--json", "--no-boot-undo"].map(str::to_owned);
    let ran = ran(begin(&planted, &resume).wait_with_output().unwrap());
    let document = json(&ran);
    assert_eq!(ran.code, Some(0), "{}\n{document:#}", ran.stderr);
    assert_eq!(document["hold"]["result"], "lasts", "{document:#}");
    assert!(document["hold"]["seconds"].as_f64().unwrap() > 1.0);
    assert_eq!(names(&document, "kept"), ["fast"]);
    assert_eq!(planted.home.assay(&["tune", "--undo"]).code, Some(0));
    assert!(planted.is_as_before());
}
