//! Tests the store in typical situations: old, new, of another program, full, after a kill, and with many simultaneous
//! users.
#![allow(clippy::disallowed_methods, reason = "tests make files and processes")]

use assay_model::plan::{Settings, builtin_plan};
use assay_model::run::{Origin, Run, RunId, RunState};
use assay_model::sample::{Counters, Outcome, Sample, Worker};
use assay_model::workload::Engine;
use assay_model::{Facts, Nanos};
use assay_store::{RunFilter, Store, StoreError};
use jiff::Timestamp;
use std::path::Path;

fn run(uid: &str) -> Run {
    let settings = Settings {
        targets: vec!["/srv".to_owned()],
        engine: Engine::Libaio,
        seed: 1,
    };
    Run {
        id: RunId(0),
        uid: uid.to_owned(),
        assay_version: "0".to_owned(),
        started: Timestamp::from_second(1_800_000_000).unwrap(),
        ended: None,
        state: RunState::Running,
        origin: Origin::Measured,
        plan: builtin_plan("quick").unwrap().resolve(&settings).unwrap(),
        targets: vec![],
        facts: Facts::default(),
        remarks: vec![],
        ladder: None,
    }
}

fn sample(slot: u32) -> Sample {
    Sample {
        workload: "w".to_owned(),
        target: "/srv".to_owned(),
        round: 1,
        slot,
        started: Timestamp::from_second(1_800_000_000).unwrap(),
        wall: Nanos(5),
        outcome: Outcome::Completed,
        tool: "fio-3.33".to_owned(),
        workers: vec![Worker {
            name: "w".to_owned(),
            usr_cpu: 1.5,
            ..Worker::default()
        }],
        counters: Counters::default(),
        file: None,
        series: vec![],
    }
}

#[test]
fn what_is_stored_reads_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deep/er/assay.db");
    let mut store = Store::open(&path).unwrap();
    let mut first = run("aaaa");
    store.create_run(&mut first).unwrap();
    for slot in [2, 0, 1, 1] {
        store.add_sample(first.id, &sample(slot)).unwrap();
    }
    let ended = Timestamp::from_second(1_800_000_060).unwrap();
    store.finish(first.id, RunState::Complete, ended).unwrap();
    drop(store);
    let mut store = Store::open(&path).unwrap();
    let read = store.run(first.id).unwrap();
    assert_eq!(read.plan, first.plan);
    assert_eq!((read.state, read.ended), (RunState::Complete, Some(ended)));
    assert_eq!(
        store.samples(first.id).unwrap(),
        [sample(0), sample(1), sample(2)]
    );
    let rows = store.runs().unwrap();
    assert_eq!((rows[0].samples, rows[0].planned), (3, 30));
    store.delete_run(first.id).unwrap();
    assert!(matches!(
        store.run(first.id),
        Err(StoreError::Missing { .. })
    ));
    assert!(store.samples(first.id).unwrap().is_empty());
}

#[test]
fn an_export_taken_in_elsewhere_is_the_same_run_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(&dir.path().join("a.db")).unwrap();
    let mut first = run("aaaa");
    store.create_run(&mut first).unwrap();
    let text = assay_store::to_json(&first, &[sample(0)], None).unwrap();
    let mut other = Store::open(&dir.path().join("b.db")).unwrap();
    let export = assay_store::from_json(&text).unwrap();
    let (id, new) = other
        .import_run(&export.run, &export.samples, None)
        .unwrap();
    assert!(new);
    assert_eq!(
        other
            .import_run(&export.run, &export.samples, None)
            .unwrap(),
        (id, false)
    );
    assert_eq!(other.run(id).unwrap().plan, first.plan);
    for bad in [
        "",
        "{}",
        "[1]",
        r#"{"assay":"x","schema":1}"#,
        r#"{"assay":"run","schema":99}"#,
    ] {
        assert!(
            matches!(assay_store::from_json(bad), Err(StoreError::Export(_))),
            "{bad}"
        );
    }
}

fn refused(path: &Path) -> String {
    let before = std::fs::read(path).unwrap();
    let error = Store::open(path).unwrap_err().to_string();
    assert!(
        std::fs::read(path).unwrap() == before,
        "what is refused is not touched"
    );
    error
}

