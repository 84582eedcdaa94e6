//! Tests a store in a real PostgreSQL: the same records as in SQLite, simultaneous users, and a server that becomes
//! unavailable.
#![allow(clippy::disallowed_methods, reason = "tests make files and processes")]

mod common;

use assay_model::run::RunState;
use assay_model::trial::{Side, Slot};
use assay_model::{Machine, Trial};
use assay_store::{About, Ask, Merged, Span, SpanSurvey, SpanValue, Store, StoreError, merge};
use assay_testing::servers::postgres::Postgres;
use std::path::{Path, PathBuf};

fn machine(digit: char, name: &str) -> Machine {
    Machine {
        id: digit.to_string().repeat(32),
        name: Some(name.to_owned()),
    }
}

fn slot(pair: u32, side: Side) -> Slot {
    serde_json::from_value(serde_json::json!({
        "pair": pair, "side": side, "read_back": "a",
        "sample": common::sample(pair * 2, 100.0),
    }))
    .unwrap()
}

/// Creates a store with a run, a trial and a study of two machines.
fn fill(path: &Path, prefix: char) -> Store {
    let uid = |n: u8| format!("{prefix}{n}").repeat(16);
    let mut store = Store::open(path).unwrap().on(Some(machine('a', "box")));
    let mut run = common::run(&uid(1));
    store.create_run(&mut run).unwrap();
    for at in [2, 0, 1, 1] {
        store
            .add_sample(run.id, &common::sample(at, f64::from(at)))
            .unwrap();
    }
    let ended = jiff::Timestamp::from_second(1_800_000_060).unwrap();
    store.finish(run.id, RunState::Complete, ended).unwrap();
    let mut store = store.on(Some(machine('b', "other")));
    let mut trial = common::trial(&uid(2));
    store.create_trial(&mut trial).unwrap();
    for side in [Side::Changed, Side::Now] {
        store.add_slot(trial.id, &slot(0, side)).unwrap();
    }
    store.put_study(&common::study(&uid(3), "cache")).unwrap();
    store
        .add_observation(&common::observation(&uid(4)))
        .unwrap();
    store
}

/// Returns all contents of a store with their machines, without the store's own numbers.
fn all(store: &Store) -> String {
    let mut text = String::new();
    for row in store.runs().unwrap().iter().rev() {
        let mut run = store.run(row.id).unwrap();
        run.id = assay_model::RunId(0);
        let more = (
            store.samples(row.id).unwrap(),
            store.machine_of_run(row.id).unwrap(),
        );
        text += &format!("{run:?} {more:?} {} {}\n", row.samples, row.planned);
    }
    for trial in store.trials().unwrap().iter().rev() {
        let id = trial.id;
        let trial = Trial {
            id: assay_model::trial::TrialId(0),
            ..trial.clone()
        };
        let more = (
            store.slots(id).unwrap(),
            store.machine_of_trial(id).unwrap(),
        );
        text += &format!("{trial:?} {more:?}\n");
    }
    for row in store.observations(usize::MAX).unwrap().iter().rev() {
        let one = store.observation(row.id).unwrap();
        text += &format!("{one:?} {:?} {}\n", row.machine, row.summary);
    }
    for (id, study) in store.studies().unwrap().iter().rev() {
        text += &format!("{study:?} {:?}\n", store.machine_of_study(*id).unwrap());
    }
    text
}

#[test]
fn it_holds_what_a_file_holds() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let url = server.url("postgres");
    assert!(
        Store::open_existing(&url).unwrap().is_none(),
        "nothing is made by looking"
    );
    let there = fill(&url, '1');
    let here = fill(&dir.path().join("s.db"), '1');
    assert_eq!(all(&there), all(&here));
    drop(there);
    let mut again = Store::open_existing(&url).unwrap().unwrap();
    assert_eq!(all(&again), all(&here));
    // Found by the usual names, then removed.
    let id = again.resolve("last").unwrap();
    assert_eq!(again.resolve("1111").unwrap(), id);
    let progress = again.run_progress(id).unwrap();
    let last = here.resolve("last").unwrap();
    assert_eq!(progress, here.run_progress(last).unwrap());
    assert!(progress.samples == 3 && progress.last.is_some());
    let mark = again.content_mark().unwrap();
    assert_eq!(again.content_mark().unwrap(), mark);
    again.delete_run(id).unwrap();
    assert_ne!(again.content_mark().unwrap(), mark);
    assert!(matches!(again.run(id), Err(StoreError::Missing { .. })));
    assert!(matches!(
        again.add_sample(id, &common::sample(0, 1.0)),
        Err(StoreError::Missing { .. })
    ));
}

