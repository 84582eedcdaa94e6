//! `unified_rw_reporting` mixes reads and writes into one figure; neither can be told any more.

use crate::doubts::{Evidence, suspect};
use assay_model::Doubt;

/// Name of the rule.
pub const CODE: &str = "unified-directions";

pub(super) fn check(evidence: &Evidence) -> Option<Doubt> {
    evidence.unified.then(|| {
        suspect(
            CODE,
            "reads, writes and trims are reported as one (unified_rw_reporting)".to_owned(),
            "Leave unified_rw_reporting out.",
        )
    })
}
