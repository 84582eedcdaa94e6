//! The limit of ZFS's ARC. Its parameter says what was written, not what is in force: OpenZFS (2.1 to
//! 2.4) takes a value that is out of range and ignores it, and of 0, the automatic value, it keeps the
//! limit that is in force (zfs(4), zfs_arc_max; module/zfs/arc.c, arc_tuning_update).

use crate::error::ChangeError;
use crate::setting::knob::Original;
use assay_host::HostMut;
use assay_host::kstat;
/// Tells the limit in force as `c_max`.
pub(super) use assay_host::kstat::ARCSTATS;
use std::path::Path;

pub(super) const PARAMETER: &str = "/sys/module/zfs/parameters/zfs_arc_max";

/// The limit in force in bytes.
pub(super) fn read_arc_limit(host: &dyn HostMut, what: &str) -> Result<String, ChangeError> {
    let text = host.read_text(Path::new(ARCSTATS))?;
    let limit = kstat::find_counter(&text, "c_max");
    limit.map(|limit| limit.to_string()).ok_or_else(|| {
        ChangeError::refused(what, format!("{ARCSTATS} does not tell the limit in force"))
    })
}

/// The limit that was in force when the parameter was found.
pub(super) fn limit_of(original: &Original) -> Option<&str> {
    let (_, limit) = original
        .along
        .iter()
        .find(|(path, _)| path == Path::new(ARCSTATS))?;
    Some(limit)
}

/// Whether a limit that was written is in force.
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
