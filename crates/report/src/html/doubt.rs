//! A doubt on a page.

use assay_model::Doubt;
use assay_render::text::clean;
use serde::Serialize;

/// What `doubts` of `parts.html` shows.
#[derive(Serialize)]
pub(crate) struct DoubtView {
    code: String,
    severity: &'static str,
    evidence: String,
    remedy: String,
    carried: String,
}

impl DoubtView {
    /// `carried` says what carries it.
    pub(crate) fn new(doubt: &Doubt, carried: String) -> Self {
        Self {
            code: clean(&doubt.code),
            severity: doubt.severity.name(),
            evidence: clean(&doubt.evidence),
            remedy: clean(&doubt.remedy),
            carried,
        }
    }
}
