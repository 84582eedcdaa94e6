//! Rule `tmpfs`: tmpfs is RAM. It accepts `direct=1` without an error and completes a million I/Os
//! per second.

use crate::doubts::{DoubtEvidence, clean_text, void_doubt};
use assay_model::Doubt;
use assay_model::target::TargetKind;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "tmpfs";

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let file_system = evidence
        .target
        .and_then(|target| target.fs_type.as_deref())
        .filter(|kind| matches!(*kind, "tmpfs" | "ramfs" | "devtmpfs"));
    let block_device = evidence
        .target
        .is_some_and(|target| target.kind == TargetKind::BlockDevice);
    let seen = match file_system {
        Some(kind) if !block_device => format!("the file is on {kind}, which is RAM"),
        _ => {
            let options = evidence.options?;
            let path = ["filename", "directory"]
                .iter()
                .filter_map(|key| options.given(key))
                .flat_map(|value| value.split(':'))
                .find(|path| *path == "/dev/shm" || path.starts_with("/dev/shm/"))?;
            format!("{} is on tmpfs, which is RAM", clean_text(path))
        }
    };
    Some(void_doubt(
        CODE,
        seen,
        "Name a directory on the storage in question; `findmnt -T DIR` says where it is.",
    ))
}
