//! Rule `page-cache-read`: reads without `direct=1` come from RAM if the block was read or written before, also by
//! readahead or by an earlier run.

use crate::doubts::{DoubtEvidence, ENOUGH, HALF, suspect_doubt, void_doubt};
use assay_model::Doubt;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "page-cache-read";
const REMEDY: &str = "Add direct=1; or, if the cache is what you want to measure, say so and give a \
    file several times the RAM.";

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let options = evidence.options?;
    if !options.access.reads || options.direct || evidence.bypasses_kernel() {
        return None;
    }
    if options.is_on("pre_read", false) {
        return Some(void_doubt(
            CODE,
            "pre_read=1 reads the file into RAM first, then measures RAM".to_owned(),
            REMEDY,
        ));
    }
    match evidence.device_read_share() {
        Some(share) if share.value >= ENOUGH => None,
        Some(share) => {
            let seen = format!("direct=0, and {}", share.seen);
            Some(if share.value < HALF {
                void_doubt(CODE, seen, REMEDY)
            } else {
                suspect_doubt(CODE, seen, REMEDY)
            })
        }
        None => {
            let kept = if options.is_on("invalidate", true) {
                ""
            } else {
                "; invalidate=0 keeps what is there from before"
            };
            Some(suspect_doubt(
                CODE,
                format!(
                    "direct=0: reads pass through the page cache and come from RAM where they can{kept}"
                ),
                REMEDY,
            ))
        }
    }
}
