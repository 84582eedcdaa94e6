//! Subjects: objects that facts describe. A machine may have several subjects of a kind.

use crate::fact::{Fact, Facts};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// An object of a machine. Its path consists of the kind and name of the object, then of the kind and name of a part of
/// this object, and so on. `["zfs.dataset", "tank/vm.1"]` is a dataset; `["proxmox", "100", "disk", "scsi0"]` is a disk
/// of a guest. The path of the machine itself is empty. The path, joined by dots, is the prefix of the keys of the
/// object's facts.
#[derive(
    Clone,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct Subject(Vec<String>);

impl Subject {
    /// Creates a subject from alternating kinds and names.
    pub fn new<S: AsRef<str>>(path: impl IntoIterator<Item = S>) -> Self {
        Self(
            path.into_iter()
                .map(|part| part.as_ref().to_owned())
                .collect(),
        )
    }

    /// Returns whether the subject is the machine as a whole.
    #[must_use]
    pub fn is_machine(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the last name of the path, which is the name of the object.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }

    /// Returns the path without its first kind, to show it to users: `100 disk scsi0`.
    #[must_use]
    pub fn label(&self) -> String {
        self.0.get(1..).unwrap_or_default().join(" ")
    }

    /// Returns the object of which this object is a part; `None` for a top-level object.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        (self.0.len() > 2).then(|| Self(self.0[..self.0.len() - 2].to_vec()))
    }

    /// Returns the part of a fact key that follows this subject; `None` for a key of another subject.
    #[must_use]
    pub fn property<'k>(&self, key: &'k str) -> Option<&'k str> {
        if self.is_machine() {
            return Some(key);
        }
        let rest = key.strip_prefix(&self.to_string())?;
        match rest.is_empty() {
            true => Some(""),
            false => rest.strip_prefix('.'),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

/// A pattern that matches subjects, such as `zfs.dataset.*` or `proxmox.*.disk.*`. A star matches any name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(Vec<String>);

/// Error for a text that is not a [`Pattern`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names no subjects: write the kind and a star, such as `zfs.dataset.*`")]
pub struct NoPattern(String);

impl Pattern {
    /// Returns whether the pattern matches a subject.
    #[must_use]
    pub fn means(&self, subject: &Subject) -> bool {
        subject.0.len() == 2 * self.0.len()
            && subject
                .0
                .iter()
                .step_by(2)
                .zip(&self.0)
                .all(|(a, b)| a == b)
    }
}

impl Pattern {
    /// Returns the kind of the outermost object that the pattern matches, such as `zfs.dataset`.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }
}

impl TryFrom<String> for Pattern {
    type Error = NoPattern;

    fn try_from(text: String) -> Result<Self, NoPattern> {
        let kinds = text.strip_suffix(".*").map(|inner| inner.split(".*."));
        let kinds: Vec<String> = kinds.into_iter().flatten().map(str::to_owned).collect();
        let good = |kind: &String| !kind.is_empty() && !kind.contains('*');
        match !kinds.is_empty() && kinds.iter().all(good) {
            true => Ok(Self(kinds)),
            false => Err(NoPattern(text)),
        }
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        format!("{}.*", pattern.0.join(".*."))
    }
}

impl Facts {
    /// Assigns facts to a subject: the fact whose key is that of the subject, and all facts whose keys begin with this
    /// key and a dot. Names may contain dots. If two subjects match, the longer one applies.
    pub fn about(&mut self, subject: &Subject) {
        let key = subject.to_string();
        let inside = format!("{key}.");
        let ours = self
            .map
            .range_mut(key.clone()..)
            .take_while(|(at, _)| at.starts_with(&key))
            .filter(|(at, _)| **at == key || at.starts_with(&inside));
        for (_, fact) in ours {
            if fact.subject.to_string().len() < key.len() {
                fact.subject = subject.clone();
            }
        }
    }

    /// Returns all subjects, including the machine, with their facts by property.
    #[must_use]
    pub fn subjects(&self) -> BTreeMap<&Subject, BTreeMap<&str, &Fact>> {
        let mut all: BTreeMap<&Subject, BTreeMap<&str, &Fact>> = BTreeMap::new();
        for (key, fact) in &self.map {
            if let Some(property) = fact.subject.property(key) {
                all.entry(&fact.subject).or_default().insert(property, fact);
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::FactKind;

    #[test]
    fn names_with_dots_belong_to_the_longer_subject() {
        let mut facts = Facts::default();
        let data_set = |name: &str| Subject::new(["zfs.dataset", name]);
        for key in ["tank.sync", "tank.x.sync", "tank.x.y/z.atime"] {
            let key = format!("zfs.dataset.{key}");
            facts.known(key, "on", FactKind::Runtime, "test");
        }
        for name in ["tank", "tank.x.y/z", "tank.x"] {
            facts.about(&data_set(name));
        }
        let disk = Subject::new(["vm", "7", "disk", "a.b"]);
        facts.known("vm.7.disk.a.b.cache", "none", FactKind::Runtime, "test");
        facts.known("vm.7.memory", 1, FactKind::Runtime, "test");
        facts.about(&disk);
        facts.about(&disk.parent().unwrap());
        let found: Vec<String> = facts
            .subjects()
            .into_iter()
            .map(|(subject, facts)| format!("{subject}: {:?}", facts.keys()))
            .collect();
        assert_eq!(
            found,
            [
                r#"vm.7: ["memory"]"#,
                r#"vm.7.disk.a.b: ["cache"]"#,
                r#"zfs.dataset.tank: ["sync"]"#,
                r#"zfs.dataset.tank.x: ["sync"]"#,
                r#"zfs.dataset.tank.x.y/z: ["atime"]"#,
            ]
        );
        let means = |pattern: &str, subject: &Subject| {
            Pattern::try_from(pattern.to_owned())
                .unwrap()
                .means(subject)
        };
        assert!(means("zfs.dataset.*", &data_set("tank.x")));
        assert!(means("vm.*.disk.*", &disk) && !means("vm.*", &disk));
        for wrong in ["", "*", "zfs.dataset", "zfs.*x.*", "a..*.*"] {
            assert!(Pattern::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }
}
