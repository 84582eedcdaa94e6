//! Syntax errors that all parsers share.

use crate::error::ConfError;
use assay_model::change::ConfigLanguage as Language;

/// Maximum depth of nested blocks, because each level needs stack memory.
pub(super) const DEEPEST: usize = 200;

pub(super) fn syntax_error(
    language: Language,
    text: &[u8],
    at: usize,
    what: impl Into<String>,
) -> ConfError {
    ConfError::Syntax {
        language,
        line: crate::text::line_number(text, at.min(text.len())),
        what: what.into(),
    }
}
