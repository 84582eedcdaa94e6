//! Tests the conventions of this repository that a program can check: names of files, types and pages, and lengths of
//! lines.
//!
//! The lists of exceptions can only become shorter: an entry that is no longer needed fails the test.
#![allow(
    clippy::disallowed_methods,
    reason = "reads the sources of the workspace"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// File stems that do not describe the content of the file.
const BANNED_STEMS: &[&str] = &[
    "astray", "before", "each", "from", "ground", "here", "how", "kept", "known", "look", "manner",
    "often", "one", "other", "ours", "own", "place", "said", "say", "seen", "several", "shown",
    "standing", "tell", "there", "thing", "things", "told", "up", "way", "what", "words", "worlds",
];

/// Existing files whose stem is one of these.
const KEPT_STEMS: &[&str] = &[];

/// Existing files with the name `mod.rs`. cargo requires this name in tests. The other file is included by path from
/// another crate.
const KEPT_MOD_RS: &[&str] = &["crates/changes/src/side_by_side/nbd/mod.rs"];

/// Names of public types that more than two crates use for different things.
const SHARED_TYPE_NAMES: &[&str] = &[];

/// Words that comments must not contain, because they belong to stories, or because a plain word says the same.
const RETIRED_IN_COMMENTS: [&str; 13] = [
    "coins",
    "fortunes",
    "give back",
    "let go",
    "lying about",
    "meanwhile",
    "mend",
    "mended",
    "set back",
    "taken back",
    "thrown",
    "told",
    "whoever",
];

