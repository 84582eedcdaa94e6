//! Replays the clone scenario, step by step, as it was recorded with OpenZFS 2.1.11.

use assay_planner::clones::{Graph, Recursion, parse_zfs_get, report};
use serde_json::Value;
use std::fmt::Write as _;

/// Returns the `zfs get -Hp` output of a recorded step.
fn get_output(step: &Value) -> String {
    let mut text = String::new();
    for row in step["rows"].as_array().unwrap() {
        let name = row["name"].as_str().unwrap();
        for (key, property) in [
            ("used", "used"),
            ("refer", "referenced"),
            ("written", "written"),
            ("origin", "origin"),
            ("usnap", "usedbysnapshots"),
            ("uds", "usedbydataset"),
        ] {
            writeln!(
                text,
                "{name}\t{property}\t{}\t-",
                row[key].as_str().unwrap()
            )
            .unwrap();
        }
    }
    text
}

fn rows() -> Vec<Value> {
    include_str!("../fixtures/zfs/clones.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn graph(step: &Value) -> Graph {
    Graph::new(parse_zfs_get("recorded", &get_output(step)).unwrap()).unwrap()
}

#[test]
fn dry_runs_of_destroy() {
    let mut now = None;
    let (mut compared, mut exact) = (0, 0);
    for row in rows() {
        if row["kind"] == "clone-state" {
            now = Some(graph(&row));
            continue;
        }
        let command = row["cmd"].as_str().unwrap();
        if !command.contains(" -nvp") {
            continue;
        }
        let graph = now.as_ref().unwrap();
        let target = command.rsplit(' ').next().unwrap();
        let flags = command.split(' ').nth(2).unwrap();
        let recursion = match (flags.contains('R'), flags.contains('r')) {
            (true, _) => Recursion::Dependents,
            (_, true) => Recursion::Children,
            _ => Recursion::None,
        };
        let ours = graph.destroy(target, recursion).unwrap();
        assert_eq!(
            ours.refused.is_empty(),
            row["rc"] == 0,
            "{command}: {:?}",
            ours.refused
        );
        if row["rc"] != 0 {
            continue;
        }
        let output = row["out"].as_str().unwrap();
        let mut theirs: Vec<&str> = output
            .lines()
            .filter_map(|line| line.strip_prefix("destroy\t"))
            .collect();
        // A dry run with -R of a snapshot lists only the snapshot, although its clones are destroyed too.
        if !(target.contains('@') && recursion == Recursion::Dependents) {
            let mut takes: Vec<&str> = ours.takes.iter().map(String::as_str).collect();
            takes.sort_unstable();
            theirs.sort_unstable();
            assert_eq!(takes, theirs, "{command}");
        }
        let reclaim = output
            .lines()
            .find_map(|line| line.strip_prefix("reclaim\t"))
            .map(|bytes| bytes.parse::<u64>().unwrap());
        if let (Some(reclaim), Recursion::None) = (reclaim, recursion) {
            assert!(
                (ours.frees_at_least..=ours.frees_at_most).contains(&reclaim),
                "{command}: {reclaim} not in {}..={}",
                ours.frees_at_least,
                ours.frees_at_most
            );
            compared += 1;
            exact += usize::from(ours.frees_at_least == ours.frees_at_most);
        }
    }
    assert_eq!(compared, 10);
    assert_eq!(exact, 9);
}

#[test]
fn what_promote_changed() {
    let rows = rows();
    let step = |begins: &str| {
        rows.iter()
            .find(|row| {
                row["step"]
                    .as_str()
                    .is_some_and(|step| step.starts_with(begins))
            })
            .unwrap()
    };
    let report = report(&graph(step("5 ")), None).unwrap();
    let clone = &report.clones[0];
    assert_eq!(
        (clone.name.as_str(), clone.shared, clone.exact),
        ("b/demo-clone", 40_960, true)
    );
    let after = step("6 ");
    let used = |name: &str| {
        after["rows"]
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["name"] == name)
            .unwrap()["used"]
            .as_str()
            .unwrap()
            .parse::<u64>()
            .ok()
    };
    assert_eq!(clone.promote.origin_used_after, used("b/demo"));
    assert_eq!(clone.promote.clone_used_after, used("b/demo-clone"));
    assert_eq!(report.hostages[0].hostage, 67_223_552);
}

