//! The book's pages must equal the catalogue. `ASSAY_WRITE_BOOK=1 cargo test -p assay-advice --test book` writes the
//! pages.
#![allow(
    clippy::disallowed_methods,
    reason = "reads and writes docs/src/advice"
)]

use assay_advice::book::{Example, Examples};
use assay_advice::{Applicability, Catalogue, applies, book, page, resolve};
use assay_model::{FactKind, Facts};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Name of the page that is written by hand.
const WRITTEN: &str = "writing.md";

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src")
}

/// Returns the list of reports. Checks that all files are in the list, and that the pages of all reports exist.
fn examples(catalogue: &Catalogue) -> Vec<Example> {
    let dir = docs().join("../examples");
    let text = std::fs::read_to_string(dir.join("index.toml")).unwrap();
    let listed = toml::from_str::<Examples>(&text).unwrap().example;
    for id in listed.iter().flat_map(|example| &example.advice) {
        assert!(catalogue.get(id).is_ok(), "docs/examples/index.toml: {id}");
    }
    let mut found = BTreeSet::new();
    files(&dir, &dir, &mut found);
    found.remove("index.toml");
    let named: BTreeSet<String> = listed.iter().map(|example| example.file.clone()).collect();
    assert_eq!(named, found, "docs/examples/index.toml lists what is there");
    listed
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
    let examples = examples(&catalogue);
    let pages = book::pages(&catalogue, &examples);
    let dir = docs().join("advice");
    let (list, listed) = (
        docs().join("examples.md"),
        book::examples(&catalogue, &examples),
    );
    if std::env::var_os("ASSAY_WRITE_BOOK").is_some() {
        std::fs::write(&list, &listed).unwrap();
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
    let found = std::fs::read_to_string(&list).unwrap_or_default();
    assert!(found == listed, "docs/src/examples.md is out of date");
    let mut found = BTreeSet::new();
    files(&dir, &dir, &mut found);
    let mut expected: BTreeSet<String> = pages.into_iter().map(|(name, _)| name).collect();
    expected.insert(WRITTEN.to_owned());
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

#[test]
fn the_example_of_how_to_write_one_is_a_page() {
    let text = std::fs::read_to_string(docs().join("advice").join(WRITTEN)).unwrap();
    let example = text.split("```text\n").nth(1).unwrap();
    let example = example.split("```").next().unwrap();
    let advice = page::parse("kernel/swappiness.md", example).unwrap_or_else(|e| panic!("{e}"));
    let spec = resolve(&advice, &BTreeMap::new(), Some("/srv"), None);
    assert_eq!(spec.unwrap().slot_seconds, 5.0);
    let mut facts = Facts::default();
    let source = "/proc/sys/vm/swappiness";
    facts.known("sysctl.vm.swappiness", 60, FactKind::Runtime, source);
    let said = applies(&advice, &facts, None, &BTreeMap::new(), None);
    assert!(matches!(said, Applicability::Applies { .. }), "{said:?}");
}

/// The book names how many questions have a fix.
#[test]
fn the_share_of_questions_with_a_fix_is_counted() {
    let catalogue = Catalogue::builtin().unwrap();
    let all = catalogue.all();
    let checks = all.iter().filter_map(|page| page.check.as_ref());
    let has_edits = |check: &&assay_model::finding::Check| {
        let remedy = check.remedy.as_ref();
        remedy.is_some_and(|remedy| !remedy.edits.is_empty())
    };
    let (asked, fixed) = (checks.clone().count(), checks.filter(has_edits).count());
    let figures = format!(
        "{fixed} of the {asked} questions ({} %)",
        (fixed * 100 + asked / 2) / asked
    );
    let chapter = std::fs::read_to_string(docs().join("check.md")).unwrap();
    assert!(chapter.contains(&figures), "docs/src/check.md: {figures}");
}
