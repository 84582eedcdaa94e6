//! Tests the tables for queries. The rows are the same in SQLite and PostgreSQL, are written with each record, and are
//! created when a store of an older version is opened.
#![allow(
    clippy::disallowed_methods,
    reason = "tests work in directories of their own"
)]

mod common;

use assay_model::criterion::{Direction, Metric, Quantity};
use assay_model::run::RunState;
use assay_model::trial::{Side, Slot, TrialState};
use assay_store::tables::{TABLES, Table, Value};
use assay_store::{Store, merge};
use assay_testing::servers::postgres::Postgres;
use std::path::{Path, PathBuf};

/// Copies a compressed store of an older version.
fn old(dir: &Path, packed: &[u8]) -> PathBuf {
    let path = dir.join("assay.db");
    std::fs::write(&path, zstd::decode_all(packed).unwrap()).unwrap();
    path
}

const V3: &[u8] = include_bytes!("fixtures/store-0.1.db.zst");
const V5: &[u8] = include_bytes!("fixtures/store-0.2-v5.db.zst");

fn table(name: &str) -> &'static Table {
    TABLES.iter().find(|table| table.name == name).unwrap()
}

/// Returns all rows of all tables, without the numbers that each store assigns.
fn all(store: &Store) -> Vec<String> {
    let mut names: Vec<String> = store
        .runs()
        .unwrap()
        .into_iter()
        .map(|run| run.uid)
        .collect();
    names.extend(store.trials().unwrap().into_iter().map(|trial| trial.uid));
    names.extend(store.hosts().unwrap().into_iter().map(|host| host.0));
    let mut rows = Vec::new();
    for table in &TABLES {
        let number = table
            .columns
            .iter()
            .position(|column| column.name == "number");
        let number = number.filter(|_| matches!(table.name, "runs" | "trials"));
        for name in &names {
            for mut row in store.table_rows(table, name).unwrap() {
                assert_eq!(row.len(), table.columns.len());
                for (value, column) in row.iter_mut().zip(table.columns) {
                    assert!(
                        column.optional || *value != Value::None,
                        "{}.{}",
                        table.name,
                        column.name
                    );
                    // PostgreSQL stores microseconds.
                    if let Value::Time(time) = value {
                        *time = time.round(jiff::Unit::Microsecond).unwrap();
                    }
                }
                if let Some(number) = number {
                    row[number] = Value::None;
                }
                rows.push(format!("{} {row:?}", table.name));
            }
        }
    }
    rows.sort();
    rows
}

/// Compares rows and shows only the first difference.
fn same(found: &[String], wanted: &[String]) {
    let other = found
        .iter()
        .zip(wanted)
        .find(|(found, wanted)| found != wanted);
    assert_eq!(other, None);
    assert_eq!(found.len(), wanted.len());
}

fn count(rows: &[String], table: &str) -> usize {
    let of = |row: &&String| row.split(' ').next() == Some(table);
    rows.iter().filter(of).count()
}

#[test]
fn stores_of_older_versions_have_all_rows_once_they_are_opened() {
    for packed in [V3, V5] {
        let dir = tempfile::tempdir().unwrap();
        let path = old(dir.path(), packed);
        let store = Store::open(&path).unwrap();
        let rows = all(&store);
        assert_eq!((count(&rows, "runs"), count(&rows, "trials")), (8, 3));
        // Every sample that counts has the figures by which it is judged.
        for row in store.runs().unwrap() {
            let (run, samples) = (store.run(row.id).unwrap(), store.samples(row.id).unwrap());
            let judged = assay_judge::judge_run(&run, &samples);
            let wanted: usize = judged.samples.iter().map(|one| one.figures.len()).sum();
            let found = store.table_rows(table("figures"), &row.uid).unwrap();
            assert_eq!(found.len(), wanted);
            let value = |row: &[Value], name: &str| {
                let at = table("figures")
                    .columns
                    .iter()
                    .position(|one| one.name == name);
                row[at.unwrap()].clone()
            };
            for row in &found {
                let Value::Int(slot) = value(row, "slot") else {
                    panic!("a slot is a number");
                };
                let one = judged
                    .samples
                    .iter()
                    .find(|one| i64::from(one.slot) == slot);
                let one = one.unwrap();
                let (Value::Text(metric), Value::Float(number)) =
                    (value(row, "metric"), value(row, "value"))
                else {
                    panic!("a figure is a number");
                };
                let metric: Metric = metric.parse().unwrap();
                assert_eq!(one.figures[&metric].to_bits(), number.to_bits());
                let validity = serde_json::json!(one.validity);
                assert_eq!(
                    value(row, "validity"),
                    Value::Text(validity.as_str().unwrap().to_owned())
                );
            }
        }
        // A second run adds nothing, and a merge gives the same rows.
        drop(store);
        let store = Store::open(&path).unwrap();
        same(&all(&store), &rows);
        let mut copy = Store::open(&dir.path().join("copy.db")).unwrap();
        merge(&store, &mut copy, &mut |_, _| true).unwrap();
        same(&all(&copy), &rows);
    }
}

