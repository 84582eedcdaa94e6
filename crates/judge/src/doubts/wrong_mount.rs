//! fio creates a missing directory without a word and then measures whatever lies there: usually the
//! root file system below an empty mount point.

use crate::doubts::{Evidence, clean, suspect};
use assay_model::Doubt;

/// Name of the rule.
pub const CODE: &str = "wrong-mount";

pub(super) fn check(evidence: &Evidence) -> Option<Doubt> {
    let target = evidence.target?;
    let expects_mount = target.name.starts_with("/mnt/") || target.name.starts_with("/media/");
    let on_root = target.mount_point.as_deref() == Some("/");
    (expects_mount && on_root).then(|| {
        suspect(
            CODE,
            format!(
                "{} is on the root file system: nothing is mounted at or above it",
                clean(&target.name)
            ),
            "Mount the storage first, or ignore this if the root file system is what you mean.",
        )
    })
}
