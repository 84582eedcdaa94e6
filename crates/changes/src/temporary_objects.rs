//! Objects that assay creates and removes again. The name of each object contains the session's tag, and an object
//! without the tag is never removed. Therefore neither a damaged nor a forged journal can cause the removal of another
//! program's object.

mod dataset;
mod mapping;
mod volume;

pub(crate) use mapping::find_mapping;

pub use volume::is_lvm_name;

use crate::error::ChangeError;
use assay_host::held::Removed;
use assay_host::{HostError, HostMut, KnownFile, Limits, ProcessId};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// An object that assay creates. Paths are absolute. Except for processes, one component of the name contains
/// [`crate::ChangeSession::tag`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Made {
    /// A regular file.
    File(#[serde(with = "assay_host::path_json")] PathBuf),
    /// A directory with all of its contents.
    Directory(#[serde(with = "assay_host::path_json")] PathBuf),
    /// A process. Record it directly after the start, and start it with `PR_SET_PDEATHSIG`, so that the kernel
    /// kills it when assay ends.
    Process {
        /// Id of the process.
        pid: i32,
        /// Field 22 of `/proc/PID/stat`, which distinguishes the process from a later one with the same id.
        start: u64,
    },
    /// All loop devices on a file.
    Loop {
        /// The file below the loop devices.
        #[serde(with = "assay_host::path_json")]
        backing: PathBuf,
    },
    /// All mounts on a directory.
    Mount {
        /// The mount point.
        #[serde(with = "assay_host::path_json")]
        mountpoint: PathBuf,
    },
    /// A named network namespace (ip-netns(8)), with its devices.
    Netns {
        /// Name of the namespace, which contains the tag.
        name: String,
    },
    /// A ZFS file system or volume. Create it with the property [`Made::ZFS_MARK`] set to
    /// [`crate::ChangeSession::tag`]; a dataset without this property is never destroyed.
    Dataset {
        /// `pool/…/name`; the last part contains the tag.
        name: String,
    },
    /// A file, a directory, or all loop devices on a file, with the identity of the file. The identity is needed
    /// because the owner of the parent directory may give the same name to another file.
    Known {
        /// The file, directory or loop devices.
        thing: Box<Made>,
        /// Identity of the file or directory, or of the file below the loop devices.
        known: KnownFile,
    },
    /// An LVM logical volume. Create it with [`crate::ChangeSession::tag`] among its LVM tags (`--addtag`); a
    /// volume without this tag is never removed.
    LogicalVolume {
        /// Name of the volume group.
        group: String,
        /// Name of the logical volume, which contains the tag.
        name: String,
    },
    /// A device of the device mapper (dmsetup(8)).
    Mapping {
        /// Name of the device, which contains the tag.
        name: String,
    },
}

impl Made {
    /// Name of the user property that marks datasets of assay (zfsprops(7), "User Properties").
    pub const ZFS_MARK: &str = "assay:session";
}

impl From<ProcessId> for Made {
    fn from(process: ProcessId) -> Self {
        Self::Process {
            pid: process.pid,
            start: process.start,
        }
    }
}

impl std::fmt::Display for Made {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Directory(path) => write!(f, "directory {}", path.display()),
            Self::Process { pid, .. } => write!(f, "process {pid}"),
            Self::Loop { backing } => write!(f, "loop device on {}", backing.display()),
            Self::Mount { mountpoint } => write!(f, "mount on {}", mountpoint.display()),
            Self::Netns { name } => write!(f, "network namespace {name}"),
            Self::Dataset { name } => write!(f, "ZFS dataset {name}"),
            Self::LogicalVolume { group, name } => write!(f, "logical volume {group}/{name}"),
            Self::Mapping { name } => write!(f, "device-mapper device {name}"),
            Self::Known { thing, .. } => thing.fmt(f),
        }
    }
}

/// Time to wait until the kernel releases a loop device or a mount.
const SETTLING: Duration = Duration::from_secs(5);
/// `errno` of a directory that is not empty (rmdir(2)).
const NOT_EMPTY: i32 = rustix::io::Errno::NOTEMPTY.raw_os_error();

