//! Rule `flush-dropped-zfs`: with `zfs_nocacheflush` or `zil_nocacheflush` ZFS writes its log without flushing the
//! disks. Observed with OpenZFS 2.1.11: 255 commits without any flush of a disk with the parameters, 257 flushes of the
//! log device without them.

use crate::doubts::{DoubtEvidence, suspect_doubt};
use assay_model::Doubt;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "flush-dropped-zfs";
/// Minimum number of log commits from which missing flushes can be inferred.
const LEAST: u64 = 20;

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let counters = evidence.counters?;
    let commits = counters.zil.as_ref()?.commits;
    let flushes: u64 = counters.devices.iter().map(|device| device.flushes).sum();
    if !evidence.is_on_zfs() || commits < LEAST || flushes > 0 || counters.devices.is_empty() {
        return None;
    }
    let facts = evidence.facts?;
    let parameter = ["zil_nocacheflush", "zfs_nocacheflush"]
        .into_iter()
        .find(|name| facts.u64(&format!("zfs.param.{name}")) == Some(1))?;
    // A disk without a volatile cache has nothing to flush.
    let disks = &evidence.target?.disks;
    let through = |disk: &String| facts.str(&format!("disk.{disk}.write_cache"));
    if !disks.is_empty()
        && disks
            .iter()
            .all(|disk| through(disk) == Some("write through"))
    {
        return None;
    }
    Some(suspect_doubt(
        CODE,
        format!(
            "ZFS committed its intent log {commits} times and no disk was flushed: {parameter}=1"
        ),
        "What was acknowledged may be in the disks' volatile caches: set the parameter to 0, unless \
         every disk of the pool keeps its cache through a power cut.",
    ))
}
