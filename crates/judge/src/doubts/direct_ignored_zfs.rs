//! Rule `direct-ignored-zfs`: ZFS before 2.3 accepts O_DIRECT but still uses the ARC (openzfs/zfs#10018). From 2.3 on
//! the property `direct` decides for a dataset, and the module parameter `zfs_dio_enabled` for all pools.

use crate::doubts::{DoubtEvidence, suspect_doubt};
use assay_model::Doubt;
use assay_model::Facts;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "direct-ignored-zfs";

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let options = evidence.options?;
    if !evidence.is_on_zfs() || !options.direct {
        return None;
    }
    // A durable write waits for the intent log whatever the ARC does.
    if !options.access.reads && options.flushes() {
        return None;
    }
    let version = evidence.facts.and_then(parse_zfs_version);
    let property = evidence.dataset_property("direct");
    let enabled = evidence
        .facts
        .and_then(|facts| facts.u64("zfs.param.zfs_dio_enabled"));
    let off = enabled == Some(0);
    let seen = match (version, property.as_deref()) {
        (Some((major, minor)), _) if (major, minor) < (2, 3) => {
            format!("ZFS {major}.{minor} accepts direct=1 and uses the ARC all the same")
        }
        (Some(_), _) if off => "zfs_dio_enabled=0 turns direct=1 off on all pools".to_owned(),
        (Some(_), Some("disabled")) => "the property direct=disabled turns direct=1 off".to_owned(),
        (Some(_), _) => return None,
        (None, _) => {
            "ZFS of unknown version: before 2.3 it accepts direct=1 and uses the ARC all the same"
                .to_owned()
        }
    };
    Some(suspect_doubt(
        CODE,
        seen,
        "Use a file several times as large as the ARC, and read the ARC's counters beside the figures.",
    ))
}

fn parse_zfs_version(facts: &Facts) -> Option<(u32, u32)> {
    let text = facts.str("zfs.version")?;
    let mut numbers = text
        .trim_start_matches(|c: char| !c.is_ascii_digit())
        .split(|c: char| !c.is_ascii_digit())
        .map(|part| part.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}