#[test]
fn destroying_a_snapshot_with_its_clones_freed_what_was_planned() {
    let rows = rows();
    let find = |begins: &str| {
        rows.iter()
            .find(|row| {
                row["step"]
                    .as_str()
                    .is_some_and(|step| step.starts_with(begins))
            })
            .unwrap()
    };
    let (before, after) = (find("8 "), find("9 "));
    let ours = graph(before)
        .destroy("b/c@5", Recursion::Dependents)
        .unwrap();
    assert_eq!(ours.takes.last().unwrap(), "b/c@5");
    assert_eq!(ours.takes.len(), 5);
    let alloc = |step: &Value| step["alloc"].as_u64().unwrap();
    let freed = alloc(before) - alloc(after);
    // The pool's own metadata for the datasets is freed too: 20 KiB here.
    assert!(
        freed.abs_diff(ours.frees_at_least) < 32 << 10,
        "{freed} {}",
        ours.frees_at_least
    );
}

#[test]
fn broken_records_are_named() {
    let lineage = |text: &str| {
        parse_zfs_get("recorded", text)
            .and_then(Graph::new)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    let set =
        |name: &str, more: &str| format!("{name}\tused\t1\t-\n{name}\treferenced\t1\t-\n{more}");
    for (text, why) in [
        (String::new(), "holds no dataset"),
        ("p/a\tused\t1\t-\np/a\trefer".into(), "line 2"),
        ("p/a\tused\t1\t-\n".into(), "no `referenced`"),
        (
            "p/a\tused\t1.2G\t-\np/a\treferenced\tmuch\t-\n".into(),
            "not a number of bytes",
        ),
        (set("p/a", "p/a\tused\t2\t-\n"), "twice"),
        (set("p/a", "p/a\torigin\tp/b@s\t-\n"), "not recorded"),
        (set("p/a", "p/a\torigin\tp/a\t-\n"), "no snapshot"),
        (set("p/a@s", ""), "its dataset is not"),
        (
            set("p/a", "p/a\torigin\tp/b@s\t-\n")
                + &set("p/a@s", "")
                + &set("p/b", "p/b\torigin\tp/a@s\t-\n")
                + &set("p/b@s", ""),
            "circle",
        ),
        (
            set("p/a", "p/a\torigin\tp/a@s\t-\n") + &set("p/a@s", ""),
            "circle",
        ),
        (set("@s", ""), "not a dataset"),
    ] {
        let error = lineage(&text);
        assert!(error.contains(why), "{text:?}: {error}");
    }
}

#[test]
fn a_hypothetical_file_may_use_units() {
    let text = "# a gold image and a clone\np/gold\tused\t20GiB\np/gold\treferenced\t20GiB\n";
    let records = parse_zfs_get("file", text).unwrap();
    assert_eq!(records[0].used, 20 << 30);
}

#[test]
fn deep_chains_do_not_overflow_the_stack() {
    let mut text = String::new();
    for i in 0..20_000 {
        writeln!(
            text,
            "p/c{i}\tused\t1\np/c{i}\treferenced\t1\np/c{i}@s\tused\t1\np/c{i}@s\treferenced\t1"
        )
        .unwrap();
        if i > 0 {
            writeln!(text, "p/c{i}\torigin\tp/c{}@s", i - 1).unwrap();
        }
    }
    let graph = Graph::new(parse_zfs_get("chain", &text).unwrap()).unwrap();
    let ours = graph.destroy("p/c0", Recursion::Dependents).unwrap();
    assert_eq!(ours.takes.len(), 40_000);
}
