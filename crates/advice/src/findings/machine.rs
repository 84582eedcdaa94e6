//! Provides the facts of a machine as the maps that conditions use. If a source is unreadable, all properties that the
//! source could contain are unknown, not absent.

use super::Properties;
use crate::condition::{Known, Ledger, above};
use assay_model::{Fact, FactKind, FactValue, Facts, Subject};
use std::collections::BTreeMap;

/// The facts of a machine, also indexed by subject.
pub(super) struct Machine<'a> {
    pub(super) facts: &'a Facts,
    pub(super) subjects: BTreeMap<&'a Subject, Properties<'a>>,
    pub(super) all: Ledger,
}

impl<'a> Machine<'a> {
    pub(super) fn new(facts: &'a Facts) -> Self {
        let known = facts.map.iter();
        Self {
            facts,
            subjects: facts.subjects(),
            all: Ledger::new("fact", known.map(|(key, fact)| (key.clone(), value(fact)))),
        }
    }

    /// Returns the properties of a subject.
    pub(super) fn properties_of(&self, subject: Option<&Subject>) -> Properties<'a> {
        let found = subject.and_then(|subject| self.subjects.get(subject));
        found.cloned().unwrap_or_default()
    }

    /// Returns the fact of a key. If there is none, returns the nearest prefix of the key whose fact is unreadable.
    pub(super) fn find(&self, key: &str) -> Option<(&'a str, &'a Fact)> {
        let found = self.facts.map.get_key_value(key);
        let unread = || {
            let above = above(key).filter_map(|key| self.facts.map.get_key_value(key));
            above.into_iter().find(|(_, fact)| is_unread(fact))
        };
        found
            .or_else(unread)
            .map(|(key, fact)| (key.as_str(), fact))
    }

    /// Returns the first of these keys that is unreadable, or that has an unreadable prefix, with the fact and the
    /// reason.
    pub(super) fn unread(&self, keys: &[String]) -> Option<(&'a str, &'a Fact, &'a str)> {
        keys.iter().find_map(|key| {
            let (key, fact) = self.find(key)?;
            match &fact.value {
                FactValue::Unknown(why) => Some((key, fact, why.as_str())),
                FactValue::Known(_) => None,
            }
        })
    }
}

/// Returns a property of a subject. If the property is missing and the subject's own fact is unreadable, returns that
/// fact.
pub(super) fn find_property<'a>(
    properties: &Properties<'a>,
    subject: &Subject,
    name: &str,
) -> Option<(String, &'a Fact)> {
    if let Some(fact) = properties.get(name) {
        return Some((format!("{subject}.{name}"), fact));
    }
    let whole = properties.get("").filter(|fact| is_unread(fact))?;
    Some((subject.to_string(), whole))
}

fn is_unread(fact: &Fact) -> bool {
    matches!(fact.value, FactValue::Unknown(_))
}

fn value(fact: &Fact) -> Known {
    match &fact.value {
        FactValue::Known(value) => Known::Value(value.clone()),
        FactValue::Unknown(why) => Known::Unreadable(why.clone()),
    }
}

/// Returns the properties of a subject as a map for conditions. `what` is the noun for a key in messages.
pub(super) fn ledger(what: &'static str, properties: &Properties<'_>) -> Ledger {
    let known = properties.iter();
    Ledger::new(
        what,
        known.map(|(name, fact)| ((*name).to_owned(), value(fact))),
    )
}

/// Returns the kind of each property of a subject.
pub(super) fn kinds(properties: &Properties<'_>) -> Ledger {
    let kind = |fact: &Fact| match fact.kind {
        FactKind::Default => "default",
        FactKind::Configured => "configured",
        FactKind::Runtime => "runtime",
    };
    let known = properties.iter().map(|(name, fact)| {
        let known = match (*name, &fact.value) {
            ("", FactValue::Unknown(why)) => Known::Unreadable(why.clone()),
            _ => Known::Value(kind(fact).into()),
        };
        ((*name).to_owned(), known)
    });
    Ledger::new("property", known)
}