impl Made {
    /// Fails if the object's name shows that it does not belong to the session with this tag.
    pub(crate) fn check(&self, tag: &str) -> Result<(), ChangeError> {
        let path = match self {
            Self::File(path) | Self::Directory(path) => path,
            Self::Loop { backing } => backing,
            Self::Mount { mountpoint } => mountpoint,
            Self::Process { .. } => return Ok(()),
            Self::Known { thing, .. } => return thing.check(tag),
            Self::Netns { name } => Path::new(name),
            // Only the object's own name counts, not the names above it.
            Self::Dataset { name } => Path::new(name.rsplit('/').next().unwrap_or_default()),
            Self::LogicalVolume { name, .. } | Self::Mapping { name } => Path::new(name),
        };
        let plain = |name: &OsStr| name != ".." && name != ".";
        let rooted = match self {
            Self::Netns { name } => !name.contains('/'),
            Self::Dataset { name } => dataset::is_below_a_pool(name),
            Self::LogicalVolume { group, name } => [group, name]
                .into_iter()
                .all(|name| volume::is_lvm_name(name)),
            Self::Mapping { name } => volume::is_lvm_name(name),
            _ => path.is_absolute() && path.iter().all(plain),
        };
        let holds = |name: &OsStr| {
            let mut parts = name.as_bytes().windows(tag.len());
            parts.any(|part| part == tag.as_bytes())
        };
        match rooted && path.iter().any(holds) {
            true => Ok(()),
            false => Err(ChangeError::refused(
                self.to_string(),
                format!("not a name that assay may make or remove now (none with {tag} in it)"),
            )),
        }
    }

    /// Whether the object can still exist after a reboot.
    pub(crate) fn survives_reboot(&self) -> bool {
        match self {
            Self::File(_)
            | Self::Directory(_)
            | Self::Dataset { .. }
            | Self::LogicalVolume { .. } => true,
            Self::Known { thing, .. } => thing.survives_reboot(),
            Self::Process { .. }
            | Self::Loop { .. }
            | Self::Mount { .. }
            | Self::Mapping { .. }
            | Self::Netns { .. } => false,
        }
    }

    /// Whether an object with this name exists now.
    pub(crate) fn is_there(&self, host: &dyn HostMut) -> Result<bool, ChangeError> {
        Ok(match self {
            Self::File(path) | Self::Directory(path) => path_exists(host, path)?,
            Self::Process { .. } => false,
            Self::Loop { backing } => !find_loop_devices(host, backing)?.is_empty(),
            Self::Mount { mountpoint } => is_mounted(host, mountpoint)?,
            Self::Netns { name } => path_exists(host, &Path::new("/run/netns").join(name))?,
            Self::Dataset { name } => dataset::is_there(host, name)?,
            Self::LogicalVolume { group, name } => volume::find(host, group, name)?.is_some(),
            Self::Mapping { name } => find_mapping(host, name)?.is_some(),
            Self::Known { thing, known } => match &**thing {
                Self::Loop { .. } => !host.loops(known.identity)?.is_empty(),
                thing => thing.is_there(host)?,
            },
        })
    }

    /// Removes the object and checks that it no longer exists. A missing object is no error.
    pub(crate) fn unmake(&self, host: &dyn HostMut, tag: &str) -> Result<(), ChangeError> {
        self.check(tag)?;
        match self {
            Self::File(path) | Self::Directory(path) => self.removed(host, path, None)?,
            Self::Known { thing, known } => match &**thing {
                Self::File(path) | Self::Directory(path) => {
                    self.removed(host, path, Some(known))?;
                }
                Self::Loop { .. } => {
                    for node in host.loops(known.identity)? {
                        host.detach_loop(&node, known.identity)?;
                    }
                    self.wait(host)?;
                }
                other => return other.unmake(host, tag),
            },
            Self::Process { pid, start } => host.kill(ProcessId {
                pid: *pid,
                start: *start,
            })?,
            Self::Loop { backing } => {
                for device in find_loop_devices(host, backing)? {
                    self.command(
                        host,
                        &[OsStr::new("losetup"), "-d".as_ref(), device.as_ref()],
                    )?;
                }
                self.wait(host)?;
            }
            Self::Mount { mountpoint } => {
                // Several mounts may be stacked on one directory.
                while is_mounted(host, mountpoint)? {
                    let path = mountpoint.as_os_str();
                    self.retried(host, &[OsStr::new("umount"), "--".as_ref(), path])?;
                }
            }
            Self::Netns { name } => {
                if self.is_there(host)? {
                    let name = OsStr::new(name);
                    let argv = ["ip".as_ref(), "netns".as_ref(), "delete".as_ref(), name];
                    self.command(host, &argv)?;
                    self.wait(host)?;
                }
            }
            Self::Dataset { name } => {
                if self.is_there(host)? {
                    dataset::check_mark(host, name, tag)?;
                    dataset::destroy_snapshots(host, name)?;
                    // udev may still have a new volume open.
                    let argv = ["zfs", "destroy", name].map(OsStr::new);
                    self.retried(host, &argv)?;
                }
            }
            Self::Mapping { name } => {
                if self.is_there(host)? {
                    // udev may still have a new device open.
                    let argv = ["dmsetup", "remove", "--", name].map(OsStr::new);
                    self.retried(host, &argv)?;
                    self.wait(host)?;
                }
            }
            Self::LogicalVolume { group, name } => {
                if let Some(found) = volume::find(host, group, name)? {
                    volume::check_removable(&found, group, name, tag)?;
                    let path = format!("{group}/{name}");
                    let argv = ["lvremove", "--yes", "--quiet", &path].map(OsStr::new);
                    self.retried(host, &argv)?;
                }
            }
        }
        Ok(())
    }

