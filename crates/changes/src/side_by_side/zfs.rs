//! Creates ZFS file systems and volumes below a dataset that the user specifies. Each gets the properties of its arm
//! (zfs-create(8), zfsprops(7)).

mod intent_log_proof;
mod read_back;

use crate::Made;
use crate::side_by_side::ArmError;
use crate::side_by_side::filesystem::{fill, new_file};
use crate::side_by_side::teardown::Things;
use crate::side_by_side::tool::{Package, run};
use assay_loads::Cancel;
use assay_model::Bytes;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const PACKAGE: Package = Package {
    debian: "zfsutils-linux",
    fedora: "zfs",
};
/// Time limit for udev to create a volume's device node.
const NODE: Duration = Duration::from_secs(60);
/// Properties that the user cannot set, because they affect objects outside the arm or because assay sets them itself.
const REFUSED: [&str; 17] = [
    "canmount",
    "encryption",
    "keyformat",
    "keylocation",
    "mlslabel",
    "mountpoint",
    "origin",
    "overlay",
    "quota",
    "readonly",
    "refquota",
    "refreservation",
    "reservation",
    "sharenfs",
    "sharesmb",
    "volmode",
    "volsize",
];

/// Requested kind (file system or volume) and properties.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub parent: &'a str,
    pub properties: &'a BTreeMap<String, String>,
    pub volume: bool,
}

/// An existing file system or volume.
pub(crate) struct Dataset {
    /// Full name, such as `tank/data/assay-0123456789abcdef-now`.
    name: String,
    /// Path of the file in the file system, or of the volume's device.
    path: PathBuf,
    size: Bytes,
}

pub(crate) fn build(
    things: &mut Things<'_>,
    wanted: Wanted<'_>,
    size: Bytes,
    cancel: &Cancel,
) -> Result<Dataset, ArmError> {
    wanted.check()?;
    if !rustix::process::geteuid().is_root() {
        return Err(ArmError::NotRoot {
            what: "making and mounting a ZFS file system or volume",
        });
    }
    // Includes the indirect blocks and their overhead. Parity is unknown here; a full pool is reported as an
    // error.
    things.room(Bytes(size.0 + size.0 / 16 + (16 << 20)))?;
    let name = format!("{}/{}", wanted.parent, things.tagged());
    let mark = format!("{}={}", Made::ZFS_MARK, things.tag());
    let mut argv = vec!["zfs".to_owned(), "create".to_owned()];
    let mut set = |pair: String| argv.extend(["-o".to_owned(), pair]);
    set(mark);
    // ZFS mounts by path, so the path is in a directory where no other user can rename anything.
    let mount = things.kept("mnt");
    match wanted.volume {
        // A bare device: the kernel does not search it for partitions.
        true => set("volmode=dev".to_owned()),
        false => {
            set(format!("mountpoint={}", path_as_text(&mount)?));
            // Prevents a mount at boot before recovery runs.
            set("canmount=noauto".to_owned());
        }
    }
    for (property, value) in wanted.properties {
        set(format!("{property}={value}"));
    }
    if wanted.volume {
        let size = size.0.next_multiple_of(1 << 20).to_string();
        argv.extend(["-s".to_owned(), "-V".to_owned(), size]);
    }
    argv.push(name.clone());
    let made = Made::Dataset { name: name.clone() };
    // Checked before the journal entry, because recovery destroys every recorded object.
    let listed = ["zfs", "list", "-H", "-o", "name", "--", &name];
    if run(things.host, &listed, PACKAGE).is_ok() {
        return Err(ArmError::Refused {
            what: made.to_string(),
            source: "there is one already, which assay did not make".into(),
        });
    }
    things.enter(&made)?;
    run(things.host, &argv, PACKAGE)?;
    let path = match wanted.volume {
        true => wait_for_device(&name, cancel)?,
        false => {
            things.keep("mnt")?;
            run(things.host, &["zfs", "mount", &name], PACKAGE)?;
            let path = mount.join("file");
            new_file(&path)?;
            path
        }
    };
    fill(&path, size, things.seed(), cancel)?;
    Ok(Dataset { name, path, size })
}

impl Dataset {
    /// Returns the file or device to measure.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Wanted<'_> {
    /// Refuses properties that affect objects outside the arm, before anything is created.
    fn check(&self) -> Result<(), ArmError> {
        let refuse = |what: &str, reason: &str| {
            Err(ArmError::Refused {
                what: what.escape_debug().to_string(),
                source: reason.into(),
            })
        };
        if self.parent.is_empty() || self.parent.contains(['@', '#', '\0', '\n']) {
            return refuse(self.parent, "not the name of a ZFS file system");
        }
        for (property, value) in self.properties {
            let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            if property.is_empty() || !property.chars().all(word) {
                return refuse(property, "not the name of a ZFS property");
            }
            if REFUSED.contains(&property.as_str()) {
                let reason = "it reaches beyond what assay makes, or is set by assay itself";
                return refuse(property, reason);
            }
            if value.is_empty() || value.contains(['\0', '\n']) {
                return refuse(value, "not the value of a ZFS property");
            }
        }
        Ok(())
    }
}

/// Waits for the device of a new volume and returns it. udev replaces a blank in its name by a plus
/// (cmd/zvol_id/zvol_id.c).
fn wait_for_device(name: &str, cancel: &Cancel) -> Result<PathBuf, ArmError> {
    let path = Path::new("/dev/zvol").join(name.replace(' ', "+"));
    wait_for(&path, cancel)?;
    Ok(path)
}

/// Waits until udev has created a device node.
pub(crate) fn wait_for(path: &Path, cancel: &Cancel) -> Result<(), ArmError> {
    let deadline = Instant::now() + NODE;
    while !path.exists() {
        if cancel.is_cancelled() {
            return Err(ArmError::Cancelled);
        }
        if Instant::now() >= deadline {
            return Err(ArmError::Server {
                program: path.display().to_string(),
                source: format!("udev has not made it after {} s", NODE.as_secs()).into(),
            });
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn path_as_text(path: &Path) -> Result<&str, ArmError> {
    path.to_str().ok_or_else(|| ArmError::Refused {
        what: path.display().to_string().escape_debug().to_string(),
        source: "ZFS takes no mount point that is not UTF-8: set ASSAY_STATE to another directory"
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_property_reaches_beyond_the_arm() {
        let refused = |parent: &str, property: &str, value: &str| {
            let properties = BTreeMap::from([(property.to_owned(), value.to_owned())]);
            let wanted = Wanted {
                parent,
                properties: &properties,
                volume: false,
            };
            matches!(wanted.check(), Err(ArmError::Refused { .. }))
        };
        assert!(!refused("tank/data", "recordsize", "16K"));
        for (parent, property, value) in [
            ("tank/data", "mountpoint", "/etc"),
            ("tank/data", "sharenfs", "on"),
            ("tank/data", "assay:session", "x"),
            ("tank/data", "recordsize", ""),
            ("tank/data", "-o", "x"),
            ("tank/data@now", "recordsize", "16K"),
            ("", "recordsize", "16K"),
        ] {
            assert!(refused(parent, property, value), "{parent} {property}");
        }
    }
}