#[test]
fn stores_become_one_and_twice_adds_nothing() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let url = server.url("postgres");
    let one = fill(&dir.path().join("one.db"), '1');
    let two = fill(&dir.path().join("two.db"), '2');
    let mut shared = Store::open(&url).unwrap();
    let new = Merged {
        new: 4,
        ..Merged::default()
    };
    let known = Merged {
        known: 4,
        ..Merged::default()
    };
    assert_eq!(merge(&one, &mut shared, &mut |_, _| true).unwrap(), new);
    assert_eq!(merge(&one, &mut shared, &mut |_, _| true).unwrap(), known);
    assert_eq!(merge(&two, &mut shared, &mut |_, _| true).unwrap(), new);
    // Copied back: contents of both stores.
    let mut back = Store::open(&dir.path().join("back.db")).unwrap();
    merge(&shared, &mut back, &mut |_, _| true).unwrap();
    assert_eq!(all(&back), all(&shared));
    // A partly copied store is completed.
    let mut half = Store::open(&dir.path().join("half.db")).unwrap();
    let uid = "33".repeat(16);
    let mut run = common::run(&uid);
    half.create_run(&mut run).unwrap();
    half.add_sample(run.id, &common::sample(0, 1.0)).unwrap();
    merge(&half, &mut shared, &mut |_, _| true).unwrap();
    half.add_sample(run.id, &common::sample(1, 1.0)).unwrap();
    let grown = Merged {
        grown: 1,
        ..Merged::default()
    };
    assert_eq!(merge(&half, &mut shared, &mut |_, _| true).unwrap(), grown);
    let id = shared.resolve(&uid).unwrap();
    assert_eq!(shared.samples(id).unwrap().len(), 2);
    // The user stopped the copy: the copied part stays.
    let mut part = Store::open(&dir.path().join("part.db")).unwrap();
    merge(&shared, &mut part, &mut |done, _| done < 2).unwrap();
    assert_eq!(part.runs().unwrap().len(), 2);
}

#[test]
fn many_at_once_make_it_once_and_fill_it_whole() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let url = server.url("postgres");
    std::thread::scope(|threads| {
        for hub in ['1', '2', '3', '4', '5', '6'] {
            let url = url.clone();
            threads.spawn(move || {
                let store = fill(&url, hub);
                // The same run from two hubs is stored once.
                let mut other = Store::open(&url).unwrap();
                let uid = "ee".repeat(16);
                other
                    .import_run(&common::run(&uid), &[common::sample(0, 1.0)], None)
                    .unwrap();
                drop(store);
            });
        }
    });
    let store = Store::open(&url).unwrap();
    assert_eq!(store.runs().unwrap().len(), 7);
    assert_eq!(store.trials().unwrap().len(), 6);
    assert_eq!(
        server.sql("postgres", "SELECT count(*) FROM assay.machine"),
        "2"
    );
    assert_eq!(
        server.sql(
            "postgres",
            "SELECT count(*), max(version) FROM assay.version"
        ),
        "1|6"
    );
}

/// Returns a survey of a machine whose values depend only on the time.
fn look(host: &str, number: i64) -> SpanSurvey<'_> {
    let fact = |key: &str| (About::Fact, key.to_owned());
    let text = |value: i64| SpanValue::Value(format!("\"{value} \\u0000 é\""));
    let mut seen: std::collections::BTreeMap<_, _> = (0..50)
        .map(|at| (fact(&format!("k.{at}")), text((number + at) / 40)))
        .collect();
    seen.insert(
        fact(&"long ".repeat(2000)),
        SpanValue::Value(format!("{:?}", "x".repeat(20_000))),
    );
    if number % 3 == 0 {
        seen.insert(
            (About::Finding, "rule@a".to_owned()),
            SpanValue::Value("\"high\"".to_owned()),
        );
    }
    if number % 5 == 0 {
        seen.insert(fact("k.7"), SpanValue::Unread);
    }
    SpanSurvey {
        host,
        at: jiff::Timestamp::from_second(1_800_000_000 + 3600 * number).unwrap(),
        scope: "1",
        seen,
        lost: Vec::new(),
    }
}

fn spans(store: &Store) -> Vec<Span> {
    let ask = Ask {
        most: 10_000,
        ..Ask::default()
    };
    let since = Some(jiff::Timestamp::UNIX_EPOCH);
    let mut all = store.spans(&ask).unwrap();
    all.extend(store.spans(&Ask { since, ..ask }).unwrap());
    let hosts = ["web1".to_owned(), "it's".to_owned()];
    all.extend(
        store
            .spans(&Ask {
                hosts: &hosts,
                key: Some("k.1"),
                ..ask
            })
            .unwrap(),
    );
    // The order of equal rows depends on the database's collation.
    all.sort_by(|a, b| format!("{a:?}").cmp(&format!("{b:?}")));
    all
}

