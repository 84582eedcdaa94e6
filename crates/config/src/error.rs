//! Errors of reading and writing settings.

use assay_model::change::ConfigLanguage;

/// Reason why a setting could not be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfError {
    /// The text is not of this language.
    #[error("line {line}: {what}; the file is not valid as {language:?}, nothing was changed")]
    Syntax {
        /// The expected language.
        language: ConfigLanguage,
        /// Line number, counted from 1.
        line: usize,
        /// Description of the syntax error.
        what: String,
    },
    /// There is no block that matches the section.
    #[error("no block `{section}` in this file; it has {there}")]
    NoSection {
        /// The section that was searched.
        section: String,
        /// The blocks that exist at the same place.
        there: String,
    },
    /// Several blocks or lines match, but only one may.
    #[error("`{what}` fits lines {}; {way_out}", list(.lines))]
    Ambiguous {
        /// The ambiguous section or key.
        what: String,
        /// Line numbers, counted from 1.
        lines: Vec<usize>,
        /// Advice on how to select one of them.
        way_out: &'static str,
    },
    /// This key cannot be written in this language.
    #[error("`{key}` cannot be a key here: {why}")]
    Key {
        /// The key that cannot be written.
        key: String,
        /// Reason why the key cannot be written.
        why: &'static str,
    },
    /// This value cannot be written in this language.
    #[error("`{value}` cannot be the value of `{key}`: {why}")]
    Value {
        /// The key whose value cannot be written.
        key: String,
        /// The value that cannot be written.
        value: String,
        /// Reason why the value cannot be written.
        why: &'static str,
    },
    /// The value in the file is not UTF-8.
    #[error("line {line}: the value of `{key}` is not UTF-8; it can be changed by hand only")]
    NotText {
        /// The key whose value is not UTF-8.
        key: String,
        /// Line number, counted from 1.
        line: usize,
    },
}

fn list(lines: &[usize]) -> String {
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    lines.join(", ")
}
