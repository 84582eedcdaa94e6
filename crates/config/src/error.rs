//! Errors of reading and writing a setting.

use assay_model::change::ConfigLanguage;

/// Reason why a setting could not be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfError {
    /// The text is not of this language.
    #[error("line {line}: {what}; the file is not valid as {language:?}, nothing was changed")]
    Syntax {
        /// The expected language.
        language: ConfigLanguage,
        /// Line number, from 1.
        line: usize,
        /// Description of the error.
        what: String,
    },
    /// The block does not exist.
    #[error("no block `{section}` in this file; it has {there}")]
    NoSection {
        /// The section searched for.
        section: String,
        /// The blocks that exist at that place.
        there: String,
    },
    /// Several blocks or lines match.
    #[error("`{what}` fits lines {}; {way_out}", list(.lines))]
    Ambiguous {
        /// Section or key.
        what: String,
        /// Line numbers, from 1.
        lines: Vec<usize>,
        /// Advice on how to specify one of them.
        way_out: &'static str,
    },
    /// This key cannot be written in this language.
    #[error("`{key}` cannot be a key here: {why}")]
    Key {
        /// The key.
        key: String,
        /// Reason.
        why: &'static str,
    },
    /// This value cannot be written in this language.
    #[error("`{value}` cannot be the value of `{key}`: {why}")]
    Value {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// Reason.
        why: &'static str,
    },
    /// The value in the file is not UTF-8.
    #[error("line {line}: the value of `{key}` is not UTF-8; it can be changed by hand only")]
    NotText {
        /// The key.
        key: String,
        /// Line number, from 1.
        line: usize,
    },
}

fn list(lines: &[usize]) -> String {
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    lines.join(", ")
}