#[test]
fn both_databases_have_the_same_rows() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let here = Store::open(&old(dir.path(), V5)).unwrap();
    let mut there = Store::open(&server.url("postgres")).unwrap();
    merge(&here, &mut there, &mut |_, _| true).unwrap();
    let rows = all(&here);
    assert!(TABLES.iter().all(|table| count(&rows, table.name) > 0));
    same(&all(&there), &rows);
    // The names and types equal the description, also for other users of the database.
    for table in &TABLES {
        let found = server.sql(
            "postgres",
            &format!(
                "SELECT string_agg(column_name || ' ' || data_type, ',' ORDER BY ordinal_position)
                 FROM information_schema.columns WHERE table_schema = 'assay' AND table_name = '{}'",
                table.name
            ),
        );
        let wanted: Vec<String> = table
            .columns
            .iter()
            .map(|column| {
                use assay_store::tables::Kind;
                let kind = match column.kind {
                    Kind::Text => "text",
                    Kind::Int => "bigint",
                    Kind::Float => "double precision",
                    Kind::Flag => "boolean",
                    Kind::Time => "timestamp with time zone",
                };
                format!("{} {kind}", column.name)
            })
            .collect();
        assert_eq!(found.trim(), wanted.join(","), "{}", table.name);
    }
    let answer = server.sql(
        "postgres",
        "SELECT count(*) FROM assay.figures
         WHERE metric = 'iops' AND value > 0 AND validity <> 'void' AND started > '2020-01-01'",
    );
    assert!(answer.trim().parse::<u32>().unwrap() > 5, "{answer}");
    // A role with the rights that the book names reads the views, and not the tables below them.
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/store-schema.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, rights) = page.split_once("CREATE ROLE reader LOGIN;").unwrap();
    let rights = rights.split("END").next().unwrap();
    let read = format!("CREATE ROLE reader; {rights}; SET ROLE reader; SELECT count(*) > 0 FROM");
    for table in &TABLES {
        let sql = format!("BEGIN; {read} assay.{}; ROLLBACK", table.name);
        assert_eq!(server.sql("postgres", &sql), "t", "{}", table.name);
    }
    let below = "SELECT has_table_privilege('reader', 'assay.sample', 'SELECT')";
    let sql = format!("BEGIN; CREATE ROLE reader; {rights}; {below}; ROLLBACK");
    assert_eq!(server.sql("postgres", &sql), "f");
    // A changed fact: its old value ends when the new value begins.
    let answer = server.sql(
        "postgres",
        "SELECT string_agg(value, ' ' ORDER BY since), count(until), bool_and(seen < until) FROM assay.facts
         WHERE machine = 'web1' AND fact = 'disk.vda.scheduler'",
    );
    assert_eq!(answer.trim(), "none mq-deadline|1|t");
    assert_eq!(
        server.sql(
            "postgres",
            "SELECT count(*) FROM assay.findings WHERE rule LIKE '%@%'"
        ),
        "0"
    );
}