/// Number of existing lines with more than 120 columns.
const LONG_LINES: usize = 535;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the paths of the files with this extension in `crates/*/src` or in another directory of the workspace,
/// relative to the root of the workspace.
fn files_below(directory: &str, extension: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![root().join(directory)];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).expect("a directory of the workspace") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                if !path.ends_with("fixtures") && !path.ends_with("target") {
                    open.push(path);
                }
            } else if path.extension().is_some_and(|found| found == extension) {
                let relative = path.strip_prefix(root()).expect("below the root");
                found.push(relative.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect(path)
}

fn stem(path: &str) -> &str {
    Path::new(path)
        .file_stem()
        .and_then(|stem| stem.to_str())
        .expect("a name")
}

/// Compares the found items with the permitted items. Fails if an item is missing in one of the two sets.
fn assert_same<T: Ord + std::fmt::Debug>(rule: &str, found: BTreeSet<T>, allowed: BTreeSet<T>) {
    let new: Vec<_> = found.difference(&allowed).collect();
    let gone: Vec<_> = allowed.difference(&found).collect();
    assert!(new.is_empty(), "{rule}: {new:#?}");
    assert!(
        gone.is_empty(),
        "{rule}: remove from the list of exceptions: {gone:#?}"
    );
}

#[test]
fn files_are_named_after_their_content() {
    let found = files_below("crates", "rs")
        .into_iter()
        .filter(|path| path.contains("/src/") && BANNED_STEMS.contains(&stem(path)))
        .collect();
    let allowed = KEPT_STEMS.iter().map(|&path| path.to_owned()).collect();
    assert_same("a file whose name says nothing", found, allowed);
}

#[test]
fn modules_have_no_mod_rs() {
    let found = files_below("crates", "rs")
        .into_iter()
        .filter(|path| path.contains("/src/") && stem(path) == "mod")
        .collect();
    let allowed = KEPT_MOD_RS.iter().map(|&path| path.to_owned()).collect();
    assert_same("foo.rs and foo/ instead of foo/mod.rs", found, allowed);
}

/// Returns the words of a comment line in lower case, without code in backticks. Each word has a space before and after
/// it. Returns `None` for a line that is not a comment.
fn comment_words(line: &str) -> Option<String> {
    let comment = line.trim_start().strip_prefix("//")?;
    let prose: String = comment.split('`').step_by(2).collect();
    let words: Vec<String> = prose
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    Some(format!(" {} ", words.join(" ")))
}

#[test]
fn comments_use_no_retired_words() {
    let mut found = Vec::new();
    for path in files_below("crates", "rs") {
        for (number, line) in read(&path).lines().enumerate() {
            let words = comment_words(line).unwrap_or_default();
            let retired = RETIRED_IN_COMMENTS
                .iter()
                .filter(|word| words.contains(&format!(" {word} ")));
            found.extend(retired.map(|word| format!("{path}:{}: {word}", number + 1)));
        }
    }
    assert!(found.is_empty(), "retired words in comments: {found:#?}");
}

#[test]
fn lines_have_at_most_120_columns() {
    let long = |path: &String| {
        read(path)
            .lines()
            .filter(|line| line.chars().count() > 120)
            .count()
    };
    let found: usize = files_below("crates", "rs").iter().map(long).sum();
    assert!(
        found <= LONG_LINES,
        "{} lines of more than 120 columns are new",
        found - LONG_LINES
    );
    assert_eq!(found, LONG_LINES, "fewer than allowed: lower LONG_LINES");
}

/// Returns the name of the public type that a line declares; `None` if it declares none.
fn public_type(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub ")?;
    let rest = ["struct ", "enum ", "trait ", "type "]
        .iter()
        .find_map(|kind| rest.strip_prefix(kind))?;
    let end = rest
        .find(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .unwrap_or(rest.len());
    Some(&rest[..end])
}

#[test]
fn a_public_type_name_has_one_meaning() {
    let mut crates: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in files_below("crates", "rs") {
        let mut parts = path.split('/').skip(1);
        let (Some(name), Some("src")) = (parts.next(), parts.next()) else {
            continue;
        };
        for declared in read(&path).lines().filter_map(public_type) {
            crates
                .entry(declared.to_owned())
                .or_default()
                .insert(name.to_owned());
        }
    }
    let found = crates
        .into_iter()
        .filter(|(_, crates)| crates.len() > 2)
        .map(|(name, _)| name)
        .collect();
    let allowed = SHARED_TYPE_NAMES
        .iter()
        .map(|&name| name.to_owned())
        .collect();
    assert_same("a public type name in more than two crates", found, allowed);
}

/// rustdoc parses a whole crate before it finds no example, so crates without examples switch doc tests off.
#[test]
fn examples_are_tested() {
    let examples = |path: &str| {
        let text = read(path);
        let lines = text.lines().map(str::trim_start);
        let comments =
            lines.filter_map(|line| line.strip_prefix("///").or(line.strip_prefix("//!")));
        // Each fence that begins a block is followed by one that ends it.
        let mut fences = comments.filter_map(|line| line.trim_start().strip_prefix("```"));
        let mut found = false;
        while let (Some(language), Some(_)) = (fences.next(), fences.next()) {
            found |= !["text", "toml"].contains(&language);
        }
        found
    };
    let with_examples: BTreeSet<String> = files_below("crates", "rs")
        .into_iter()
        .filter(|path| path.contains("/src/") && examples(path))
        .filter_map(|path| path.split('/').nth(1).map(str::to_owned))
        .collect();
    let tested: BTreeSet<String> = files_below("crates", "rs")
        .into_iter()
        .filter_map(|path| path.strip_suffix("/src/lib.rs").map(str::to_owned))
        .filter(|directory| !read(&format!("{directory}/Cargo.toml")).contains("doctest = false"))
        .filter_map(|directory| directory.split('/').nth(1).map(str::to_owned))
        .collect();
    assert_eq!(
        with_examples, tested,
        "crates with examples, and crates whose doc tests are on"
    );
}

#[test]
fn titles_of_advice_are_unique() {
    let mut titles: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in files_below("advice", "md") {
        let text = read(&path);
        let title = text.lines().find_map(|line| line.strip_prefix("title = "));
        if let Some(title) = title {
            titles.entry(title.to_owned()).or_default().push(path);
        }
    }
    assert!(!titles.is_empty(), "pages of advice have titles");
    let twice: Vec<_> = titles
        .into_iter()
        .filter(|(_, pages)| pages.len() > 1)
        .collect();
    assert!(twice.is_empty(), "titles of several pages: {twice:#?}");
}
