//! Identity of a machine, by which its records are grouped.

use serde::{Deserialize, Serialize};

/// A machine, which is identified by its id.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Machine {
    /// 32 hexadecimal digits, derived from `/etc/machine-id`. The original id cannot be computed from them.
    pub id: String,
    /// Last known host name; `None` if no name is known.
    pub name: Option<String>,
}

impl Machine {
    /// Number of digits of a short id.
    const SHOWN: usize = 8;

    /// Returns whether a text is a valid machine id.
    #[must_use]
    pub fn is_id(text: &str) -> bool {
        text.len() == 32 && text.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
    }

    /// Returns the short id: the first digits, which suffice to distinguish the machines of one store.
    #[must_use]
    pub fn short_id(&self) -> &str {
        self.id.get(..Self::SHOWN).unwrap_or(&self.id)
    }

    /// Returns the name to display: the host name, else the short id.
    #[must_use]
    pub fn shown(&self) -> &str {
        self.name.as_deref().unwrap_or_else(|| self.short_id())
    }

    /// Returns a name to display that is unique among `others`. If two machines have the same host name, the short id
    /// is appended.
    #[must_use]
    pub fn shown_among<'a>(&self, mut others: impl Iterator<Item = &'a Self>) -> String {
        let shown = self.shown();
        match others.any(|other| other.id != self.id && other.shown() == shown) {
            true => format!("{shown} ({})", self.short_id()),
            false => shown.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(digit: char, name: Option<&str>) -> Machine {
        Machine {
            id: digit.to_string().repeat(32),
            name: name.map(str::to_owned),
        }
    }

    #[test]
    fn two_of_one_name_are_told_apart() {
        let all = [
            machine('a', Some("box")),
            machine('b', Some("box")),
            machine('c', None),
        ];
        let shown: Vec<String> = all.iter().map(|one| one.shown_among(all.iter())).collect();
        assert_eq!(shown, ["box (aaaaaaaa)", "box (bbbbbbbb)", "cccccccc"]);
        assert_eq!(all[0].shown_among(all[..1].iter()), "box");
    }

    #[test]
    fn an_id_is_32_digits() {
        assert!(Machine::is_id(&machine('a', None).id));
        for bad in [
            "",
            "abcd",
            &"A".repeat(32),
            &"g".repeat(32),
            &"ü".repeat(16),
        ] {
            assert!(!Machine::is_id(bad), "{bad}");
        }
        // An invalid value of a foreign store does not cause a panic.
        let odd = Machine {
            id: "üüüüü".to_owned(),
            name: None,
        };
        assert_eq!(odd.shown(), "üüüü");
    }
}
