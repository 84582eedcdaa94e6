//! Rule `engine-dependent`: some engines bypass the kernel's block layer, so options about the
//! block layer have no effect.

use crate::doubts::{DoubtEvidence, suspect_doubt};
use assay_fio::options::SyncOption;
use assay_model::Doubt;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "engine-dependent";
/// Engines that do I/O in user space, to a server or to storage (fio 3.33 HOWTO, "I/O engine").
const USER_SPACE: [&str; 9] = [
    "nbd",
    "rbd",
    "rados",
    "http",
    "libiscsi",
    "libhdfs",
    "gfapi",
    "gfapi_async",
    "nfs",
];

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let options = evidence.options?;
    let engine = options.engine.as_str();
    let mut useless = Vec::new();
    if USER_SPACE.contains(&engine) || engine == "mmap" {
        if options.direct {
            useless.push("direct=1");
        }
        if options.access.writes && options.sync != SyncOption::No {
            useless.push("sync");
        }
    }
    (!useless.is_empty()).then(|| {
        suspect_doubt(
            CODE,
            format!("ioengine={engine} ignores {}", useless.join(" and ")),
            "Use fsync=1 for durability (fio's nbd engine refuses fdatasync); caching is decided by \
             the server or by the file mapping.",
        )
    })
}
