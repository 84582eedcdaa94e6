//! Rule `device-in-use`: another program uses the device. The other program distorts the figures, and fio overwrites
//! its data. fio refuses to write to a mounted device, but only compares names, and `allow_mounted_write` turns this
//! check off.

use crate::doubts::{DoubtEvidence, suspect_doubt};
use assay_model::Doubt;

/// Stable code of this doubt in results and in the book.
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
