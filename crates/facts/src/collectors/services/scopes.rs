//! Names the scopes of a configuration, and notes the settings of each scope.

use crate::gather::Gather;
use assay_config::effective::{Effective, Scope, ScopeId, Setting};
use assay_model::{FactKind, FactPlace};
use serde_json::Value;
use std::collections::BTreeMap;

/// Which part of a setting's value is noted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Take {
    /// The first word. Synonyms of yes and no are normalised.
    Word,
    /// All words of all effective lines of the keyword.
    List,
    /// The first word of each effective line: only names, without their values.
    Names,
}

/// Notes those effective settings of `keys` whose lines are in the scope itself, not in an outer scope. If there is at
/// least one, also notes the head of the scope's block.
pub(super) fn note_own_settings(
    g: &mut Gather<'_>,
    all: &Effective,
    scope: ScopeId,
    subject: &[&str],
    keys: &[(&str, Take)],
) {
    let mut any = false;
    for (key, take) in keys {
        let counts = all.get(scope, key);
        let ours: Vec<&Setting> = counts
            .into_iter()
            .filter(|said| said.scope == scope)
            .collect();
        let Some(first) = ours.first() else { continue };
        let value: Value = match take {
            Take::Word => yes_or_no(first.word().unwrap_or_default()).into(),
            Take::List => ours.iter().flat_map(|said| split_words(said)).collect(),
            Take::Names => ours.iter().filter_map(|said| said.word()).collect(),
        };
        let fact = format!("{}.{key}", subject.join("."));
        let place = FactPlace::from(&first.place);
        g.facts.known(fact, value, FactKind::Configured, place);
        any = true;
    }
    if !any {
        return;
    }
    // The scope outside of all blocks has no place.
    let at = all.scope(scope);
    let (block, place) = match at.head.first() {
        None => (EVERYWHERE, FactPlace::from(at.place.path.to_string_lossy())),
        Some(head) => (head.as_str(), FactPlace::from(&at.place)),
    };
    let key = format!("{}.block", subject.join("."));
    g.facts.known(key, block, FactKind::Configured, place);
    g.about(subject);
}

/// Splits a value into words at blanks, commas and colons.
fn split_words(said: &Setting) -> Vec<Value> {
    said.text()
        .split([' ', '\t', ',', ':'])
        .map(|word| word.trim_matches(['"', '\'']))
        .filter(|word| !word.is_empty())
        .map(Value::from)
        .collect()
}

/// Returns the names of scopes in file order. A name is `everywhere` outside of all blocks, otherwise the first word of
/// the block's head. From the second block with this word on, a number is appended (`Match-2`). A name does not change
/// when lines move within the file.
pub(crate) fn names(all: &Effective) -> Vec<(ScopeId, String)> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let name = |(id, scope): (ScopeId, &Scope)| {
        let Some(head) = scope.head.first() else {
            return (id, EVERYWHERE.to_owned());
        };
        let number = seen.entry(head.clone()).or_default();
        *number += 1;
        (id, format!("{head}-{number}"))
    };
    all.scopes().map(name).collect()
}

/// The scope outside of all blocks.
const EVERYWHERE: &str = "everywhere";

/// Words that programs read in any case, and that a check compares.
const LOWER: [&str; 13] = [
    "quiet",
    "silent",
    "fatal",
    "error",
    "info",
    "verbose",
    "off",
    "ask",
    "accept-new",
    "prohibit-password",
    "without-password",
    "forced-commands-only",
    "shosts-only",
];

/// Normalises the synonyms of yes and no, and the case of other known words and of times.
pub(super) fn yes_or_no(word: String) -> String {
    let lower = word.to_ascii_lowercase();
    match lower.as_str() {
        "yes" | "true" => "yes".to_owned(),
        "no" | "false" => "no".to_owned(),
        known if LOWER.contains(&known) || is_time(known) => lower,
        _ => word,
    }
}

/// Whether a word is a time of sshd_config(5): numbers, each with or without a unit.
pub(super) fn is_time(word: &str) -> bool {
    let mut bytes = word.bytes();
    let known = |byte: u8| byte.is_ascii_digit() || b"smhdw".contains(&byte.to_ascii_lowercase());
    word.len() <= 8 && word.starts_with(|letter: char| letter.is_ascii_digit()) && bytes.all(known)
}
