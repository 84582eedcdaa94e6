//! Rule `null-engine`: the engine `null` completes every I/O without doing it, which tests fio
//! itself.

use crate::doubts::{DoubtEvidence, void_doubt};
use assay_model::Doubt;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "null-engine";

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let options = evidence.options?;
    (options.engine == "null").then(|| {
        void_doubt(
            CODE,
            "ioengine=null does no I/O at all".to_owned(),
            "Use ioengine=io_uring or libaio with direct=1.",
        )
    })
}
