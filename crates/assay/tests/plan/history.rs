//! Forecasts from recorded sizes and clones.

use super::with_input;
use serde_json::Value;

#[test]
fn a_step_counts_and_what_is_full_is_said() {
    // Daily for a year, then an import that leaves 83 %.
    let mut history = String::new();
    for day in 0..300i64 {
        let used = if day < 290 { 3000 + day } else { 4510 };
        history += &format!("{} {used}GiB\n", 1_700_000_000 + day * 86_400);
    }
    let output = with_input(
        &["capacity", "--history", "-", "--size", "5434GiB", "--json"],
        &history,
    );
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        answer["trend"]["now"].as_f64(),
        Some(4510.0 * (1u64 << 30) as f64)
    );
    let dates = &answer["forecasts"];
    assert_eq!(
        (&dates[0]["already"], &dates[1]["already"]),
        (&true.into(), &false.into())
    );
    assert!(answer["trend"]["coverage"]["tried"].as_u64().unwrap() > 0);
}

#[test]
fn growth_and_dates_come_from_a_history() {
    let mut history = String::new();
    for month in 1..=12 {
        history += &format!("2025-{month:02}-01 {}GiB\n", 1000 + 20 * month);
    }
    let output = with_input(
        &["capacity", "--history", "-", "--size", "2TiB", "--json"],
        &history,
    );
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let per_day = answer["trend"]["per_day"].as_f64().unwrap() / (1u64 << 30) as f64;
    assert!((per_day - 20.0 / 30.4).abs() < 0.02, "{per_day}");
    let dates = answer["forecasts"].as_array().unwrap();
    assert!(dates[0]["when"].as_i64() < dates[1]["when"].as_i64());
    let broken = with_input(
        &["capacity", "--history", "-"],
        "2025-01-01 1TiB\nnonsense\n",
    );
    assert_eq!(broken.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&broken.stderr).contains("line 2"));
}

#[test]
fn clones_from_recorded_output() {
    let text = "p/gold\tused\t10GiB\np/gold\treferenced\t10GiB\np/gold\twritten\t0\n\
                p/gold@v1\tused\t0\np/gold@v1\treferenced\t10GiB\np/gold@v1\twritten\t10GiB\n\
                p/vm\tused\t3GiB\np/vm\treferenced\t11GiB\np/vm\twritten\t3GiB\np/vm\torigin\tp/gold@v1\n";
    let output = with_input(&["clones", "--from", "-", "--json"], text);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["clones"][0]["shared"].as_u64(), Some(8 << 30));
    let refused = with_input(&["clones", "--from", "-", "--destroy", "p/gold@v1"], text);
    assert_eq!(refused.status.code(), Some(1));
    insta::assert_snapshot!(String::from_utf8_lossy(&refused.stdout), @r"
    p/gold  10 GiB used, 10 GiB referenced
      └ p/gold@v1  0 B used, 10 GiB referenced
        └ p/vm  3 GiB used, 11 GiB referenced

    2 datasets, 1 snapshots, 1 clones

    p/vm (clone of p/gold@v1)
      still shared           8 GiB of 11 GiB (73 %)
      a full copy            needs 11 GiB, then frees 3 GiB and 0 B in the origin
      zfs promote            moves 1 snapshot to it and frees nothing; the old origin could then go for 0 B

    Snapshots that cannot go because clones hang on them
      p/gold@v1: holds 0 B that nothing else needs, 1 clone; destroy -R would take 2 and free at least 3 GiB

    zfs destroy p/gold@v1 would be refused
      p/gold@v1 has 1 dependent clone(s); -R takes them along
    ");
    let cut = with_input(&["clones", "--from", "-"], &text[..text.len() - 20]);
    assert_eq!(cut.status.code(), Some(2));
    let hostile = "p/\u{1b}[31mx\tused\t1\np/\u{1b}[31mx\treferenced\t1\n";
    let shown = with_input(
        &["clones", "--from", "-", "--destroy", "p/\u{1b}[31mx"],
        hostile,
    );
    assert!(!String::from_utf8_lossy(&shown.stdout).contains('\u{1b}'));
}
