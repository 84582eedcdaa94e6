//! Output for packages and the book agrees with the binary.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

fn assay(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
    command.args(args);
    command
}

fn text(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the files of `assay dev KIND` by name.
fn written(kind: &str) -> BTreeMap<String, String> {
    let dir = tempfile::tempdir().unwrap();
    text(&mut assay(&["dev", kind, dir.path().to_str().unwrap()]));
    files(dir.path())
}

fn files(dir: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(dir).unwrap().map(Result::unwrap);
    entries
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read_to_string(entry.path()).unwrap())
        })
        .collect()
}

/// Returns all `--flags` at the start of a line, or after a short option there.
fn flags(text: &str) -> BTreeSet<String> {
    let starts = text.lines().filter_map(|line| {
        let line = line.trim_start();
        let long = match line.strip_prefix('-') {
            Some(rest) if rest.as_bytes().get(1) == Some(&b',') => rest.get(2..)?.trim_start(),
            _ => line,
        };
        let name = long.strip_prefix("--")?;
        let end = name.find(|char: char| !char.is_ascii_alphanumeric() && char != '-');
        Some(name[..end.unwrap_or(name.len())].to_owned())
    });
    starts.collect()
}

/// Converts troff to plain text: `\fB\-\-json\fR`.
fn plain(man: &str) -> String {
    let mut plain = man.replace("\\-", "-");
    for font in ["\\fB", "\\fI", "\\fR"] {
        plain = plain.replace(font, "");
    }
    plain
}

#[test]
fn the_books_pages_are_what_the_binary_writes() {
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/commands");
    let (committed, written) = (files(&book), written("book"));
    let differs: BTreeSet<_> = committed
        .iter()
        .chain(&written)
        .filter(|(name, _)| committed.get(*name) != written.get(*name))
        .map(|(name, _)| name)
        .collect();
    assert!(
        differs.is_empty(),
        "{differs:?} differ: `assay dev book docs/src/commands` writes them"
    );
    let summary = fs::read_to_string(book.join("../SUMMARY.md")).unwrap();
    for name in committed.keys() {
        assert!(summary.contains(&format!("(commands/{name})")), "{name}");
    }
}

#[test]
fn help_man_pages_and_completions_know_the_same_flags() {
    let pages = written("man");
    assert!(pages.len() > 40);
    for (name, page) in pages {
        let page = plain(&page);
        let synopsis = page.split_once(".SH SYNOPSIS\n").unwrap().1;
        let words = synopsis.split(['[', '<', '\n']).next().unwrap();
        let words: Vec<&str> = words.split_whitespace().skip(1).collect();
        let help = flags(&text(assay(&words).arg("--help")));
        assert!(help.contains("help"), "{name}");
        let man = flags(&page);
        assert_eq!(man, help, "{name}");
        let mut asked = assay(&["--", "assay"]);
        asked.args(&words).arg("--");
        asked.envs([("COMPLETE", "bash"), ("_CLAP_IFS", "\n")]);
        asked.env("_CLAP_COMPLETE_INDEX", (words.len() + 1).to_string());
        assert_eq!(flags(&text(&mut asked)), help, "{name}");
    }
}

#[test]
fn a_shell_is_told_the_names_of_plans_and_advice() {
    for (words, expected) in [
        (["run", "qu"], "quick"),
        (["trial", "qcow2-cl"], "qcow2-cluster-size"),
        (["advice", "noat"], "noatime"),
        (["study", "kvm-c"], "kvm-cache-modes"),
    ] {
        let mut asked = assay(&["--", "assay"]);
        asked.args(words);
        asked.envs([("COMPLETE", "bash"), ("_CLAP_IFS", "\n")]);
        asked.env("_CLAP_COMPLETE_INDEX", "2");
        let answer = text(&mut asked);
        assert!(answer.lines().any(|line| line == expected), "{answer}");
    }
}
