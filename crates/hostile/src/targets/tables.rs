//! Targets for tables of duplicates that other machines wrote as Parquet.

use crate::ParserTarget;
use assay_columns::{Batch, CellValue, Column, ColumnKind, Reader, TableSource, TableWriter};
use assay_dups::across::requested_hashes::Wanted;
use assay_dups::across::{count_rows, export_columns};
use std::path::Path;

pub(super) fn targets() -> Vec<ParserTarget> {
    vec![
        ParserTarget {
            name: "dups-export",
            seeds: [(16, "xxh3-128"), (32, "blake3")]
                .map(|(length, hash)| export(length, hash))
                .to_vec(),
            run: |bytes| {
                drop(count_rows(
                    TableSource::memory(bytes.to_vec()),
                    Path::new("it"),
                    "0",
                ))
            },
        },
        ParserTarget {
            name: "dups-other-writers",
            seeds: [
                DUCKDB,
                DUCKDB_ZSTD,
                PYARROW,
                PYARROW_V2,
                PYARROW_PAGES,
                POLARS,
            ]
            .map(<[u8]>::to_vec)
            .to_vec(),
            run: |bytes| {
                drop(count_rows(
                    TableSource::memory(bytes.to_vec()),
                    Path::new("it"),
                    "",
                ))
            },
        },
        ParserTarget {
            name: "dups-wanted",
            seeds: vec![requested_hash_seed()],
            run: |bytes| {
                drop(Wanted::of(
                    TableSource::memory(bytes.to_vec()),
                    Path::new("it"),
                    None,
                ));
            },
        },
        ParserTarget {
            name: "columns",
            seeds: vec![table_seed()],
            run: |bytes| {
                let Ok(mut reader) = Reader::open(TableSource::memory(bytes.to_vec()), &COLUMNS)
                else {
                    return;
                };
                let (mut batch, mut rows) = (Batch::default(), 0);
                while reader.read(&mut batch).is_ok() && batch.rows > 0 {
                    rows += batch.rows as u64;
                }
                assert!(rows <= reader.rows(), "no more rows than it says");
            },
        },
    ]
}

/// Tables that other programs wrote.
const DUCKDB: &[u8] = include_bytes!("../../../dups/tests/fixtures/writers/duckdb-plain.parquet");
const DUCKDB_ZSTD: &[u8] =
    include_bytes!("../../../dups/tests/fixtures/writers/duckdb-zstd.parquet");
const PYARROW: &[u8] = include_bytes!("../../../dups/tests/fixtures/writers/pyarrow-plain.parquet");
const PYARROW_V2: &[u8] =
    include_bytes!("../../../dups/tests/fixtures/writers/pyarrow-zstd-v2.parquet");
const PYARROW_PAGES: &[u8] =
    include_bytes!("../../../dups/tests/fixtures/writers/pyarrow-pages.parquet");
const POLARS: &[u8] = include_bytes!("../../../dups/tests/fixtures/writers/polars.parquet");

/// Columns of every type.
const COLUMNS: [Column; 5] = [
    Column::new("text", ColumnKind::Text),
    Column::new("fixed", ColumnKind::Fixed(3)),
    Column::new("count", ColumnKind::Count),
    Column::new("time", ColumnKind::Time),
    Column::new("float", ColumnKind::Float),
];

fn to_notes(pairs: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    let version = ("version", "1");
    let pairs = pairs.iter().chain([&version]);
    pairs
        .map(|(name, value)| (*name, (*value).to_owned()))
        .collect()
}

fn export(length: usize, hash: &str) -> Vec<u8> {
    let notes = to_notes(&[
        ("assay", "dups"),
        ("machine", "box"),
        ("hash", hash),
        ("export", "1"),
        ("files", "1"),
    ]);
    let mut writer =
        TableWriter::new(Vec::new(), &export_columns(length), &notes).expect("into memory");
    for number in 0..40_u8 {
        let hash = vec![number / 4; length];
        let (size, count) = (i64::from(number), i64::from(number % 3 + 1));
        let row = [
            CellValue::Text("box"),
            CellValue::Fixed(&hash),
            CellValue::Int(size),
            CellValue::Int(count),
        ];
        writer.row(&row).expect("it fits");
    }
    writer.finish().expect("into memory")
}

fn requested_hash_seed() -> Vec<u8> {
    let columns = [
        Column::new("size", ColumnKind::Int),
        Column::new("sample", ColumnKind::Fixed(8)),
        Column::new("count", ColumnKind::Count),
    ];
    let notes = to_notes(&[("assay", "dups-wanted"), ("machine", "box"), ("id", "1")]);
    let mut writer = TableWriter::new(Vec::new(), &columns, &notes).expect("into memory");
    for number in 0..40_u8 {
        let row = [
            CellValue::Int(i64::from(number / 2)),
            CellValue::Fixed(&[number; 8]),
            CellValue::Int(1),
        ];
        writer.row(&row).expect("it fits");
    }
    writer.finish().expect("into memory")
}

fn table_seed() -> Vec<u8> {
    let mut writer = TableWriter::new(Vec::new(), &COLUMNS, &to_notes(&[])).expect("into memory");
    for number in 0..30_u8 {
        let text = "x".repeat(usize::from(number % 5));
        let row = [
            CellValue::Text(&text),
            CellValue::Fixed(&[number; 3]),
            CellValue::Int(i64::from(number % 4)),
            CellValue::Int(i64::from(number) << 40),
            CellValue::Float(f64::from(number)),
        ];
        writer.row(&row).expect("it fits");
    }
    writer.finish().expect("into memory")
}
