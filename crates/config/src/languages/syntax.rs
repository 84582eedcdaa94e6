//! What is no configuration.

use crate::error::ConfError;
use assay_model::change::ConfigLanguage as Language;

/// Blocks within more blocks than this are no configuration; each level takes some of the stack.
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
