//! Languages of configuration files: what a setting is, and edits that touch nothing else.
//!
//! [`get`] says what a file itself says; [`set`] and [`remove`] return the file's new text. Every
//! byte that is not part of the setting stays: comments, indentation, quoting style, line ends,
//! and what is not UTF-8. Removing an inserted setting gives back the text before, byte for byte.
//! No file is opened here. [`get`] and its siblings look at one text: [`includes`] lists what it
//! includes, and [`Found::rivals`] names those that may say otherwise and would win. [`effective`]
//! follows the includes of a program's whole configuration through files that it is given.
//!
//! # Values
//! A value is the text a person would write, in one line: arguments with one space between them,
//! quoted only where they must be. A value that runs over several lines in the file is read as one
//! line; setting it writes one line. Who must restore such a file byte for byte keeps its bytes.
//!
//! # Which line counts
//! With several lines for one key, the one the program itself would take: the first in `ssh`, the
//! last in the others. In nginx a repeated directive is a list or an error, so it has to be told
//! apart by more words: the key `add_header X-Frame-Options`. `set` changes the line that counts,
//! `remove` takes them all away.
//!
//! # Sections
//! Blocks from the outermost to the innermost. Each is chosen by
//! - its first word when only one block has it: `http`, `passdb`;
//! - its whole head: `location /api`, `service auth`, `Match User bob`; for `ini` the name;
//! - a setting inside: `server[server_name=example.org]`, `passdb[driver=pam]`;
//! - its place among those of its name, from 1: `server[2]`.
//!
//! More than one match is an error that names the lines. Blocks of which the program makes one
//! (`ini` sections, Dovecot's blocks with a name) count as one.
//!
//! # Whole blocks and includes, Dovecot only
//! The keys `passdb[driver=pam]` and `!include auth-system.conf.ext` are switches: their value is
//! `on`, or `off` when every line of it is commented out. `set` puts `#` before each line, or takes
//! it away. The key `passdb[driver]` is an order: the values of `driver` in all blocks, `pam sql`;
//! setting it to `sql pam` exchanges the blocks.

mod edit;
pub mod effective;
mod error;
mod languages;
mod outline;
mod select;
mod setting_at_line;
mod switch;
mod text;
mod tree;

pub use edit::{find_includes, get, remove, set};
pub use error::ConfError;
pub use languages::ssh::parse_statement as ssh_statement;
pub use outline::outline_text;
pub use setting_at_line::{SettingAtLine, setting_at_line};

/// A setting in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundSetting {
    /// Its value.
    pub value: String,
    /// Line it begins in, from 1.
    pub line: usize,
    /// Includes at this level whose files would win over this line if they have the key: those
    /// before it in `ssh`, those after it in Postfix, Dovecot and the like. None in nginx, where
    /// that would be an error.
    pub rivals: Vec<Include>,
}

/// A line that brings in other files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Include {
    /// What is included, as written: a path or a pattern.
    pub pattern: String,
    /// Line, from 1.
    pub line: usize,
    /// Heads of the blocks around it, outermost first.
    pub section: Vec<String>,
}
