//! Rule `many-jobs-one-file`: buffered writes of several jobs to one file wait for the same inode lock, so the figures
//! measure the lock.

use crate::doubts::{DoubtEvidence, suspect_doubt};
use assay_model::Doubt;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "many-jobs-one-file";

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let options = evidence.options?;
    let filename = options.given("filename")?;
    let one_file = !filename.contains(':') && !filename.starts_with("/dev/");
    (options.numjobs > 1
        && options.access.random
        && options.access.writes
        && !options.direct
        && one_file)
        .then(|| {
            suspect_doubt(
                CODE,
                format!(
                    "{} jobs write through the page cache to one file, one at a time",
                    options.numjobs
                ),
                "Give each job its own file (directory instead of filename), or add direct=1.",
            )
        })
}
