//! Rule `unified-directions`: `unified_rw_reporting` merges reads and writes into one figure, which
//! cannot be separated again.

use crate::doubts::{DoubtEvidence, suspect_doubt};
use assay_model::Doubt;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "unified-directions";

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    evidence.unified.then(|| {
        suspect_doubt(
            CODE,
            "reads, writes and trims are reported as one (unified_rw_reporting)".to_owned(),
            "Leave unified_rw_reporting out.",
        )
    })
}
