//! The pages of the book say what the catalogue says. `ASSAY_WRITE_BOOK=1 cargo test -p
//! assay-advice --test book` writes them.
#![allow(
    clippy::disallowed_methods,
    reason = "reads and writes docs/src/advice"
)]

use assay_advice::{Catalogue, book};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src")
}

fn files(dir: &Path, below: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, below, found);
        } else {
            let name = path.strip_prefix(below).unwrap();
            found.insert(name.to_str().unwrap().to_owned());
        }
    }
}

#[test]
fn the_book_is_up_to_date() {
    let catalogue = Catalogue::builtin().unwrap();
    let pages = book::pages(&catalogue);
    let dir = docs().join("advice");
    if std::env::var_os("ASSAY_WRITE_BOOK").is_some() {
        for (name, text) in &pages {
            let path = dir.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    }
    for (name, text) in &pages {
        let found = std::fs::read_to_string(dir.join(name)).unwrap_or_default();
        assert!(
            found == *text,
            "docs/src/advice/{name} is out of date: ASSAY_WRITE_BOOK=1 cargo test -p assay-advice --test book"
        );
    }
    let mut found = BTreeSet::new();
    files(&dir, &dir, &mut found);
    let expected: BTreeSet<String> = pages.into_iter().map(|(name, _)| name).collect();
    assert_eq!(found, expected);
}

#[test]
fn the_summary_lists_every_page() {
    let catalogue = Catalogue::builtin().unwrap();
    let summary = std::fs::read_to_string(docs().join("SUMMARY.md")).unwrap();
    if !summary.contains("(advice/README.md)") {
        return;
    }
    let lines = book::summary(&catalogue);
    let missing: Vec<&String> = lines
        .iter()
        .filter(|line| !summary.contains(line.trim_start()))
        .collect();
    assert!(
        missing.is_empty(),
        "docs/src/SUMMARY.md lacks:\n{missing:#?}"
    );
}
