//! Facts: properties of a machine at one time, each with the source of its value.

use crate::fact_source::FactPlace;
use crate::fact_subject::Subject;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Whether a value is a default, configured, or in effect now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FactKind {
    /// A built-in default that was not changed.
    Default,
    /// A value in a configuration file, or a stored property.
    Configured,
    /// The current value of the running system.
    Runtime,
}

/// The value, or the reason why it is unknown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FactValue {
    /// The value as a JSON scalar or list. Sizes are in bytes, times in nanoseconds.
    Known(serde_json::Value),
    /// The source could not be read, and the text is the reason. In contrast to a missing fact, the source exists or
    /// should exist.
    Unknown(String),
}

/// A property of a machine, with the source of its value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(from = "Written", into = "Written")]
pub struct Fact {
    /// The value, or the reason why it is unknown.
    pub value: FactValue,
    /// Where the value was read.
    pub place: FactPlace,
    /// Whether the value is a default, a configured value, or the current value of the running system.
    pub kind: FactKind,
    /// Object that the fact describes, if a machine may have several objects of this kind.
    pub subject: Subject,
}

/// A fact in its stored form. `source` is the source as text, which is all that assay 0.1 stored.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
struct Written {
    #[serde(flatten)]
    value: FactValue,
    source: String,
    #[serde(default)]
    place: Option<FactPlace>,
    kind: FactKind,
    #[serde(default, skip_serializing_if = "Subject::is_machine")]
    subject: Subject,
}

impl From<Fact> for Written {
    fn from(fact: Fact) -> Self {
        Self {
            value: fact.value,
            source: fact.place.to_string(),
            place: Some(fact.place),
            kind: fact.kind,
            subject: fact.subject,
        }
    }
}

impl From<Written> for Fact {
    fn from(written: Written) -> Self {
        let place = written.place;
        Self {
            value: written.value,
            place: place.unwrap_or_else(|| FactPlace::from_text(&written.source)),
            kind: written.kind,
            subject: written.subject,
        }
    }
}

/// Key of a fact about a measurement: a list of the settings that killed assay processes had left changed. The key is
/// missing if there were none.
pub const OPEN_CHANGES: &str = "assay.open_changes";

/// All facts of a machine by dotted key, such as `cpu.model`, `disk.vda.scheduler` and `mount.0.fstype`. If a key is
/// missing, the object does not exist.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Facts {
    /// Facts by key, sorted by key.
    pub map: BTreeMap<String, Fact>,
}

impl Facts {
    /// Adds a fact whose value is known.
    pub fn known(
        &mut self,
        key: impl Into<String>,
        value: impl Into<serde_json::Value>,
        kind: FactKind,
        place: impl Into<FactPlace>,
    ) {
        self.add(key.into(), FactValue::Known(value.into()), kind, place);
    }

    /// Adds a fact whose value is unknown, with the reason.
    pub fn unknown(
        &mut self,
        key: impl Into<String>,
        reason: impl Into<String>,
        kind: FactKind,
        place: impl Into<FactPlace>,
    ) {
        self.add(key.into(), FactValue::Unknown(reason.into()), kind, place);
    }

    fn add(&mut self, key: String, value: FactValue, kind: FactKind, place: impl Into<FactPlace>) {
        let fact = Fact {
            value,
            place: place.into(),
            kind,
            subject: Subject::default(),
        };
        self.map.insert(key, fact);
    }

    /// Returns the value of a key if it is known.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&serde_json::Value> {
        match &self.map.get(key)?.value {
            FactValue::Known(value) => Some(value),
            FactValue::Unknown(_) => None,
        }
    }

    /// Returns the value of a key if it is a known string.
    #[must_use]
    pub fn str(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }

    /// Returns the value of a key if it is a known integer.
    #[must_use]
    pub fn u64(&self, key: &str) -> Option<u64> {
        self.get(key)?.as_u64()
    }

    /// Returns the facts whose key starts with `prefix`.
    pub fn under<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a Fact)> {
        self.map
            .range(prefix.to_owned()..)
            .take_while(move |(key, _)| key.starts_with(prefix))
            .map(|(key, fact)| (key.as_str(), fact))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_assay_0_1_wrote_is_read() {
        let old = r#"{"known":"no","source":"/etc/ssh/sshd_config:98","kind":"configured"}"#;
        let fact: Fact = serde_json::from_str(old).unwrap();
        assert_eq!(
            (fact.place.line(), fact.kind),
            (Some(98), FactKind::Configured)
        );
        let new = serde_json::to_string(&fact).unwrap();
        assert!(
            new.contains(r#""place":{"file":{"#) && !new.contains("subject"),
            "{new}"
        );
        assert_eq!(serde_json::from_str::<Fact>(&new).unwrap(), fact);
        let unknown = r#"{"unknown":"Permission denied","source":"zdb -C tank","kind":"runtime"}"#;
        let fact: Fact = serde_json::from_str(unknown).unwrap();
        assert_eq!(fact.place, FactPlace::Words("zdb -C tank".to_owned()));
    }
}
