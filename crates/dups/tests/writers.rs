//! Tests `ask` on tables of DuckDB, pyarrow and polars, and the reported differences of tables that `ask` cannot read.
//! `fixtures/writers/make.py` wrote the tables.
#![allow(
    clippy::disallowed_methods,
    reason = "tests work in directories of their own"
)]

use assay_dups::across::export_queries::{CommonFiles, ask};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/writers")
}

/// Names of the tables that begin, or do not begin, with `refused-`.
fn tables(refused: bool) -> Vec<String> {
    let names = std::fs::read_dir(folder()).unwrap().map(|entry| {
        let name = entry.unwrap().file_name();
        name.into_string().unwrap()
    });
    let wanted = |name: &String| {
        let is_table = Path::new(name)
            .extension()
            .is_some_and(|ending| ending == "parquet");
        is_table && name.starts_with("refused-") == refused
    };
    let mut names: Vec<String> = names.filter(wanted).collect();
    names.sort();
    names
}

const MACHINES: [&str; 3] = ["web1", "nas", "web2"];

/// Files of each machine and of all contents, by the rule of `make.py`.
fn counted() -> (BTreeMap<&'static str, u64>, u64, u64) {
    let mut files = BTreeMap::new();
    let (mut bytes, mut shared) = (0, 0);
    for number in 0..40_u64 {
        let has = |machine: &usize| !(number + *machine as u64).is_multiple_of(3);
        let of: Vec<usize> = (0..3).filter(has).collect();
        for machine in &of {
            *files.entry(MACHINES[*machine]).or_default() += number % 4 + 1;
            bytes += (number % 4 + 1) * (number * 1000 + 1);
        }
        shared += u64::from(of.len() > 1);
    }
    (files, bytes, shared)
}

fn agrees(answer: &CommonFiles, name: &str) {
    let (files, bytes, shared) = counted();
    assert_eq!(answer.problems, [""; 0], "{name}");
    let found: BTreeMap<&str, u64> = answer
        .machines
        .iter()
        .map(|one| (one.name.as_str(), one.files))
        .collect();
    assert_eq!(found, files, "{name}");
    assert_eq!(
        (answer.bytes, answer.contents, answer.shared_groups),
        (bytes, 40, shared),
        "{name}"
    );
}

#[test]
fn tables_of_other_writers_are_read() {
    let names = tables(false);
    assert!(names.len() >= 10, "{names:?}");
    for name in &names {
        let answer = ask(&[folder().join(name)], 3, 1).unwrap();
        agrees(&answer, name);
        let hash = if name.contains("blake3") {
            "blake3"
        } else {
            "xxh3-128"
        };
        assert_eq!(answer.hash, hash, "{name}");
        assert_eq!(answer.repeated_rows, 0, "{name}");
    }
    // The same rows from several writers count once.
    let twice = ask(
        &["pyarrow.parquet", "duckdb.parquet"].map(|name| folder().join(name)),
        3,
        2,
    );
    let twice = twice.unwrap();
    agrees(&twice, "both");
    assert!(twice.repeated_rows > 0);
}

#[test]
fn what_differs_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let mut found = Vec::new();
    for name in tables(true) {
        let path = dir.path().join(&name);
        std::fs::copy(folder().join(&name), &path).unwrap();
        let problems = match ask(&[path], 3, 1) {
            Ok(answer) => answer.problems.join("\n"),
            Err(error) => error.to_string(),
        };
        found.push(assay_testing::normalize_output(
            problems,
            &[(dir.path(), "DIR")],
        ));
    }
    insta::assert_snapshot!(found.join("\n"));
}

/// A folder as `COPY … (PARTITION_BY (prefix))` writes it, and a table in the wrong folder.
#[test]
fn tables_may_stand_in_folders_of_a_prefix() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(
        folder().join("duckdb.parquet"),
        dir.path().join("all.parquet"),
    )
    .unwrap();
    agrees(&ask(&[dir.path().to_path_buf()], 3, 2).unwrap(), "a folder");
    let part = dir.path().join("prefix=a");
    std::fs::create_dir(&part).unwrap();
    std::fs::rename(dir.path().join("all.parquet"), part.join("data_0.parquet")).unwrap();
    let error = ask(&[dir.path().to_path_buf()], 3, 1)
        .unwrap_err()
        .to_string();
    assert!(error.contains("data_0.parquet"), "{error}");
}

/// A machine without files of the wanted size: tables without rows, of pyarrow and of DuckDB.
#[test]
fn an_empty_table_has_no_files() {
    for name in ["pyarrow", "duckdb"] {
        let empty = folder().join(format!("empty/{name}.parquet"));
        let answer = ask(std::slice::from_ref(&empty), 3, 1).unwrap();
        assert_eq!(answer.problems, [""; 0], "{name}");
        assert_eq!((answer.contents, answer.bytes), (0, 0), "{name}");
        let beside = ask(&[empty, folder().join("pyarrow-plain.parquet")], 3, 1).unwrap();
        agrees(&beside, name);
    }
}
