//! Changes of settings and permissions that fix a finding, as pages describe them.

use super::Configured;
use serde::{Deserialize, Serialize};

/// A change of one setting at the place of a fact: sets a value, or drops, replaces or adds some
/// words of it; with none of these it deletes the line. An edit whose key the line does not have is
/// skipped if another edit of the page applies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// Fact whose place determines the file and block: a property of the subject, or a key of the
    /// machine if the check has no subject.
    pub fact: String,
    /// Program whose configuration is changed.
    pub program: Configured,
    /// Name of the directive in that configuration; `*` for the one in the line. `{property}` is
    /// replaced by a value of the subject.
    pub key: String,
    /// Applies only if the path of the file begins with this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Directive in the line of the fact, if `key` is another directive of the same block. `{}` if
    /// the line is the head of the block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
    /// Applies only if the fact has this value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<serde_json::Value>,
    /// New value; the line is added if the block has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Words that are dropped from the value. If no word remains, the line is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop: Option<Words>,
    /// Parts of the value and their replacements, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replace: Vec<[String; 2]>,
    /// Words that are added to the value, unless it has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add: Option<Words>,
    /// Parts of the whole line of the fact and their replacements, in any language. A blank at an end of a
    /// part stands for a blank or an end of the line; `^` for the beginning of the statement; `*` for a run of
    /// letters. `key` is the first word of the line, or `*` for any. With `beside` it is the nearest line,
    /// upwards, whose first word is that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub line: Vec<[String; 2]>,
    /// Sign of a comment: the line of the fact becomes a comment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Permission bits that files gain or lose, as chmod(1) writes them: `o-rwx`, `a+x`. `key` names the files,
    /// with blanks between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
}

/// Permission bits that a file gains or loses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeBits {
    bits: u32,
    gains: bool,
}

impl ModeBits {
    /// Parses one clause of chmod(1) with users, `+` or `-`, and `r`, `w` or `x`: `o-rwx`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (users, rights) = text.split_once(['+', '-'])?;
        let among = |users: char| match users {
            'u' => Some(0o700),
            'g' => Some(0o070),
            'o' => Some(0o007),
            'a' => Some(0o777),
            _ => None,
        };
        let right = |right: char| match right {
            'r' => Some(0o444),
            'w' => Some(0o222),
            'x' => Some(0o111),
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

    /// Returns the mode with the change.
    #[must_use]
    pub fn applied_to(self, mode: u32) -> u32 {
        match self.gains {
            true => mode | self.bits,
            false => mode & !self.bits,
        }
    }
}

/// Words of a list in a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Words {
    /// Separator of the words.
    pub between: char,
    /// Every word that contains one of these is dropped, except words that exclude something: those
    /// that begin with `!` or `-`. When words are added, the words themselves.
    pub with: Vec<String>,
}
