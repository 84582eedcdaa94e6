//! The size limit of ZFS's ARC. Its parameter contains the written value, not the limit in effect. OpenZFS (2.1 to 2.4)
//! accepts a value out of range and ignores it. After a write of 0 (automatic), OpenZFS keeps the limit in effect
//! (zfs(4), zfs_arc_max; module/zfs/arc.c, arc_tuning_update).

use crate::error::ChangeError;
use crate::setting::setting_kind::Original;
use assay_host::HostMut;
use assay_host::kstat;
/// File that contains the limit in effect as `c_max`.
pub(super) use assay_host::kstat::ARCSTATS;
use std::path::Path;

pub(super) const PARAMETER: &str = "/sys/module/zfs/parameters/zfs_arc_max";

/// Reads the limit in effect, in bytes.
pub(super) fn read_arc_limit(host: &dyn HostMut, what: &str) -> Result<String, ChangeError> {
    let text = host.read_text(Path::new(ARCSTATS))?;
    let limit = kstat::find_counter(&text, "c_max");
    limit.map(|limit| limit.to_string()).ok_or_else(|| {
        ChangeError::refused(what, format!("{ARCSTATS} does not tell the limit in force"))
    })
}

/// Returns the limit that was in effect in the original state.
pub(super) fn limit_of(original: &Original) -> Option<&str> {
    let (_, limit) = original
        .along
        .iter()
        .find(|(path, _)| path == Path::new(ARCSTATS))?;
    Some(limit)
}

/// Checks that a written limit is in effect.
pub(super) fn check(host: &dyn HostMut, what: &str, wanted: &str) -> Result<(), ChangeError> {
    let found = read_arc_limit(host, what)?;
    match found == wanted {
        true => Ok(()),
        false => Err(ChangeError::NoEffect {
            what: what.to_owned(),
            wanted: wanted.to_owned(),
            found: format!(
                "{found} (c_max); ZFS ignores a limit below 64 MiB, one that is not above \
                 zfs_arc_min, and one that is not below the memory"
            ),
        }),
    }
}
