//! What is configured in services, as a check looks at it: what each scope says itself, with file and
//! line. What a scope inherits is said where it stands, so that one line is one finding.

pub(crate) mod lines;
pub(crate) mod nginx;
pub(crate) mod postfix;
pub(crate) mod ssh;
pub(crate) mod swap;

use crate::gather::Gather;
use assay_conf::effective::{Effective, ScopeId, Setting};
use assay_model::{FactKind, Place};
use serde_json::Value;

/// All of them.
pub(crate) fn collect(g: &mut Gather<'_>) {
    ssh::server(g);
    ssh::client(g);
    nginx::collect(g);
    postfix::collect(g);
    lines::collect(g);
    swap::collect(g);
}

/// What a key is worth to a check.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Take {
    /// The first word, with the spellings of yes and no brought together.
    Word,
    /// All words of all lines that count.
    List,
    /// The first word of each line that counts: names, without their values.
    Names,
}

/// Notes what the scope says itself for these keys, where it counts. Says whether there was anything.
fn own(
    g: &mut Gather<'_>,
    all: &Effective,
    scope: ScopeId,
    subject: &[&str],
    keys: &[(&str, Take)],
) -> bool {
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
            Take::List => ours.iter().flat_map(|said| words(said)).collect(),
            Take::Names => ours.iter().filter_map(|said| said.word()).collect(),
        };
        let fact = format!("{}.{key}", subject.join("."));
        let place = Place::from(&first.place);
        g.facts.known(fact, value, FactKind::Configured, place);
        any = true;
    }
    if any {
        g.about(subject);
    }
    any
}

/// Words between blanks, commas and colons.
fn words(said: &Setting) -> Vec<Value> {
    said.text()
        .split([' ', '\t', ',', ':'])
        .map(|word| word.trim_matches(['"', '\'']))
        .filter(|word| !word.is_empty())
        .map(Value::from)
        .collect()
}

fn yes_or_no(word: String) -> String {
    match word.to_ascii_lowercase().as_str() {
        "yes" | "true" => "yes".to_owned(),
        "no" | "false" => "no".to_owned(),
        _ => word,
    }
}
