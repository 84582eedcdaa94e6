//! Which machine something was measured on.

use serde::{Deserialize, Serialize};

/// A machine, known again by its id.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Machine {
    /// 32 hexadecimal digits. They are derived from `/etc/machine-id` and do not tell it.
    pub id: String,
    /// Host name when it was last seen; none where only the id was told.
    pub name: Option<String>,
}

impl Machine {
    /// Digits that are shown of an id.
    const SHOWN: usize = 8;

    /// Whether a text can be the id of a machine.
    #[must_use]
    pub fn is_id(text: &str) -> bool {
        text.len() == 32 && text.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
    }

    /// The first digits of the id: enough to tell the machines of one store apart.
    #[must_use]
    pub fn short_id(&self) -> &str {
        self.id.get(..Self::SHOWN).unwrap_or(&self.id)
    }

    /// How it is called: by its name, else by the first digits of its id.
    #[must_use]
    pub fn shown(&self) -> &str {
        self.name.as_deref().unwrap_or_else(|| self.short_id())
    }

    /// How it is called beside others: a name that two of them have is followed by the id.
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
        // What a foreign store may hold instead does not make it panic.
        let odd = Machine {
            id: "üüüüü".to_owned(),
            name: None,
        };
        assert_eq!(odd.shown(), "üüüü");
    }
}