#[test]
fn the_columns_in_sqlite_are_those_that_are_described() {
    let dir = tempfile::tempdir().unwrap();
    let path = old(dir.path(), V5);
    drop(Store::open(&path).unwrap());
    let connection = rusqlite::Connection::open(&path).unwrap();
    for table in &TABLES {
        let statement = connection.prepare(&format!("SELECT * FROM {}", table.name));
        let statement = statement.unwrap();
        let wanted: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
        assert_eq!(statement.column_names().collect::<Vec<_>>(), wanted);
    }
    // Metrics are numbered in the order of the list.
    let mut statement = connection
        .prepare("SELECT name, unit FROM metric ORDER BY id")
        .unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    let rows: Vec<(String, String)> = rows.unwrap().map(Result::unwrap).collect();
    let directions = [
        Direction::All,
        Direction::Read,
        Direction::Write,
        Direction::Flush,
    ];
    let wanted = directions.into_iter().flat_map(|direction| {
        Quantity::ALL.map(|quantity| {
            let unit = match quantity {
                Quantity::Iops => "per_s",
                Quantity::Throughput => "bytes_per_s",
                _ => "ns",
            };
            let metric = Metric {
                direction,
                quantity,
            };
            (metric.to_string(), unit.to_owned())
        })
    });
    assert_eq!(rows, wanted.collect::<Vec<_>>());
}

fn slot(pair: u32, side: Side) -> Slot {
    serde_json::from_value(serde_json::json!({
        "pair": pair, "side": side, "read_back": "a",
        "sample": common::sample(pair * 2, 100.0),
    }))
    .unwrap()
}

/// Figures are written with each sample, and results when the record has ended.
fn written_with_each_record(url: &Path) {
    let mut store = Store::open(url).unwrap();
    let mut run = common::run(&"a1".repeat(16));
    store.create_run(&mut run).unwrap();
    let count = |store: &Store, table_name: &str, of: &str| {
        store.table_rows(table(table_name), of).unwrap().len()
    };
    assert_eq!(count(&store, "runs", &run.uid), 1);
    assert_eq!(count(&store, "disks", &run.uid), 1);
    store.add_sample(run.id, &common::sample(0, 7.0)).unwrap();
    let figures = count(&store, "figures", &run.uid);
    assert!(figures > 5);
    // A sample of the same slot replaces the earlier one.
    store.add_sample(run.id, &common::sample(0, 8.0)).unwrap();
    assert_eq!(count(&store, "figures", &run.uid), figures);
    let validity = |store: &Store, uid: &str| {
        let at = table("figures")
            .columns
            .iter()
            .position(|one| one.name == "validity");
        store.table_rows(table("figures"), uid).unwrap()[0][at.unwrap()].clone()
    };
    assert_eq!(validity(&store, &run.uid), Value::None);
    let ended = jiff::Timestamp::from_second(1_800_000_060).unwrap();
    store.finish(run.id, RunState::Complete, ended).unwrap();
    assert_ne!(validity(&store, &run.uid), Value::None);
    let mut trial = common::trial(&"a2".repeat(16));
    store.create_trial(&mut trial).unwrap();
    for side in [Side::Changed, Side::Now] {
        store.add_slot(trial.id, &slot(1, side)).unwrap();
    }
    assert_eq!(count(&store, "figures", &trial.uid), 2 * figures);
    let verdict = |store: &Store| {
        let at = table("trials")
            .columns
            .iter()
            .position(|one| one.name == "verdict");
        store.table_rows(table("trials"), &trial.uid).unwrap()[0][at.unwrap()].clone()
    };
    assert_eq!(verdict(&store), Value::None);
    trial.state = TrialState::Stopped;
    trial.ended = Some(ended);
    store.update_trial(&trial).unwrap();
    assert_ne!(verdict(&store), Value::None);
    store.delete_run(run.id).unwrap();
    for table in ["runs", "disks", "figures"] {
        assert_eq!(count(&store, table, &run.uid), 0, "{table}");
    }
}

#[test]
fn rows_are_written_with_each_record() {
    let dir = tempfile::tempdir().unwrap();
    written_with_each_record(&dir.path().join("s.db"));
    if let Some(server) = Postgres::start() {
        written_with_each_record(&server.url("postgres"));
    }
}

