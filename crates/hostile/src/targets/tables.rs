//! Tables of duplicates that come from other machines, as Parquet.

use crate::Target;
use assay_columns::{Batch, Cell, Column, Kind, Reader, Source, Writer};
use assay_dups::across::wanted::Wanted;
use assay_dups::across::{columns, rows};
use std::path::Path;

pub(super) fn targets() -> Vec<Target> {
    vec![
        Target {
            name: "dups-export",
            seeds: [(16, "xxh3-128"), (32, "blake3")]
                .map(|(length, hash)| export(length, hash))
                .to_vec(),
            run: |bytes| drop(rows(Source::memory(bytes.to_vec()), Path::new("it"), "0")),
        },
        Target {
            name: "dups-wanted",
            seeds: vec![wanted()],
            run: |bytes| {
                drop(Wanted::of(
                    Source::memory(bytes.to_vec()),
                    Path::new("it"),
                    None,
                ));
            },
        },
        Target {
            name: "columns",
            seeds: vec![table()],
            run: |bytes| {
                let Ok(mut reader) = Reader::open(Source::memory(bytes.to_vec()), &COLUMNS) else {
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

/// Every kind of column.
const COLUMNS: [Column; 5] = [
    Column::new("text", Kind::Text),
    Column::new("fixed", Kind::Fixed(3)),
    Column::new("count", Kind::Count),
    Column::new("time", Kind::Time),
    Column::new("float", Kind::Float),
];

fn notes(pairs: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    let version = ("version", "1");
    let pairs = pairs.iter().chain([&version]);
    pairs
        .map(|(name, value)| (*name, (*value).to_owned()))
        .collect()
}

fn export(length: usize, hash: &str) -> Vec<u8> {
    let notes = notes(&[
        ("assay", "dups"),
        ("machine", "box"),
        ("hash", hash),
        ("export", "1"),
        ("files", "1"),
    ]);
    let mut writer = Writer::new(Vec::new(), &columns(length), &notes).expect("into memory");
    for number in 0..40_u8 {
        let hash = vec![number / 4; length];
        let (size, count) = (i64::from(number), i64::from(number % 3 + 1));
        let row = [
            Cell::Text("box"),
            Cell::Fixed(&hash),
            Cell::Int(size),
            Cell::Int(count),
        ];
        writer.row(&row).expect("it fits");
    }
    writer.finish().expect("into memory")
}

fn wanted() -> Vec<u8> {
    let columns = [
        Column::new("size", Kind::Int),
        Column::new("sample", Kind::Fixed(8)),
        Column::new("count", Kind::Count),
    ];
    let notes = notes(&[("assay", "dups-wanted"), ("machine", "box"), ("id", "1")]);
    let mut writer = Writer::new(Vec::new(), &columns, &notes).expect("into memory");
    for number in 0..40_u8 {
        let row = [
            Cell::Int(i64::from(number / 2)),
            Cell::Fixed(&[number; 8]),
            Cell::Int(1),
        ];
        writer.row(&row).expect("it fits");
    }
    writer.finish().expect("into memory")
}

fn table() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &COLUMNS, &notes(&[])).expect("into memory");
    for number in 0..30_u8 {
        let text = "x".repeat(usize::from(number % 5));
        let row = [
            Cell::Text(&text),
            Cell::Fixed(&[number; 3]),
            Cell::Int(i64::from(number % 4)),
            Cell::Int(i64::from(number) << 40),
            Cell::Float(f64::from(number)),
        ];
        writer.row(&row).expect("it fits");
    }
    writer.finish().expect("into memory")
}
