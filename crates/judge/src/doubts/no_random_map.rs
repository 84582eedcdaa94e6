//! Rule `no-random-map`: with `norandommap` some blocks are hit twice and others never. Observed:
//! 16,384 writes hit 10,293 blocks. A job that ends by size then does not cover the whole file.

use crate::doubts::{DoubtEvidence, suspect_doubt};
use assay_model::Doubt;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "no-random-map";

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let options = evidence.options?;
    let by_time =
        options.runtime.is_some() && (options.is_on("time_based", false) || !options.complete());
    (options.access.random && options.is_on("norandommap", false) && !by_time).then(|| {
        suspect_doubt(
            CODE,
            "norandommap in a job that ends by size: about 63 % of the blocks are touched"
                .to_owned(),
            "Leave norandommap out, so that every block is hit once; or measure by time.",
        )
    })
}