#[test]
fn a_newer_store_is_refused_and_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("assay.db");
    drop(Store::open(&path).unwrap());
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.pragma_update(None, "user_version", 999).unwrap();
    raw.pragma_update(None, "journal_mode", "delete").unwrap();
    drop(raw);
    let error = refused(&path);
    assert!(
        error.contains("newer assay") && error.contains("999"),
        "{error}"
    );
}

#[test]
fn files_of_others_are_refused_and_left_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("notes.txt");
    std::fs::write(
        &text,
        "these are my notes, and they are long enough to be a header".repeat(99),
    )
    .unwrap();
    insta::assert_snapshot!(assay_testing::normalize_output(refused(&text), &[(&text, "FILE")]), @"FILE is not a store of assay's: it is not a SQLite database; name another file with --store, or move this one away");
    let other = dir.path().join("other.db");
    let raw = rusqlite::Connection::open(&other).unwrap();
    raw.execute_batch("CREATE TABLE mail (id INTEGER)").unwrap();
    drop(raw);
    insta::assert_snapshot!(assay_testing::normalize_output(refused(&other), &[(&other, "FILE")]), @"FILE is not a store of assay's: it is the SQLite database of another program; name another file with --store, or move this one away");
    assert!(
        Store::open(dir.path())
            .unwrap_err()
            .to_string()
            .contains("directory")
    );
}

#[test]
fn an_unknown_run_says_which_there_are() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(&dir.path().join("assay.db")).unwrap();
    let error = store.resolve("7").unwrap_err().to_string();
    insta::assert_snapshot!(assay_testing::normalize_output(error, &[(dir.path(), "DIR")]), @"there is no run `7`; nothing has been measured yet: `assay run quick .`");
    store.create_run(&mut run("aaaa")).unwrap();
    let error = store.resolve("7").unwrap_err().to_string();
    insta::assert_snapshot!(assay_testing::normalize_output(error, &[(dir.path(), "DIR")]), @"there is no run `7`; there are 1 (`assay report runs` lists them)");
}

/// Environment variable that makes the test a child process. The child writes until it is killed, and prints a line
/// after each stored sample.
const WRITER: &str = "ASSAY_STORE_TEST_WRITER";

#[test]
fn writer() {
    let Some(path) = std::env::var_os(WRITER) else {
        return;
    };
    use std::io::Write as _;
    let mut store = Store::open(Path::new(&path)).unwrap();
    let mut run = run(&format!("writer-{}", std::process::id()));
    store.create_run(&mut run).unwrap();
    for slot in 0..1_000_000 {
        store.add_sample(run.id, &sample(slot)).unwrap();
        // Not println!, because the test harness captures its output.
        let _ = writeln!(std::io::stderr(), "stored {} {slot}", run.id);
    }
}

