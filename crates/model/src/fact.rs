//! Facts: what is true of a machine now, and how we know.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which of the three different things a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FactKind {
    /// Built in; nobody set it.
    Default,
    /// Written in a configuration file or stored property.
    Configured,
    /// What the running system uses now.
    Runtime,
}

/// The value, or why it could not be read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FactValue {
    /// A JSON scalar or list. Sizes are bytes, times nanoseconds.
    Known(serde_json::Value),
    /// It exists, or should, but could not be read: the reason. Never the same as absent.
    Unknown(String),
}

/// Something true of a machine, with its provenance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// The value or why it is unknown.
    #[serde(flatten)]
    pub value: FactValue,
    /// Where it was read: `file`, `file:line`, or the command line.
    pub source: String,
    /// Default, configured or run-time.
    pub kind: FactKind,
}

/// All facts of a machine, by dotted key: `cpu.model`, `disk.vda.scheduler`, `mount.0.fstype`.
/// A key that is missing means that the thing does not exist there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Facts {
    /// Key to fact, sorted.
    pub map: BTreeMap<String, Fact>,
}

impl Facts {
    /// Records a known value.
    pub fn known(
        &mut self,
        key: impl Into<String>,
        value: impl Into<serde_json::Value>,
        kind: FactKind,
        source: impl Into<String>,
    ) {
        let (value, source) = (FactValue::Known(value.into()), source.into());
        self.map.insert(
            key.into(),
            Fact {
                value,
                source,
                kind,
            },
        );
    }

    /// Records that a value could not be read, and why.
    pub fn unknown(
        &mut self,
        key: impl Into<String>,
        reason: impl Into<String>,
        kind: FactKind,
        source: impl Into<String>,
    ) {
        let (value, source) = (FactValue::Unknown(reason.into()), source.into());
        self.map.insert(
            key.into(),
            Fact {
                value,
                source,
                kind,
            },
        );
    }

    /// The known value under a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&serde_json::Value> {
        match &self.map.get(key)?.value {
            FactValue::Known(value) => Some(value),
            FactValue::Unknown(_) => None,
        }
    }

    /// The known string under a key.
    #[must_use]
    pub fn str(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }

    /// The known whole number under a key.
    #[must_use]
    pub fn u64(&self, key: &str) -> Option<u64> {
        self.get(key)?.as_u64()
    }

    /// Facts whose key starts with `prefix`.
    pub fn under<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a Fact)> {
        self.map
            .range(prefix.to_owned()..)
            .take_while(move |(key, _)| key.starts_with(prefix))
            .map(|(key, fact)| (key.as_str(), fact))
    }
}
