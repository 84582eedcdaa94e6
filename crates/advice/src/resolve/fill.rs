//! Finds placeholders in the text of a trial, and replaces them by their values.

use super::{ResolveError, number};
use crate::nearest_name;
use assay_model::advice::{Advice, ParameterKind};
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

/// Placeholders that assay replaces before a trial. `target` is the target as the user wrote it. `mountpoint` and
/// `source` are the mount point and the mounted source of its file system (`/dev/vda2`, `tank/data`). `device` is the
/// whole block device directly below (for a partition, its disk). `disk` is the physical disk at the bottom.
pub(crate) const BUILTIN: [&str; 5] = ["target", "mountpoint", "source", "device", "disk"];

/// Placeholders that assay replaces during a trial.
pub(crate) const LATER: [&str; 5] = ["host", "port", "path", "file", "value"];

/// For each placeholder of [`LATER`], the keys in whose values the placeholder is permitted.
const LATER_IN: [(&str, &[&str]); 5] = [
    ("host", &["argv"]),
    ("port", &["argv"]),
    ("path", &["argv"]),
    ("file", &["validate"]),
    ("value", &["apply", "undo"]),
];

/// Returns the names of all placeholders in a table.
pub(crate) fn placeholders(table: &Table) -> BTreeSet<String> {
    fn walk(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::String(text) => {
                found.extend(pieces(text).into_iter().filter_map(|piece| match piece {
                    Piece::Name(name) => Some(name.to_owned()),
                    Piece::Text(_) => None,
                }))
            }
            Value::Array(items) => items.iter().for_each(|item| walk(item, found)),
            Value::Table(table) => table.values().for_each(|item| walk(item, found)),
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    table.values().for_each(|value| walk(value, &mut found));
    found
}

/// A part of a text: a placeholder or ordinary text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Text(&'a str),
    Name(&'a str),
}

/// Splits a text at its placeholders. Braces around a text that is not a name are ordinary text.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut from = 0;
    let mut at = 0;
    while let Some(open) = text[at..].find('{').map(|found| at + found) {
        let after = &text[open + 1..];
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
        let end = after.find(|c| !good(c)).unwrap_or(after.len());
        if end > 0 && after[end..].starts_with('}') {
            if from < open {
                pieces.push(Piece::Text(&text[from..open]));
            }
            pieces.push(Piece::Name(&after[..end]));
            from = open + end + 2;
            at = from;
        } else {
            at = open + 1;
        }
    }
    if from < text.len() {
        pieces.push(Piece::Text(&text[from..]));
    }
    pieces
}

/// Values that replace placeholders.
pub(super) struct Fill<'a> {
    pub(super) advice: &'a Advice,
    pub(super) parameters: &'a BTreeMap<String, String>,
    pub(super) builtin: &'a BTreeMap<&'static str, String>,
}

impl Fill<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        let parameter = self.parameters.get(name);
        parameter
            .or_else(|| self.builtin.get(name))
            .map(String::as_str)
    }

    pub(super) fn value(&self, value: &Value, at: &mut Vec<String>) -> Result<Value, ResolveError> {
        Ok(match value {
            Value::String(text) => match self.whole(text) {
                Some(value) => value,
                None => Value::String(self.text(text, at)?),
            },
            Value::Array(items) => {
                let mut filled = Vec::with_capacity(items.len());
                for (number, item) in items.iter().enumerate() {
                    if let Some(words) = item.as_str().and_then(|text| self.words(text)) {
                        filled.extend(words.into_iter().map(Value::String));
                        continue;
                    }
                    at.push(number.to_string());
                    filled.push(self.value(item, at)?);
                    at.pop();
                }
                Value::Array(filled)
            }
            Value::Table(table) => {
                let mut filled = Table::new();
                for (key, item) in table {
                    at.push(key.clone());
                    filled.insert(key.clone(), self.value(item, at)?);
                    at.pop();
                }
                Value::Table(filled)
            }
            other => other.clone(),
        })
    }

    /// Returns the list of words if the text is a single placeholder whose value is a list.
    fn words(&self, text: &str) -> Option<Vec<String>> {
        let [Piece::Name(name)] = pieces(text)[..] else {
            return None;
        };
        match self.advice.parameters.get(name)?.kind {
            ParameterKind::Words => shell_words::split(self.parameters.get(name)?).ok(),
            _ => None,
        }
    }

    /// Returns the number or flag if the text is a single placeholder whose value is a number or flag.
    fn whole(&self, text: &str) -> Option<Value> {
        let [Piece::Name(name)] = pieces(text)[..] else {
            return None;
        };
        let value = self.parameters.get(name)?;
        match self.advice.parameters.get(name)?.kind {
            ParameterKind::Text | ParameterKind::Words => None,
            ParameterKind::Number => number(value),
            ParameterKind::Flag => value.parse().ok().map(Value::Boolean),
        }
    }

    pub(super) fn text(&self, text: &str, at: &[String]) -> Result<String, ResolveError> {
        let mut out = String::new();
        for piece in pieces(text) {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Name(name) => match self.get(name) {
                    Some(value) => out.push_str(value),
                    None if later(name, at) => out.push_str(&format!("{{{name}}}")),
                    None => {
                        let known = self.advice.parameters.keys().map(String::as_str);
                        return Err(ResolveError::Placeholder {
                            at: at.join("."),
                            name: name.to_owned(),
                            hint: nearest_name::hint(name, known.chain(BUILTIN).chain(LATER)),
                        });
                    }
                },
            }
        }
        Ok(out)
    }
}

/// Returns whether the placeholder is replaced during the trial: it is one of `LATER`, and it is permitted in the value
/// of the key `at`.
fn later(name: &str, at: &[String]) -> bool {
    LATER_IN
        .iter()
        .any(|(known, keys)| *known == name && keys.iter().any(|key| at.iter().any(|at| at == key)))
}
