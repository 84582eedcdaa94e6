//! The engine `null` completes every I/O without doing it: a test of fio itself.

use crate::doubts::{Evidence, void};
use assay_model::Doubt;

/// Name of the rule.
pub const CODE: &str = "null-engine";

pub(super) fn check(evidence: &Evidence) -> Option<Doubt> {
    let options = evidence.options?;
    (options.engine == "null").then(|| {
        void(
            CODE,
            "ioengine=null does no I/O at all".to_owned(),
            "Use ioengine=io_uring or libaio with direct=1.",
        )
    })
}
