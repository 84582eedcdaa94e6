//! Finds lines of servers and system files that admit everybody, or that switch the check of a server's certificate
//! off. Each fact is one boolean property with the place of the line, never a name or an address.

mod application_servers;
mod authoritative;
mod clickhouse;
mod containers;
mod data_stores;
mod directory;
mod directory_databases;
mod file_servers;
mod management;
mod monitors;
mod network;
mod realms;
mod remote_commands;
mod resolvers;
mod screens;
mod small_services;
mod system;
mod tunnels;
mod wireless;

use super::lines_of_files::{Line, note};
use crate::gather::{Gather, lossy};
use assay_model::{FactKind, FactPlace};
use serde_json::Value;
use std::path::Path;

/// Maximum number of files that are read in one directory.
const MOST: usize = 500;

pub(super) fn collect(g: &mut Gather<'_>) {
    directory::collect(g);
    network::collect(g);
    screens::collect(g);
    system::collect(g);
    containers::collect(g);
    data_stores::collect(g);
    clickhouse::collect(g);
    file_servers::collect(g);
    tunnels::collect(g);
    wireless::collect(g);
    application_servers::collect(g);
    management::collect(g);
    resolvers::collect(g);
    directory_databases::collect(g);
    realms::collect(g);
    monitors::collect(g);
    authoritative::collect(g);
    small_services::collect(g);
    remote_commands::collect(g);
}

/// The facts about one kind of line.
struct Lines {
    kind: &'static str,
    property: &'static str,
    count: usize,
}

impl Lines {
    fn of(kind: &'static str, property: &'static str) -> Self {
        let count = 0;
        Self {
            kind,
            property,
            count,
        }
    }

    /// Notes one line as a subject of its own, numbered from 1.
    fn add(&mut self, g: &mut Gather<'_>, value: impl Into<Value>, place: &FactPlace) {
        self.count += 1;
        let properties = [(self.property, value.into())];
        note(g, self.kind, &self.count.to_string(), place, &properties);
    }

    /// Notes one line that cannot be judged.
    fn add_unknown(&mut self, g: &mut Gather<'_>, reason: &str, place: &FactPlace) {
        self.count += 1;
        let number = self.count.to_string();
        let fact = format!("{}.{number}.{}", self.kind, self.property);
        g.facts
            .unknown(fact, reason, FactKind::Configured, place.clone());
        g.about([self.kind, number.as_str()]);
    }
}

/// Returns the text of a line without indentation; `None` for a blank line and a comment.
fn bare(line: &Line) -> Option<&str> {
    let text = line.text.trim();
    (!text.is_empty() && !text.starts_with(['#', ';'])).then_some(text)
}

/// Returns the words of a line in lower case, without quotation marks; an equals sign separates words.
fn words(line: &Line) -> Vec<String> {
    let text = bare(line).unwrap_or_default();
    text.split(|letter: char| letter.is_whitespace() || letter == '=')
        .map(|word| {
            word.trim_matches(['"', '\'', ',', ';'])
                .to_ascii_lowercase()
        })
        .filter(|word| !word.is_empty())
        .collect()
}

/// Returns the paths `DIR/NAME/REST` of all NAMEs in a directory.
fn each_in(g: &Gather<'_>, dir: &str, rest: &str) -> Vec<String> {
    let names = g.host.list(Path::new(dir)).unwrap_or_default();
    let mut names: Vec<String> = names.iter().map(|name| lossy(name)).collect();
    names.sort();
    names.truncate(MOST);
    let paths = names.iter().map(|name| format!("{dir}/{name}/{rest}"));
    paths
        .filter(|path| g.host.exists(Path::new(path)).unwrap_or(false))
        .collect()
}

/// Whether a list of networks contains the whole Internet.
fn holds_world(list: &str) -> bool {
    list.split([',', ' ', '[', ']', '"']).any(|one| {
        let one = one.trim();
        ["0.0.0.0/0", "::/0", "*", "0.0.0.0/1", "128.0.0.0/1"].contains(&one)
    })
}

/// Runs all collectors on these files, and returns the keys of the facts that are true, with their lines.
#[cfg(test)]
fn holds(files: &[(&str, &str)]) -> Vec<String> {
    let host = files
        .iter()
        .fold(assay_host::Recorded::new(), |host, (path, text)| {
            host.file(path, *text)
        });
    let mut g = Gather::new(&host);
    collect(&mut g);
    let all = g.facts.map.iter();
    all.filter(|(key, _)| g.facts.get(key) == Some(&true.into()))
        .map(|(key, fact)| format!("{key} {}", fact.place.line().unwrap_or(0)))
        .collect()
}
