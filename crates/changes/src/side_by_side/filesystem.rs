//! A new file system on a loop device, with one file to measure.

mod power_cut_proof;
mod read_back;

use crate::side_by_side::ArmError;
use crate::side_by_side::child::Program;
use crate::side_by_side::teardown::Things;
use crate::side_by_side::tool::{Package, find};
use crate::{Made, MadeId};
use assay_host::held::{Access, Held};
use assay_loads::{Cancel, layout};
use assay_model::Bytes;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

const UTIL_LINUX: Package = Package {
    debian: "mount",
    fedora: "util-linux",
};
/// Name of the file below the loop device.
const BACKING: &str = "backing";
/// Name of the directory on which the file system is mounted.
pub(crate) const MOUNT: &str = "mnt";
/// Name of the file to measure, in the mounted file system.
pub(crate) const FILE: &str = "file";

/// A mounted file system on a loop device.
pub(crate) struct FileSystem {
    /// Path of the loop device, such as `/dev/loop7`.
    device: String,
    fstype: String,
    mkfs: Vec<String>,
    mount: Vec<String>,
}

impl FileSystem {
    fn wanted(&self) -> Wanted<'_> {
        Wanted {
            fstype: &self.fstype,
            mkfs: &self.mkfs,
            mount: &self.mount,
        }
    }
}

/// Supported file systems: type, the mkfs options that suppress questions, and the packages of the tool in Debian and
/// Fedora.
const KNOWN: [(&str, &[&str], &str, &str); 6] = [
    ("ext2", &["-q", "-F"], "e2fsprogs", "e2fsprogs"),
    ("ext3", &["-q", "-F"], "e2fsprogs", "e2fsprogs"),
    ("ext4", &["-q", "-F"], "e2fsprogs", "e2fsprogs"),
    ("xfs", &["-q", "-f"], "xfsprogs", "xfsprogs"),
    ("btrfs", &["-q", "-f"], "btrfs-progs", "btrfs-progs"),
    ("f2fs", &["-q", "-f"], "f2fs-tools", "f2fs-tools"),
];

/// Requested type and options of a file system.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub fstype: &'a str,
    pub mkfs: &'a [String],
    pub mount: &'a [String],
}

pub(crate) fn build(
    things: &mut Things<'_>,
    wanted: Wanted<'_>,
    size: Bytes,
    cancel: &Cancel,
) -> Result<FileSystem, ArmError> {
    let device = make_empty_filesystem(things, wanted, size, cancel)?;
    let path = things.kept(MOUNT).join(FILE);
    new_file(&path)?;
    fill(&path, size, things.seed(), cancel)?;
    Ok(FileSystem {
        device,
        fstype: wanted.fstype.to_owned(),
        mkfs: wanted.mkfs.to_vec(),
        mount: wanted.mount.to_vec(),
    })
}

/// Creates and mounts the file system with space for `size` bytes. Returns its loop device.
pub(crate) fn make_empty_filesystem(
    things: &mut Things<'_>,
    wanted: Wanted<'_>,
    size: Bytes,
    cancel: &Cancel,
) -> Result<String, ArmError> {
    wanted.check()?;
    if !rustix::process::geteuid().is_root() {
        return Err(ArmError::NotRoot {
            what: "making and mounting a file system",
        });
    }
    // Space for the file system's own tables and logs; the backing file is sparse, so only written data uses
    // space.
    let backing_size = (size.0 + size.0 / 4 + (512 << 20)).next_multiple_of(1 << 20);
    things.room(Bytes(size.0 + size.0 / 16 + (128 << 20)))?;
    let backing = things.create(BACKING)?;
    let sized = backing.file().set_len(backing_size);
    sized.map_err(ArmError::io(backing.shown()))?;
    let dir = things.dir().to_owned();
    let shown = things.shown().join(BACKING);
    let (_, device) = things.attach(backing.file(), shown, true, true)?;
    wanted.make(things, &dir, &device, cancel)?;
    wanted.mount(things, &dir, MOUNT, &device, cancel)?;
    Ok(device)
}

/// Creates an empty file for this user only.
pub(crate) fn new_file(path: &Path) -> Result<(), ArmError> {
    File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(ArmError::io(path))?;
    Ok(())
}