/// A damaged sample does not affect the other samples.
#[test]
fn a_damaged_record_has_no_rows_and_the_others_have() {
    let dir = tempfile::tempdir().unwrap();
    let path = old(dir.path(), V5);
    let connection = rusqlite::Connection::open(&path).unwrap();
    let damage = "UPDATE sample SET body = x'00' WHERE run = 1 AND slot = 0";
    connection.execute(damage, []).unwrap();
    drop(connection);
    let store = Store::open(&path).unwrap();
    let rows = all(&store);
    assert_eq!((count(&rows, "runs"), count(&rows, "trials")), (8, 3));
    let figures = |id: i64| {
        let run = store.run(assay_model::RunId(id)).unwrap();
        store.table_rows(table("figures"), &run.uid).unwrap().len()
    };
    assert!(figures(1) == 0 && figures(2) > 0);
    // The damaged record can still be written to.
    let mut store = store;
    let run = store.run(assay_model::RunId(1)).unwrap();
    store.update_run(&run).unwrap();
}

/// The queries of the book run in both databases. They return the same number of rows, at least one.
#[test]
fn the_queries_of_the_book_give_rows() {
    use assay_store::{About, SpanSurvey, SpanValue};
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/store-schema.md");
    let page = std::fs::read_to_string(page).unwrap();
    let blocks = page.split("```sql\n").skip(1);
    let queries: Vec<&str> = blocks
        .map(|part| part.split("```").next().unwrap())
        .collect();
    assert!(queries.len() >= 5, "{queries:?}");
    let dir = tempfile::tempdir().unwrap();
    let path = old(dir.path(), V5);
    let mut store = Store::open(&path).unwrap();
    for (host, kernel) in [("box1", "6.1.0"), ("box2", "6.12.1"), ("box3", "6.1.0")] {
        let key = (About::Fact, "kernel.release".to_owned());
        let look = SpanSurvey {
            host,
            at: jiff::Timestamp::from_second(1_900_000_000).unwrap(),
            scope: "test",
            seen: [(key, SpanValue::Value(format!("\"{kernel}\"")))].into(),
            lost: Vec::new(),
        };
        store.look(&look).unwrap();
    }
    let server = Postgres::start();
    if let Some(server) = &server {
        let mut there = Store::open(&server.url("postgres")).unwrap();
        merge(&store, &mut there, &mut |_, _| true).unwrap();
    }
    let connection = rusqlite::Connection::open_in_memory().unwrap();
    let path = path.to_str().unwrap();
    connection.execute("ATTACH ?1 AS assay", [path]).unwrap();
    for query in queries {
        let mut statement = connection.prepare(query).unwrap();
        let mut rows = statement.query([]).unwrap();
        let mut count = 0;
        while rows.next().unwrap().is_some() {
            count += 1;
        }
        assert!(count > 0, "{query}");
        if let Some(server) = &server {
            let found = server.sql("postgres", query);
            assert_eq!(found.lines().count(), count, "{query}: {found}");
        }
    }
}

/// The page of the book must list each table with its columns, in order, and with their types.
#[test]
fn the_page_of_the_book_describes_every_column() {
    use assay_store::tables::Kind;
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/store-schema.md");
    let page = std::fs::read_to_string(page).unwrap();
    for table in &TABLES {
        let (_, part) = page.split_once(&format!("\n## {}\n", table.name)).unwrap();
        let part = part.split("\n## ").next().unwrap();
        let found: Vec<String> = part
            .lines()
            .filter_map(|line| line.strip_prefix("| `"))
            .map(|line| {
                let mut cells = line.split(" | ");
                let name = cells.next().unwrap().trim_end_matches('`');
                format!("{name} {}", cells.next().unwrap())
            })
            .collect();
        let wanted = table.columns.iter().map(|column| {
            let kind = match column.kind {
                Kind::Text => "text",
                Kind::Int => "integer",
                Kind::Float => "number",
                Kind::Flag => "yes/no",
                Kind::Time => "time",
            };
            let optional = if column.optional { "?" } else { "" };
            format!("{} {kind}{optional}", column.name)
        });
        assert_eq!(found, wanted.collect::<Vec<_>>(), "{}", table.name);
    }
}
