//! Undoing some of what a session kept.

use super::LESS;
use super::planted::{Planted, json, names};
use std::fs;

#[test]
fn one_piece_is_undone_and_the_rest_stays() {
    let planted = Planted::new();
    let ran = planted.tune(LESS, &["fast", "extra"], &["--budget", "240s"]);
    let document = json(&ran);
    assert_eq!(ran.code, Some(0), "{}\n{document:#}", ran.stderr);
    let mut kept = names(&document, "kept");
    kept.sort();
    assert_eq!(kept, ["extra", "fast"], "{document:#}");
    let undo = |words: &[&str]| {
        let words: Vec<&str> = ["tune", "--undo"].iter().chain(words).copied().collect();
        planted.home.assay(&words)
    };
    let unknown = undo(&["1", "--only", "nosuch"]);
    assert_eq!(unknown.code, Some(2), "{}", unknown.stdout);
    assert!(unknown.stderr.contains("extra") && unknown.stderr.contains("fast"));
    let shown = undo(&["1", "--only", "extra", "--dry-run"]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(planted.text().contains("extra = on"));
    // Another program changes one of the two: neither can be undone alone, and nothing is touched.
    let kept = planted.text();
    for (from, to) in [
        ("extra = on", "extra = mine"),
        ("mode = fast", "mode = mine"),
    ] {
        let changed = kept.replace(from, to);
        fs::write(planted.conf(), &changed).unwrap();
        let refused = undo(&["1", "--only", "extra"]);
        assert_eq!(refused.code, Some(2), "{}", refused.stdout);
        assert!(refused.stderr.contains("mine"), "{}", refused.stderr);
        assert_eq!(planted.text(), changed);
    }
    fs::write(planted.conf(), &kept).unwrap();
    let undone = undo(&["1", "--only", "extra"]);
    assert_eq!(undone.code, Some(0), "{}", undone.stderr);
    let text = planted.text();
    assert!(
        text.contains("extra = off") && text.contains("mode = fast"),
        "{text}"
    );
    let document = json(&planted.home.assay(&["tune", "--show", "--json"]));
    assert_eq!(names(&document, "kept"), ["fast"]);
    // Somebody else changes the file: the piece that is left is named, and its line is not overwritten.
    let changed = text.replace("mode = fast", "mode = mine");
    fs::write(planted.conf(), changed).unwrap();
    let undone = undo(&[]);
    assert_eq!(undone.code, Some(1), "{}", undone.stdout);
    assert!(planted.text().contains("mode = mine"));
    planted.forget_open_changes();
    fs::write(planted.conf(), &text).unwrap();
}

#[test]
fn all_pieces_one_after_the_other_restore_every_byte() {
    let planted = Planted::new();
    let ran = planted.tune(LESS, &["fast"], &[]);
    assert_eq!(names(&json(&ran), "kept"), ["fast"], "{}", ran.stderr);
    let undone = planted
        .home
        .assay(&["tune", "--undo", "1", "--only", "fast"]);
    assert_eq!(undone.code, Some(0), "{}", undone.stderr);
    assert!(planted.is_as_before(), "{}", planted.text());
    let again = planted.home.assay(&["tune", "--undo", "1"]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
}

#[test]
fn several_pages_of_a_trial_are_one_session_that_one_command_reverts() {
    let planted = Planted::new();
    let page = |id: &str| planted.page(id).to_str().unwrap().to_owned();
    let place = planted.home.dir.path().to_str().unwrap().to_owned();
    let words = ["trial".to_owned(), page("harm"), page("fast"), place];
    let more = [
        "--slot",
        "250ms",
        "--washout",
        "0s",
        "--budget",
        "150s",
        "--yes",
        "--keep",
        "--json",
    ];
    let words: Vec<&str> = words.iter().map(String::as_str).chain(more).collect();
    let ran = planted.home.assay(&words);
    let document = json(&ran);
    assert_eq!(ran.code, Some(0), "{}\n{document:#}", ran.stderr);
    assert_eq!(names(&document, "kept"), ["fast"], "{document:#}");
    assert_eq!(document["budget_seconds"], 150.0);
    let undone = planted.home.assay(&["tune", "--undo"]);
    assert_eq!(undone.code, Some(0), "{}", undone.stderr);
    assert!(planted.is_as_before(), "{}", planted.text());
    // Without --keep everything is reverted, whatever is proved; together, with --whole of tune.
    let study: Vec<&str> = words
        .iter()
        .copied()
        .filter(|word| *word != "--keep")
        .collect();
    let ran = planted.home.assay(&study);
    let document = json(&ran);
    assert_eq!(ran.code, Some(0), "{}\n{document:#}", ran.stderr);
    assert!(document["gain"].as_f64().unwrap() > 0.05, "{document:#}");
    assert!(names(&document, "kept").is_empty() && planted.is_as_before());
}

#[test]
fn changes_that_were_proved_elsewhere_are_proved_together_only() {
    let planted = Planted::new();
    let ran = planted.tune(LESS, &["fast", "extra"], &["--whole"]);
    let document = json(&ran);
    assert_eq!(ran.code, Some(0), "{}\n{document:#}", ran.stderr);
    assert_eq!(names(&document, "kept").len(), 2, "{document:#}");
    assert!(names(&document, "tried").is_empty(), "{document:#}");
    assert_eq!(planted.home.assay(&["tune", "--undo"]).code, Some(0));
    assert!(planted.is_as_before(), "{}", planted.text());
}

#[test]
fn undo_is_not_stopped_by_another_setting_of_the_file() {
    let planted = Planted::new();
    let before = planted.text();
    // Tried, but not kept.
    let ran = planted.tune(LESS, &["fast", "idle"], &[]);
    assert_eq!(names(&json(&ran), "kept"), ["fast"], "{}", ran.stderr);
    fs::write(planted.conf(), planted.text().replace("idle=1", "idle=7")).unwrap();
    let undone = planted.home.assay(&["tune", "--undo"]);
    assert_eq!(undone.code, Some(0), "{}", undone.stderr);
    assert_eq!(planted.text(), before.replace("idle=1", "idle=7"));
    // Two are kept, and somebody else changes one of them: the other is reverted.
    let ran = planted.tune(LESS, &["fast", "extra"], &["--whole"]);
    assert_eq!(names(&json(&ran), "kept").len(), 2, "{}", ran.stderr);
    let changed = planted.text().replace("extra = on", "extra = mine");
    fs::write(planted.conf(), changed).unwrap();
    let undone = planted.home.assay(&["tune", "--undo"]);
    assert_eq!(undone.code, Some(1), "{}", undone.stderr);
    let text = planted.text();
    assert!(
        text.contains("mode = slow") && text.contains("extra = mine"),
        "{text}"
    );
    planted.forget_open_changes();
}
