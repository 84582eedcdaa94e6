//! Splits lines of configuration files into words, and notes facts with the place of their line.

use crate::gather::{Gather, lossy};
use assay_model::{FactKind, FactPlace};
use serde_json::Value;
use std::net::IpAddr;

/// Maximum number of files that are read in one directory.
const MOST: usize = 200;

/// Last labels of names that the public DNS does not know (RFC 6762 appendix G, RFC 8375, ICANN's "internal"), or that
/// clusters use inside.
const INTERNAL: [&str; 12] = [
    "local",
    "localhost",
    "localdomain",
    "internal",
    "intranet",
    "lan",
    "home",
    "corp",
    "private",
    "arpa",
    "svc",
    "consul",
];

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

/// Returns whether a host, with or without a port, is on another network: a public address, or a name below a domain
/// of the public DNS. A variable is not.
pub(crate) fn is_abroad(host: &str) -> bool {
    let bare = host.trim_matches(['"', '\'']);
    let bare = match bare.strip_prefix('[') {
        Some(inner) => inner.split(']').next().unwrap_or_default(),
        None if bare.matches(':').count() == 1 => bare.split(':').next().unwrap_or_default(),
        None => bare,
    };
    match bare.parse::<IpAddr>() {
        Ok(IpAddr::V4(own)) => {
            let [first, second, ..] = own.octets();
            let shared = first == 100 && (64..128).contains(&second);
            !(own.is_private() || own.is_loopback() || own.is_link_local() || shared)
        }
        Ok(IpAddr::V6(own)) => {
            let first = own.segments()[0];
            !(own.is_loopback() || first & 0xfe00 == 0xfc00 || first & 0xffc0 == 0xfe80)
        }
        Err(_) => {
            let last = bare.rsplit('.').next().unwrap_or_default();
            let plain = |letter: char| letter.is_ascii_alphanumeric() || "-.".contains(letter);
            bare.contains('.')
                && bare.chars().all(plain)
                && last.starts_with(|letter: char| letter.is_ascii_alphabetic())
                && !INTERNAL.contains(&last.to_ascii_lowercase().as_str())
        }
    }
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
