//! Tests `assay why`: a recording gives the same judgement again, and damaged or unknown parts are reported.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use common::Home;
use std::fs;
use std::process::{Command, Stdio};

#[test]
fn a_recording_is_judged_as_the_machine_was() {
    let home = Home::new();
    let file = home.dir.path().join("slow.jsonl");
    let file = file.to_str().unwrap();
    let mut sleeper = Command::new("sleep")
        .arg("60")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let pid = sleeper.id().to_string();
    let live = home.assay(&["why", &pid, "--for", "1s", "--record", file, "--json"]);
    let _ = sleeper.kill();
    let _ = sleeper.wait();
    assert!(matches!(live.code, Some(0 | 1)), "{}", live.stderr);
    let again = home.assay(&["why", "--replay", file, "--json"]);
    assert_eq!(again.code, live.code, "{}", again.stderr);
    let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(read(&again.stdout), read(&live.stdout));
    let page = home.dir.path().join("slow.html");
    let shown = home.assay(&["why", "--replay", file, "--html", page.to_str().unwrap()]);
    assert_eq!(shown.code, live.code, "{}", shown.stderr);
    assert!(fs::read_to_string(&page).unwrap().contains("</html>"));

    let text = fs::read_to_string(file).unwrap();
    let damaged = text.replacen("\"at_ms\"", "\"at_ns\"", 1);
    fs::write(file, damaged).unwrap();
    let refused = home.assay(&["why", "--replay", file]);
    assert_eq!(refused.code, Some(3), "{}", refused.stdout);
    assert!(refused.stderr.contains("line 2"), "{}", refused.stderr);
}

#[test]
fn a_name_that_nothing_has_is_an_error_with_a_way_out() {
    let ran = Home::new().assay(&["why", "no-such-thing-here", "--for", "1s"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("no-such-thing-here"), "{}", ran.stderr);
    let ran = Home::new().assay(&["why", "--for", "0s"]);
    assert_eq!(ran.code, Some(2));
}