#[test]
fn what_was_true_of_machines_is_the_same_in_both() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let url = server.url("postgres");
    // A store of an older version is migrated.
    let made = concat!(
        "CREATE SCHEMA assay; CREATE TABLE assay.version (version bigint NOT NULL);",
        "INSERT INTO assay.version VALUES (1);",
        include_str!("../migrations/postgres/0001.sql")
    );
    server.sql("postgres", made);
    let mut there = Store::open(&url).unwrap();
    let mut here = Store::open(&dir.path().join("s.db")).unwrap();
    for number in [0, 1, 2, 40, 41, 41, 39, 90] {
        for host in ["web1", "it's", "é<script>"] {
            let changed =
                [&mut there, &mut here].map(|store| store.look(&look(host, number)).unwrap());
            assert_eq!(changed[0], changed[1], "{host} {number}");
        }
    }
    let all = spans(&here);
    assert!(
        all.len() > 300 && all.iter().any(|span| span.changed),
        "{}",
        all.len()
    );
    assert_eq!(spans(&there), all);
    // Copied from one store to the other and back.
    let mut copy = Store::open(&dir.path().join("copy.db")).unwrap();
    assert_eq!(merge(&there, &mut copy, &mut |_, _| true).unwrap().new, 3);
    assert_eq!(spans(&copy), all);
    let again = merge(&copy, &mut there, &mut |_, _| true).unwrap();
    assert_eq!((again.new, again.grown, again.known), (0, 0, 3));
    // Another hub has more looks.
    copy.look(&look("web1", 95)).unwrap();
    assert_eq!(merge(&copy, &mut there, &mut |_, _| true).unwrap().grown, 1);
    assert_eq!(spans(&there), spans(&copy));
    assert!(there.forget_host("it's").unwrap() && !there.forget_host("it's").unwrap());
    there.keep_days(30).unwrap();
    assert_eq!(there.days().unwrap(), 30);
}

/// A query finds few rows by their names and many rows by their time. The result must be the same.
#[test]
fn a_listing_is_the_same_whichever_way_it_is_found() {
    let server = Postgres::start();
    let dir = tempfile::tempdir().unwrap();
    let mut urls = vec![dir.path().join("s.db")];
    urls.extend(server.as_ref().map(|server| server.url("postgres")));
    for url in urls {
        let mut store = Store::open(&url).unwrap();
        let names: Vec<String> = (0..20).map(|at| format!("host-{at:02}")).collect();
        for number in [0, 1, 2, 40, 45, 90] {
            for name in &names {
                store.look(&look(name, number)).unwrap();
            }
        }
        for since in [None, Some(jiff::Timestamp::UNIX_EPOCH)] {
            let ask = Ask {
                since,
                most: 100_000,
                ..Ask::default()
            };
            let all = store.spans(&ask).unwrap();
            assert!(all.len() > 900, "{}", all.len());
            for key in ["", "k.", "k.7", "rule", "long", "nothing"] {
                for hosts in [&names[..0], &names[3..4], &names[2..18]] {
                    let found = store.spans(&Ask {
                        key: Some(key),
                        hosts,
                        ..ask
                    });
                    let fits = |span: &&Span| {
                        span.key.starts_with(key)
                            && (hosts.is_empty() || hosts.contains(&span.machine))
                    };
                    let wanted: Vec<Span> = all.iter().filter(fits).cloned().collect();
                    assert_eq!(found.unwrap(), wanted, "{key} {since:?} {}", hosts.len());
                }
            }
            // A page contains the newest rows.
            let page = store.spans(&Ask { most: 70, ..ask }).unwrap();
            let times = |spans: &[Span]| spans.iter().map(|span| span.since).collect::<Vec<_>>();
            assert_eq!(times(&page), times(&all[..70]));
            assert!(page.iter().all(|span| all.contains(span)));
        }
    }
}

