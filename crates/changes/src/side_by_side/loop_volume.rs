//! Block devices on a loop device: the loop device itself, or one layer of the device mapper on it (dmsetup(8)).

use crate::side_by_side::filesystem::fill;
use crate::side_by_side::teardown::Things;
use crate::side_by_side::tool::{Package, run};
use crate::side_by_side::{ArmError, ArmSite};
use crate::temporary_objects::find_mapping;
use crate::{ChangeSession, Made};
use assay_host::HostMut;
use assay_loads::Cancel;
use assay_model::Bytes;
use std::path::{Path, PathBuf};

const PACKAGE: Package = Package {
    debian: "dmsetup",
    fedora: "device-mapper",
};
/// Name of the file below the loop device.
const BACKING: &str = "backing";
/// Unit of the tables of the device mapper, in bytes.
const SECTOR: u64 = 512;

/// Layer above the loop device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopLayer {
    /// No layer: the loop device itself.
    Plain,
    /// The linear target of the device mapper, as in a plain logical volume of LVM.
    Linear,
    /// The crypt target with the cipher of LUKS2: aes-xts-plain64 with 512 bits.
    Crypt,
}

impl LoopLayer {
    /// Returns the device-mapper table of the layer, which covers the whole device; `None` without a layer.
    fn table(self, device: &str, size: u64) -> Option<String> {
        let sectors = size / SECTOR;
        // Scratch data need no secrecy, and are deleted.
        let key: String = (0_u8..64).map(|byte| format!("{byte:02x}")).collect();
        match self {
            Self::Plain => None,
            Self::Linear => Some(format!("0 {sectors} linear {device} 0")),
            Self::Crypt => Some(format!(
                "0 {sectors} crypt aes-xts-plain64 {key} 0 {device} 0"
            )),
        }
    }
}

/// A block device of which every byte was written once. Dropping this value removes the device.
pub struct LoopVolume<'a> {
    path: PathBuf,
    // Dropped last.
    _things: Things<'a>,
}

impl LoopVolume<'_> {
    /// Returns the device's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Creates a device of [`ArmSite::size`] bytes, rounded up to MiB, on a loop device with direct I/O.
///
/// # Errors
/// Not root, dmsetup is missing or fails, or the user interrupted. Everything created before is removed.
pub fn loop_volume<'a>(
    host: &'a dyn HostMut,
    session: &'a ChangeSession,
    layer: LoopLayer,
    place: &ArmSite,
    cancel: &Cancel,
) -> Result<LoopVolume<'a>, ArmError> {
    if !rustix::process::geteuid().is_root() {
        return Err(ArmError::NotRoot {
            what: "attaching a loop device",
        });
    }
    let mut things = Things::new(host, session, place)?;
    match make_device(&mut things, layer, place.size, cancel) {
        Ok(path) => Ok(LoopVolume {
            path,
            _things: things,
        }),
        Err(error) => Err(things.named(error)),
    }
}

fn make_device(
    things: &mut Things<'_>,
    layer: LoopLayer,
    size: Bytes,
    cancel: &Cancel,
) -> Result<PathBuf, ArmError> {
    let whole = size.0.next_multiple_of(1 << 20);
    things.room(Bytes(whole))?;
    let backing = things.create(BACKING)?;
    let sized = backing.file().set_len(whole);
    sized.map_err(ArmError::io(backing.shown()))?;
    let shown = things.shown().join(BACKING);
    let (_, device) = things.attach(backing.file(), shown, true, true)?;
    let Some(table) = layer.table(&device, whole) else {
        let path = PathBuf::from(device);
        fill(&path, size, things.seed(), cancel)?;
        return Ok(path);
    };
    let name = things.tagged();
    let made = Made::Mapping { name: name.clone() };
    // Checked before the journal entry, because recovery removes every recorded object.
    if find_mapping(things.host, &name)?.is_some() {
        return Err(ArmError::Refused {
            what: made.to_string(),
            source: "there is one already, which assay did not make".into(),
        });
    }
    things.enter(&made)?;
    run(
        things.host,
        &["dmsetup", "create", &name, "--table", &table],
        PACKAGE,
    )?;
    let path = find_mapping(things.host, &name)?.ok_or_else(|| ArmError::Refused {
        what: made.to_string(),
        source: "dmsetup made it, but the kernel does not list it".into(),
    })?;
    fill(&path, size, things.seed(), cancel)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_covers_the_whole_device() {
        let size = 16 << 20;
        assert_eq!(LoopLayer::Plain.table("/dev/loop0", size), None);
        let linear = LoopLayer::Linear.table("/dev/loop0", size).unwrap();
        assert_eq!(linear, "0 32768 linear /dev/loop0 0");
        let crypt = LoopLayer::Crypt.table("/dev/loop0", size).unwrap();
        let words: Vec<&str> = crypt.split(' ').collect();
        assert_eq!((words.len(), words[4].len()), (8, 128), "{crypt}");
    }
}
