//! A doubt on an HTML page. Doubts on a terminal are in `terminal::doubt_list`.

use assay_model::Doubt;
use assay_render::text::escape_line;
use serde::Serialize;

/// Values that the template macro `doubts` of `parts.html` needs.
#[derive(Serialize)]
pub(crate) struct DoubtView {
    code: String,
    severity: &'static str,
    evidence: String,
    remedy: String,
    carried: String,
}

impl DoubtView {
    /// Creates the view. `carried` describes the samples that the doubt applies to.
    pub(crate) fn new(doubt: &Doubt, carried: String) -> Self {
        Self {
            code: escape_line(&doubt.code),
            severity: doubt.severity.name(),
            evidence: escape_line(&doubt.evidence),
            remedy: escape_line(&doubt.remedy),
            carried,
        }
    }
}
