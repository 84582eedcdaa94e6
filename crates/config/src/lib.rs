//! Languages of configuration files: finds settings and edits them without changing anything else.
//! [`get`] returns the value that a file sets; [`set`] and [`remove`] return the file's new text. Every byte
//! outside the setting stays: comments, indentation, quoting style, line ends, and bytes that are not UTF-8.
//! Removing an inserted setting restores the previous text byte for byte. No file is opened here. [`get`] and
//! the related functions read one text: [`includes`] lists its include lines, and [`FoundSetting::rivals`]
//! lists those whose files could set the same key and take precedence. [`effective`] follows the includes of a
//! complete configuration through files that the caller provides.
//!
//! # Values
//! A value is the text as a person would write it, in one line: arguments separated by one space, quoted only
//! where necessary. A value on several lines is read as one line; setting it writes one line. A caller that
//! must restore such a file byte for byte has to keep the original bytes.
//!
//! # Several lines for one key
//! The line that the program itself uses takes effect: the first in `ssh`, the last in the others. In nginx a
//! repeated directive is a list or an error, so the key needs more words: `add_header X-Frame-Options`. `set`
//! changes the line that takes effect; `remove` removes all lines.
//!
//! # Sections
//! Blocks from the outermost to the innermost. Each block is selected by
//! - its first word, if only one block has it: `http`, `passdb`;
//! - its whole head: `location /api`, `service auth`, `Match User bob`; for `ini` the name;
//! - a setting inside: `server[server_name=example.org]`, `passdb[driver=pam]`;
//! - its number among the blocks with that name, from 1: `server[2]`.
//!
//! Several matches are an error that lists the lines. Blocks that the program merges (`ini` sections,
//! Dovecot's blocks with a name) count as one.
//!
//! # Whole blocks and includes, Dovecot only
//! The keys `passdb[driver=pam]` and `!include auth-system.conf.ext` are switches: their value is `on`, or
//! `off` if every line is commented out. `set` adds `#` before each line, or removes it. The key
//! `passdb[driver]` is an order: its value lists the `driver` of all blocks, `pam sql`; setting it to
//! `sql pam` exchanges the blocks.

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
pub use languages::whole_lines::line_section;
pub use outline::outline_text;
pub use setting_at_line::{SettingAtLine, section_at_line, setting_at_line};

/// A setting that was found in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundSetting {
    /// Value of the setting.
    pub value: String,
    /// Number of the first line of the setting, counted from 1.
    pub line: usize,
    /// Includes at this level whose files would take precedence over this line if they contain the key. These are the
    /// includes before the line in `ssh`, and those after the line in Postfix, Dovecot and similar languages. Empty in
    /// nginx, where a second line would be an error.
    pub rivals: Vec<Include>,
}

/// A line that includes other files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Include {
    /// The path or pattern as written.
    pub pattern: String,
    /// Line number, counted from 1.
    pub line: usize,
    /// Heads of the enclosing blocks, outermost first.
    pub section: Vec<String>,
}
