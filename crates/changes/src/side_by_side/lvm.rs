//! Creates LVM logical volumes in a volume group that the user specifies, plain or in a thin pool (lvcreate(8)).

use crate::side_by_side::filesystem::fill;
use crate::side_by_side::teardown::Things;
use crate::side_by_side::tool::{Package, run};
use crate::side_by_side::{ArmError, ArmSite};
use crate::{ChangeSession, Made};
use assay_host::HostMut;
use assay_loads::Cancel;
use std::path::{Path, PathBuf};

const PACKAGE: Package = Package {
    debian: "lvm2",
    fedora: "lvm2",
};
/// Sector size of the device mapper in bytes. Sizes are rounded to multiples of it.
const SECTOR: u64 = 512;

/// A logical volume of which every byte was written once. Dropping this value removes the volume.
pub struct LogicalVolume<'a> {
    path: PathBuf,
    // Dropped last.
    _things: Things<'a>,
}

/// Creates a logical volume of [`ArmSite::size`] bytes, rounded up to the extents of the volume group. If a thin pool
/// is specified, the volume is created in the pool. The free space of the group is not checked here; LVM fails if there
/// is too little.
///
/// # Errors
/// Not root, LVM is missing or fails, or the user interrupted. Everything created before is removed.
pub fn logical_volume<'a>(
    host: &'a dyn HostMut,
    session: &'a ChangeSession,
    group: &str,
    thin_pool: Option<&str>,
    place: &ArmSite,
    cancel: &Cancel,
) -> Result<LogicalVolume<'a>, ArmError> {
    if !rustix::process::geteuid().is_root() {
        return Err(ArmError::NotRoot {
            what: "making a logical volume",
        });
    }
    let mut things = Things::new(host, session, place)?;
    let name = things.tagged();
    let made = Made::LogicalVolume {
        group: group.to_owned(),
        name: name.clone(),
    };
    // Checked before the journal entry, because recovery removes every recorded object.
    if is_name_taken(host, group, &name)? {
        return Err(ArmError::Refused {
            what: made.to_string(),
            source: "there is one already, which assay did not make".into(),
        });
    }
    // Names that LVM does not allow are refused here, so that no word below is taken for an option.
    things.enter(&made)?;
    let size = format!("{}b", place.size.0.next_multiple_of(SECTOR));
    let tag = things.tag();
    let kind = match thin_pool {
        // Old data in these blocks must not be taken for a file system or a RAID.
        None => vec!["--wipesignatures=y", "--zero=y", "--size", &size],
        // Blocks of a thin volume are new.
        Some(pool) => vec!["--type=thin", "--virtualsize", &size, "--thinpool", pool],
    };
    let fixed = ["lvcreate", "--yes", "--quiet"];
    let named = ["--addtag", &tag, "--name", &name];
    let argv = [&fixed[..], &named, &kind, &[group]].concat();
    run(host, &argv, PACKAGE)?;
    let path = Path::new("/dev").join(group).join(&name);
    crate::side_by_side::zfs::wait_for(&path, cancel)?;
    fill(&path, place.size, things.seed(), cancel)?;
    Ok(LogicalVolume {
        path,
        _things: things,
    })
}

impl LogicalVolume<'_> {
    /// Returns the device's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn is_name_taken(host: &dyn HostMut, group: &str, name: &str) -> Result<bool, ArmError> {
    let argv = ["lvs", "--noheadings", "--options=lv_name", "--", group];
    let names = run(host, &argv, PACKAGE)?;
    Ok(names.lines().any(|line| line.trim() == name))
}