/// Several hubs survey the same machines at the same time and in any order, while the server restarts. They must write
/// one history without duplicate rows.
#[test]
fn hubs_at_once_write_one_history() {
    let Some(mut server) = Postgres::start() else {
        return;
    };
    let url = server.url("postgres");
    drop(Store::open(&url).unwrap());
    std::thread::scope(|threads| {
        for hub in 0..4 {
            let url = url.clone();
            threads.spawn(move || {
                let mut store = Store::open(&url).unwrap();
                for number in 0..60 {
                    for host in ["a", "b", "c"] {
                        store.look(&look(host, number + hub % 2)).unwrap();
                    }
                }
            });
        }
        std::thread::sleep(std::time::Duration::from_millis(300));
        server.down();
        std::thread::sleep(std::time::Duration::from_millis(300));
        server.up().unwrap();
    });
    let store = Store::open(&url).unwrap();
    assert_eq!(store.hosts().unwrap().len(), 3);
    let last = jiff::Timestamp::from_second(1_800_000_000 + 3600 * 60).unwrap();
    for (_, _, seen) in store.hosts().unwrap() {
        assert_eq!(seen, last);
    }
    // Whichever looks were skipped, the present state is that of the last look.
    let dir = tempfile::tempdir().unwrap();
    let mut one = Store::open(&dir.path().join("s.db")).unwrap();
    for number in 0..=60 {
        one.look(&look("a", number)).unwrap();
    }
    let now = |store: &Store| {
        let hosts = ["a".to_owned()];
        let ask = Ask {
            hosts: &hosts,
            most: 1000,
            ..Ask::default()
        };
        let all = store.spans(&ask).unwrap().into_iter();
        let mut all: Vec<_> = all.map(|span| (span.key, span.value)).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    };
    assert_eq!(now(&store), now(&one));
}

#[test]
fn a_server_that_is_started_anew_costs_nothing() {
    let Some(mut server) = Postgres::start() else {
        return;
    };
    let url = server.url("postgres");
    let mut store = Store::open(&url).unwrap();
    let mut run = common::run(&"77".repeat(16));
    store.create_run(&mut run).unwrap();
    // The writer waits until the server is available again.
    let writer = std::thread::spawn(move || {
        for at in 0..200 {
            store.add_sample(run.id, &common::sample(at, 1.0)).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        (store, run.id)
    });
    std::thread::sleep(std::time::Duration::from_millis(200));
    server.down();
    std::thread::sleep(std::time::Duration::from_millis(500));
    server.up().unwrap();
    let (store, id) = writer.join().unwrap();
    let slots: Vec<u32> = store
        .samples(id)
        .unwrap()
        .iter()
        .map(|sample| sample.slot)
        .collect();
    assert_eq!(slots, (0..200).collect::<Vec<u32>>());
}

#[test]
fn what_it_refuses_says_why_and_never_the_password() {
    let Some(mut server) = Postgres::start() else {
        return;
    };
    let with = |url: PathBuf, user: &str, more: &str| {
        let text = url.display().to_string();
        PathBuf::from(text.replace("assay@", &format!("{user}:s3cret@")) + more)
    };
    let refused = |url: &Path| {
        let error = Store::open(url).map(|_| ()).unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(!text.contains("s3cret"), "{text}");
        error
    };
    let url = server.url("postgres");
    let error = refused(&with(server.url("nowhere"), "assay", ""));
    assert!(error.to_string().contains("createdb"), "{error}");
    // A user without permission to read the store.
    server.sql("postgres", "CREATE ROLE guest LOGIN");
    let error = refused(&with(url.clone(), "guest", ""));
    assert!(error.to_string().contains("CREATE"), "{error}");
    // A standby server, or a server configured as read-only.
    let read_only = "&options=-c%20default_transaction_read_only%3Don";
    let error = refused(&with(url.clone(), "assay", read_only));
    assert!(error.to_string().contains("takes writes"), "{error}");
    // A store of a newer version stays unchanged.
    drop(Store::open(&url).unwrap());
    server.sql("postgres", "UPDATE assay.version SET version = 99");
    assert!(matches!(
        refused(&with(url.clone(), "assay", "")),
        StoreError::Newer { found: 99, .. }
    ));
    server.down();
    let error = refused(&with(url, "assay", ""));
    assert!(matches!(error, StoreError::Postgres { .. }), "{error:?}");
}

#[test]
fn a_store_that_lost_its_version_or_a_table_is_not_an_empty_one() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let changes = [
        "DELETE FROM assay.version",
        "DROP TABLE assay.version",
        "INSERT INTO assay.version VALUES (1)",
        "UPDATE assay.version SET version = 0",
        "UPDATE assay.version SET version = 99",
        "DROP TABLE assay.sample CASCADE",
        "DROP TABLE assay.kept",
    ];
    for (at, sql) in changes.into_iter().enumerate() {
        let name = format!("lost{at}");
        server.sql("postgres", &format!("CREATE DATABASE {name}"));
        let url = server.url(&name);
        fill(&url, 'a');
        server.sql(&name, sql);
        let error = Store::open_existing(&url).unwrap_err();
        let named = matches!(
            error,
            StoreError::Incomplete { .. } | StoreError::Newer { .. }
        );
        assert!(named, "{sql}: {error}");
        assert!(Store::open(&url).is_err(), "{sql}");
    }
}