#[test]
fn four_writers_killed_at_any_moment_lose_nothing_they_were_told_is_stored() {
    use std::io::{BufRead as _, BufReader};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("assay.db");
    let spawn = || {
        std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "writer", "--nocapture"])
            .env(WRITER, &path)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    };
    let mut children: Vec<_> = (0..4).map(|_| spawn()).collect();
    let mut told = Vec::new();
    for (nth, child) in children.iter_mut().enumerate() {
        let mut lines = BufReader::new(child.stderr.take().unwrap())
            .lines()
            .map(Result::unwrap);
        let mut last = None;
        while let Some(line) = lines.next() {
            let mut words = line.split(' ');
            if words.next() != Some("stored") {
                let rest: Vec<String> = std::iter::once(line).chain(lines).take(12).collect();
                panic!("a writer said: {}", rest.join(" "));
            }
            let run: i64 = words.next().unwrap().parse().unwrap();
            let slot: usize = words.next().unwrap().parse().unwrap();
            last = Some((run, slot));
            if slot >= 5 + nth * 3 {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        told.push(last.unwrap());
    }
    let store = Store::open(&path).unwrap();
    for (run, slot) in told {
        assert!(store.samples(RunId(run)).unwrap().len() > slot);
    }
    assert_eq!(store.runs().unwrap().len(), 4);
}

#[test]
fn a_full_disk_is_an_error_and_the_store_stays_whole() {
    if !rustix::process::geteuid().is_root() {
        assay_testing::skipped("root", "needs root to mount a small file system");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mount = dir.path().join("small");
    std::fs::create_dir(&mount).unwrap();
    let command = |name: &str, args: &[&str]| {
        std::process::Command::new(name)
            .args(args)
            .arg(&mount)
            .status()
            .unwrap()
            .success()
    };
    assert!(command(
        "mount",
        &["-t", "tmpfs", "-o", "size=512k", "assay-test"]
    ));
    let path = mount.join("assay.db");
    let mut store = Store::open(&path).unwrap();
    let mut first = run("aaaa");
    store.create_run(&mut first).unwrap();
    let mut stored = 0;
    let error = loop {
        match store.add_sample(first.id, &sample(stored)) {
            Ok(()) => stored += 1,
            Err(error) => break error,
        }
        assert!(stored < 100_000);
    };
    assert!(error.to_string().contains("full"), "{error}");
    drop(store);
    let whole = Store::open(&path)
        .and_then(|store| store.samples(first.id))
        .map(|all| all.len());
    assert!(command("umount", &[]));
    assert_eq!(whole.unwrap(), stored as usize);
}

#[test]
fn runs_are_found_by_plan_and_target_and_visited_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(&dir.path().join("s.db")).unwrap();
    // More than one query reads.
    for number in 0..1_203 {
        let mut one = run(&format!("{number:032x}"));
        one.plan.name = if number % 400 == 7 { "rare" } else { "often" }.to_owned();
        store.import_run(&one, &[], None).unwrap();
    }
    store.add_sample(RunId(408), &sample(0)).unwrap();
    let mut visited = Vec::new();
    store.visit_runs(|head| visited.push(head.id.0)).unwrap();
    assert_eq!(visited, (1..=1_203).rev().collect::<Vec<i64>>());
    let find = |filter: RunFilter<'_>| {
        let rows = store.find_runs(&filter).unwrap();
        rows.iter()
            .map(|row| (row.id.0, row.samples))
            .collect::<Vec<_>>()
    };
    let rare = RunFilter {
        plan: Some("rare"),
        most: 2,
        ..RunFilter::default()
    };
    assert_eq!(find(rare), [(808, 0), (408, 1)]);
    let elsewhere = RunFilter {
        target: Some("/srv"),
        ..RunFilter::default()
    };
    assert!(find(elsewhere).is_empty(), "these runs have no targets");
    let targets = RunFilter {
        targets: Some(&[]),
        most: 3,
        ..RunFilter::default()
    };
    assert_eq!(find(targets).len(), 3);
    let nothing = RunFilter {
        most: 0,
        ..RunFilter::default()
    };
    assert!(find(nothing).is_empty());
    // A name with many matches lists some of them.
    let said = store.resolve("0000").unwrap_err();
    assert!(
        matches!(&said, StoreError::Ambiguous { ids, .. } if ids.ends_with(", …") && ids.len() < 100),
        "{said}"
    );
    assert_eq!(store.resolve("last~1200").unwrap(), RunId(3));
}

#[test]
fn the_mark_changes_with_the_content_and_only_then() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let mut writer = Store::open(&path).unwrap();
    let mut first = run("aaaa");
    writer.create_run(&mut first).unwrap();
    let reader = Store::open_existing(&path).unwrap().unwrap();
    let before = reader.content_mark().unwrap();
    reader.runs().unwrap();
    drop(Store::open_existing(&path).unwrap());
    assert_eq!(reader.content_mark().unwrap(), before);
    let progress = reader.run_progress(first.id).unwrap();
    assert_eq!(
        (progress.samples, progress.first, progress.last),
        (0, None, None)
    );
    for slot in [1, 0] {
        let last = reader.content_mark().unwrap();
        writer.add_sample(first.id, &sample(slot)).unwrap();
        assert_ne!(reader.content_mark().unwrap(), last);
    }
    let progress = reader.run_progress(first.id).unwrap();
    let one = sample(0);
    assert_eq!(
        (progress.state, progress.samples, progress.planned),
        (RunState::Running, 2, 30)
    );
    assert_eq!(progress.first, Some(one.started));
    assert_eq!(progress.last, Some((one.started, one.wall)));
    let missing = reader.run_progress(RunId(7));
    assert!(matches!(missing, Err(StoreError::Missing { .. })));
}
