//! Rule `device-in-use`: another program uses the device. It distorts the figures, and fio destroys its data. fio
//! refuses to write to a mounted device, but it only compares names, and `allow_mounted_write` disables even that.

use crate::doubts::{DoubtEvidence, suspect_doubt};
use assay_model::Doubt;

/// Name of the rule.
pub const CODE: &str = "device-in-use";

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let options = evidence.options?;
    (options.access.writes && options.is_on("allow_mounted_write", false)).then(|| {
        suspect_doubt(
            CODE,
            "allow_mounted_write=1 lets fio overwrite a device that is mounted".to_owned(),
            "Use a file, or a device without mount, holder or signature (`lsblk -f`, `wipefs -n`).",
        )
    })
}