/// Overwrites the whole file or block device with data that can be neither compressed nor deduplicated.
pub(crate) fn fill(path: &Path, size: Bytes, seed: u64, cancel: &Cancel) -> Result<(), ArmError> {
    let is_device = fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device());
    let held = match is_device {
        true => Held::open_device(path, Access::ReadWrite)?,
        false => Held::open(path, Access::ReadWrite)?,
    };
    layout::fill(&held, size, seed, cancel, &mut |_, _| {}).map_err(|error| match error {
        layout::LayoutError::Cancelled => ArmError::Cancelled,
        layout::LayoutError::Open(source) => ArmError::Host(source),
        layout::LayoutError::Io {
            written,
            size,
            source,
        } => ArmError::Fill {
            path: path.to_owned(),
            written,
            size,
            source,
        },
    })
}

impl Wanted<'_> {
    /// Refuses options that could affect a device or file outside the arm.
    fn check(&self) -> Result<(), ArmError> {
        let refuse = |what: &str, reason: String| {
            Err(ArmError::Refused {
                what: what.escape_debug().to_string(),
                source: reason.into(),
            })
        };
        if !KNOWN.iter().any(|(name, ..)| *name == self.fstype) {
            let known: Vec<_> = KNOWN.iter().map(|(name, ..)| *name).collect();
            return refuse(
                self.fstype,
                format!("assay makes these file systems: {}", known.join(", ")),
            );
        }
        for word in self.mkfs.iter().chain(self.mount) {
            if word.contains('/') || word.contains("device=") || word.contains('\0') {
                return refuse(
                    word,
                    "options that name another file or device are not taken: the arm has one \
                     device, its own"
                        .to_owned(),
                );
            }
        }
        Ok(())
    }

    /// Creates the file system with `mkfs.TYPE`.
    pub fn make(
        &self,
        things: &Things<'_>,
        dir: &Path,
        device: &str,
        cancel: &Cancel,
    ) -> Result<(), ArmError> {
        let Some((name, quiet, debian, fedora)) =
            KNOWN.iter().find(|(name, ..)| *name == self.fstype)
        else {
            return Ok(());
        };
        let mkfs = find(
            things.host,
            &format!("mkfs.{name}"),
            Package { debian, fedora },
        )?;
        let program = Program {
            path: &mkfs,
            dir,
            log: "mkfs.log",
        };
        let mut args: Vec<&str> = quiet.to_vec();
        args.extend(self.mkfs.iter().map(String::as_str));
        args.push(device);
        program.run(&args, cancel).map(drop)
    }

    /// Mounts the file system on the directory `name`; messages of mount go to a file in `dir`.
    pub fn mount(
        &self,
        things: &mut Things<'_>,
        dir: &Path,
        name: &str,
        device: &str,
        cancel: &Cancel,
    ) -> Result<MadeId, ArmError> {
        let mount = find(things.host, "mount", UTIL_LINUX)?;
        let mountpoint = things.keep(name)?;
        let id = things.enter(&Made::Mount {
            mountpoint: mountpoint.clone(),
        })?;
        let program = Program {
            path: &mount,
            dir,
            log: "mount.log",
        };
        let options = self.mount.join(",");
        let mut args: Vec<&OsStr> = vec!["-t".as_ref(), self.fstype.as_ref()];
        if !options.is_empty() {
            args.extend([OsStr::new("-o"), options.as_ref()]);
        }
        args.extend([OsStr::new(device), mountpoint.as_os_str()]);
        program.run(&args, cancel)?;
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_option_reaches_another_device() {
        for word in ["/dev/sda", "-Jdevice=LABEL=x", "logdev=/dev/sdb"] {
            let word = [word.to_owned()];
            for (mkfs, mount) in [(&word[..], &[][..]), (&[], &word)] {
                let wanted = Wanted {
                    fstype: "ext4",
                    mkfs,
                    mount,
                };
                assert!(matches!(wanted.check(), Err(ArmError::Refused { .. })));
            }
        }
        let wanted = Wanted {
            fstype: "../bin/sh",
            mkfs: &[],
            mount: &[],
        };
        assert!(
            wanted
                .check()
                .unwrap_err()
                .to_string()
                .contains("ext4, xfs")
        );
    }
}
