//! fio refuses to write to a mounted device, but only by comparing names, and `allow_mounted_write`
//! switches even that off. Another user of the device spoils the figures, and fio spoils its data.

use crate::doubts::{Evidence, suspect};
use assay_model::Doubt;

/// Name of the rule.
pub const CODE: &str = "device-in-use";

pub(super) fn check(evidence: &Evidence) -> Option<Doubt> {
    let options = evidence.options?;
    (options.access.writes && options.is_on("allow_mounted_write", false)).then(|| {
        suspect(
            CODE,
            "allow_mounted_write=1 lets fio overwrite a device that is mounted".to_owned(),
            "Use a file, or a device without mount, holder or signature (`lsblk -f`, `wipefs -n`).",
        )
    })
}
