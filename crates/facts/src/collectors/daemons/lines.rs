//! Splits lines of configuration files into words, and notes facts with the place of their line.

use crate::gather::{Gather, lossy};
use assay_model::{FactKind, FactPlace};
use serde_json::Value;

/// Maximum number of files that are read in one directory.
const MOST: usize = 200;

/// A line that is not a comment: its words in lower case, its file and its line number.
#[derive(Clone)]
pub(super) struct Line {
    pub(super) words: Vec<String>,
    pub(super) text: String,
    pub(super) place: FactPlace,
}

impl Line {
    pub(super) fn first(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    pub(super) fn rest(&self) -> impl Iterator<Item = &str> {
        self.words.iter().skip(1).map(String::as_str)
    }
}

/// Reads the lines of a file without comments. If the file cannot be read, notes `key` as unknown.
pub(super) fn read(g: &mut Gather<'_>, key: &str, path: &str, comments: &[char]) -> Vec<Line> {
    let text = g.read(key, path).unwrap_or_default();
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let bare = line.trim();
        if bare.is_empty() || bare.starts_with(comments) {
            continue;
        }
        let words = bare.split(" #").next().unwrap_or_default();
        let separates = |letter: char| letter.is_whitespace() || "=;\"',()".contains(letter);
        let words = words.split(separates).filter(|word| !word.is_empty());
        lines.push(Line {
            words: words.map(str::to_lowercase).collect(),
            text: bare.to_owned(),
            place: at_line(path, number + 1),
        });
    }
    lines
}

/// Returns the place of a whole line, for facts without a column.
pub(crate) fn at_line(path: &str, line: usize) -> FactPlace {
    FactPlace::File {
        path: path.to_owned(),
        line: Some(line),
        span: None,
    }
}

/// Returns the sorted paths of the files in a directory whose names have one of the endings `ends`.
pub(super) fn files(g: &mut Gather<'_>, key: &str, dir: &str, ends: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = g.list(key, dir).iter().map(|name| lossy(name)).collect();
    names.retain(|name| !name.starts_with('.') && ends.iter().any(|end| name.ends_with(end)));
    names.sort();
    names.truncate(MOST);
    names.iter().map(|name| format!("{dir}/{name}")).collect()
}

/// Notes a property of a subject, such as one server or one section.
pub(super) fn note(
    g: &mut Gather<'_>,
    (kind, which): (&str, &str),
    name: &str,
    value: impl Into<Value>,
    place: &FactPlace,
) {
    let fact = format!("{kind}.{which}.{name}");
    g.facts
        .known(fact, value, FactKind::Configured, place.clone());
    g.about([kind, which]);
}

/// Returns whether an address is reachable only from this machine. The address may be followed by a port.
pub(crate) fn is_loopback(address: &str) -> bool {
    let bare = address
        .trim_start_matches(['-', '['])
        .trim_start_matches("udp:")
        .trim_start_matches("tcp:")
        .trim_start_matches("http://")
        .trim_start_matches("https://");
    bare.starts_with("127.") || bare.starts_with("localhost") || bare.starts_with("::1")
}

/// Returns whether a network is the whole Internet, such as `0.0.0.0/0`.
pub(crate) fn is_world(network: &str) -> bool {
    matches!(
        network,
        "*" | "any" | "all" | "default" | "0.0.0.0/0" | "::/0" | "0/0" | "0.0.0.0/0.0.0.0"
    )
}