    fn removed(
        &self,
        host: &dyn HostMut,
        path: &Path,
        known: Option<&KnownFile>,
    ) -> Result<(), ChangeError> {
        match host.remove_made(path, known) {
            Ok(Removed::Gone | Removed::Absent) => Ok(()),
            Ok(Removed::Another) => Err(ChangeError::refused(
                self.to_string(),
                "not removed: it was moved away, or another file system lies there now, and what became \
                 of it cannot be told; look for it, remove it, and then let assay forget it with \
                 `assay trial --recover --accept`",
            )),
            Ok(Removed::Emptied) => Err(ChangeError::refused(
                self.to_string(),
                "it was moved away, and its present name is unknown; it was emptied, so that it takes \
                 no space: look for it, remove it, and then let assay forget it with \
                 `assay trial --recover --accept`",
            )),
            Err(error) if error.is_absent() => Ok(()),
            Err(error) if known.is_none() && error.errno() == Some(NOT_EMPTY) => {
                Err(ChangeError::refused(
                    self.to_string(),
                    "not removed: it is not empty, assay was killed before it had written down which \
                     directory it made, and the owner of the directory above could have put another \
                     one in its place; remove it yourself",
                ))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn command(&self, host: &dyn HostMut, argv: &[&OsStr]) -> Result<(), ChangeError> {
        let output = host.run(argv, Limits::default())?;
        match output.success() {
            true => Ok(()),
            false => Err(ChangeError::Command {
                what: self.to_string(),
                command: crate::setting::command_line(argv),
                reason: output.complaint(),
            }),
        }
    }

    /// Runs a command several times if it fails, because another program may use a mount for a moment.
    fn retried(&self, host: &dyn HostMut, argv: &[&OsStr]) -> Result<(), ChangeError> {
        let deadline = Instant::now() + SETTLING;
        loop {
            match self.command(host, argv) {
                Err(ChangeError::Command { .. })
                    if Instant::now() < deadline && self.is_there(host)? =>
                {
                    std::thread::sleep(Duration::from_millis(50));
                }
                Err(_) if !self.is_there(host)? => return Ok(()),
                other => return other,
            }
        }
    }

    fn wait(&self, host: &dyn HostMut) -> Result<(), ChangeError> {
        let deadline = Instant::now() + SETTLING;
        while self.is_there(host)? {
            if Instant::now() >= deadline {
                let reason = "was removed but still exists: something uses it";
                return Err(ChangeError::refused(self.to_string(), reason));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

/// Whether a name exists, even as a dangling symbolic link.
fn path_exists(host: &dyn HostMut, path: &Path) -> Result<bool, HostError> {
    Ok(host.exists(path)? || host.link(path).is_ok())
}

/// Finds the device nodes of the loop devices on a file that no other user can rename. The kernel and the
/// journal both use the path without symbolic links.
fn find_loop_devices(host: &dyn HostMut, backing: &Path) -> Result<Vec<PathBuf>, HostError> {
    let mut found = Vec::new();
    for name in host.list(Path::new("/sys/block"))? {
        if !name.as_bytes().starts_with(b"loop") {
            continue;
        }
        let attribute = Path::new("/sys/block")
            .join(&name)
            .join("loop/backing_file");
        let file = match host.read(&attribute) {
            Ok(file) => file,
            // Devices without a file do not have this attribute.
            Err(error) if error.is_absent() => continue,
            Err(error) => return Err(error),
        };
        let file = file.strip_suffix(b"\n").unwrap_or(&file);
        // The kernel appends this to the name of a removed file.
        let plain = file.strip_suffix(b" (deleted)").unwrap_or(file);
        let same = |path: &Path| [file, plain].contains(&path.as_os_str().as_bytes());
        if same(backing) {
            found.push(Path::new("/dev").join(name));
        }
    }
    Ok(found)
}

/// Whether something is mounted on the path. The journal and the kernel both use the path without symbolic links, so a
/// symbolic link that exists at the path now is not followed.
fn is_mounted(host: &dyn HostMut, mountpoint: &Path) -> Result<bool, HostError> {
    let table = host.read(Path::new("/proc/self/mounts"))?;
    Ok(crate::setting::parse_mounts(&table).any(|mount| mount.mountpoint == mountpoint))
}
