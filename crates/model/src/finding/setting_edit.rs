//! Edits of settings and permissions that fix a finding, as pages describe them.

use super::Configured;
use serde::{Deserialize, Serialize};

/// An edit of one setting. The place of a fact determines the file and the block. The edit sets a value, or drops,
/// replaces or adds words of the value; without any of these, it deletes the line. If the key of the edit is missing in
/// the line, the edit is skipped, provided that another edit of the page applies. An edit that creates a file applies
/// only if no line of a file that assay may change sets the fact: it is a default, a running value, or in a file of a
/// package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// Fact whose place determines the file and the block: a property of the subject, or a key of the machine.
    pub fact: String,
    /// Program whose configuration is changed.
    pub program: Configured,
    /// Name of the directive to change; `*` for the directive in the line of the fact. `{property}` is replaced by a
    /// value of the subject. For the program `zfs` it is the name of a dataset, and `fact` is the property.
    pub key: String,
    /// If present, the edit applies only to files whose path begins with this text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Directive in the line of the fact, if `key` is another directive of the same block. `{}` if this line is the
    /// head of the block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
    /// If present, the edit applies only if the fact has this value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<serde_json::Value>,
    /// New value. If the block has no line for the key, the line is added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Words to drop from the value. If no word remains, the line is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop: Option<Words>,
    /// Parts of the value with their replacements, applied in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replace: Vec<[String; 2]>,
    /// Words to add to the value, unless the value already contains them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add: Option<Words>,
    /// Parts of the whole line of the fact with their replacements, for a file in any language. A blank at an end of a
    /// part matches a blank or an end of the line, `^` matches the beginning of the statement, and `*` matches a run of
    /// letters. `key` is the first word of the line, or `*` for any word. With `beside`, the edited line is the nearest
    /// line above whose first word is `key`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub line: Vec<[String; 2]>,
    /// Comment sign that is put before the line of the fact, to disable the line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Permission bits that files gain or lose, as chmod(1) writes them: `o-rwx`, `a+x`. `key` contains the paths of
    /// the files, separated by blanks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Text of a new file, such as a drop-in of a service. `key` is the path of the file. An existing file is never
    /// overwritten. `{property}` is replaced by a value of the subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create: Option<String>,
}

/// Permission bits that a file gains or loses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeBits {
    bits: u32,
    gains: bool,
}

impl ModeBits {
    /// Parses one clause of chmod(1) such as `o-rwx`: users, `+` or `-`, and the letters `r`, `w`, `x` or `s`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (users, rights) = text.split_once(['+', '-'])?;
        let among = |users: char| match users {
            'u' => Some(0o4700),
            'g' => Some(0o2070),
            'o' => Some(0o007),
            'a' => Some(0o6777),
            _ => None,
        };
        let right = |right: char| match right {
            'r' => Some(0o444),
            'w' => Some(0o222),
            'x' => Some(0o111),
            's' => Some(0o6000),
            _ => None,
        };
        let all = |text: &str, bits: &dyn Fn(char) -> Option<u32>| {
            text.chars().try_fold(0, |sum, one| Some(sum | bits(one)?))
        };
        let bits = all(users, &among)? & all(rights, &right)?;
        (bits != 0).then_some(Self {
            bits,
            gains: text.contains('+'),
        })
    }

    /// Returns the file mode after the change.
    #[must_use]
    pub fn applied_to(self, mode: u32) -> u32 {
        match self.gains {
            true => mode | self.bits,
            false => mode & !self.bits,
        }
    }
}

/// Words in a value that is a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Words {
    /// Character that separates the words.
    pub between: char,
    /// When words are dropped: texts of which a word must contain one to be dropped. Words that begin with `!` or `-`
    /// stay, because they exclude something. When words are added: the words to add.
    pub with: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_gained_and_lost() {
        for (clause, before, after) in [
            ("o-rwx", 0o4757, 0o4750),
            ("a+x", 0o640, 0o751),
            ("u-s", 0o6755, 0o2755),
            ("g-s", 0o6755, 0o4755),
            ("a-s", 0o6755, 0o755),
        ] {
            let bits = ModeBits::parse(clause).unwrap();
            assert_eq!(bits.applied_to(before), after, "{clause}");
        }
        for clause in ["", "o", "o-", "-r", "o-s", "z-r", "u-t", "u-r,g-r"] {
            assert_eq!(ModeBits::parse(clause), None, "{clause}");
        }
    }
}
