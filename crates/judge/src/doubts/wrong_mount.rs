//! Rule `wrong-mount`: fio silently creates a missing directory and then measures the file system that contains it,
//! usually the root file system because nothing is mounted on the mount point.

use crate::doubts::{DoubtEvidence, clean_text, suspect_doubt};
use assay_model::Doubt;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "wrong-mount";

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let target = evidence.target?;
    let expects_mount = target.name.starts_with("/mnt/") || target.name.starts_with("/media/");
    let on_root = target.mount_point.as_deref() == Some("/");
    (expects_mount && on_root).then(|| {
        suspect_doubt(
            CODE,
            format!(
                "{} is on the root file system: nothing is mounted at or above it",
                clean_text(&target.name)
            ),
            "Mount the storage first, or ignore this if the root file system is what you mean.",
        )
    })
}
