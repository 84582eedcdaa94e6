//! Implements a host for this machine: reads files and runs commands.

use crate::error::HostError;
use crate::{
    CommandOutput, DeviceNumber, FileKind, Host, Limits, MAX_BYTES, REPEATED, Stat, StatFs, command,
};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, StatxFlags};
use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::ops::ControlFlow;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// This machine, from the view of this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct LiveHost;

/// Directories with commands for administrators. The `PATH` of an ordinary user may lack them.
const SBIN: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Number of bytes that [`Host::scan`] reads in one call.
const PIECE: usize = 1 << 20;

/// Number of bytes of a short file that are read in one call.
const SHORT: usize = 4096;

/// Opens a file for reading.
fn open_any(path: &Path) -> Result<std::fs::File, HostError> {
    // Non-blocking: the name may refer to a pipe without a writer.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)
        .map_err(|error| HostError::io(path, &error))
}

/// Opens a regular file for reading.
fn open(path: &Path) -> Result<std::fs::File, HostError> {
    let fail = |error: std::io::Error| HostError::io(path, &error);
    let file = open_any(path)?;
    match file.metadata().map_err(fail)?.is_file() {
        true => Ok(file),
        false => Err(HostError::path(path, "not a regular file")),
    }
}

impl Host for LiveHost {
    fn read(&self, path: &Path) -> Result<Vec<u8>, HostError> {
        let fail = |error: std::io::Error| HostError::io(path, &error);
        let file = open(path)?;
        // Files of /proc have no size: with room for most of them, two reads suffice.
        let mut bytes = Vec::with_capacity(4096);
        file.take(MAX_BYTES as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(fail)?;
        match bytes.len() > MAX_BYTES {
            true => Err(HostError::path(
                path,
                format!("longer than {} MiB", MAX_BYTES >> 20),
            )),
            false => Ok(bytes),
        }
    }

    fn scan(
        &self,
        path: &Path,
        look: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), HostError> {
        let mut file = open(path)?;
        let mut piece = vec![0; PIECE];
        let mut kept = 0;
        loop {
            let got = match file.read(&mut piece[kept..]) {
                Ok(got) => got,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(HostError::io(path, &error)),
            };
            let end = kept + got;
            if got == 0 || look(&piece[..end]).is_break() {
                return Ok(());
            }
            kept = end.min(REPEATED);
            piece.copy_within(end - kept..end, 0);
        }
    }

    fn read_short(&self, path: &Path) -> Result<Vec<u8>, HostError> {
        // Only in these trees is one read the whole of a short file; links from there lead elsewhere.
        if !path.starts_with("/proc") || path.components().count() > 4 {
            return self.read(path);
        }
        let mut bytes = vec![0; SHORT];
        let got = open_any(path)?.read(&mut bytes);
        match got.map_err(|error| HostError::io(path, &error))? {
            got if got < SHORT => {
                bytes.truncate(got);
                Ok(bytes)
            }
            _ => self.read(path),
        }
    }

    fn open_to_read_again(&self, path: &Path) -> Option<std::fs::File> {
        open(path).ok()
    }

    fn list(&self, dir: &Path) -> Result<Vec<OsString>, HostError> {
        let fail = |error: std::io::Error| HostError::io(dir, &error);
        let entries = std::fs::read_dir(dir).map_err(fail)?;
        let mut names = entries
            .map(|entry| Ok(entry.map_err(fail)?.file_name()))
            .collect::<Result<Vec<_>, HostError>>()?;
        names.sort();
        Ok(names)
    }

    fn link(&self, path: &Path) -> Result<PathBuf, HostError> {
        std::fs::read_link(path).map_err(|error| HostError::io(path, &error))
    }

    fn realpath(&self, path: &Path) -> Result<PathBuf, HostError> {
        path.canonicalize()
            .map_err(|error| HostError::io(path, &error))
    }

    fn stat(&self, path: &Path) -> Result<Stat, HostError> {
        // Cached attributes are enough: a hanging network file system must not block assay.
        let flags = AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
        match rustix::fs::statx(CWD, path, flags, StatxFlags::TYPE | StatxFlags::SIZE) {
            Ok(found) => Ok(Stat {
                kind: to_file_kind(FileType::from_raw_mode(found.stx_mode.into())),
                size: found.stx_size,
                dev: DeviceNumber {
                    major: found.stx_dev_major,
                    minor: found.stx_dev_minor,
                },
                rdev: DeviceNumber {
                    major: found.stx_rdev_major,
                    minor: found.stx_rdev_minor,
                },
            }),
            // Some sandboxes refuse statx.
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {
                let found = path
                    .metadata()
                    .map_err(|error| HostError::io(path, &error))?;
                Ok(Stat {
                    kind: to_file_kind(FileType::from_raw_mode(found.mode())),
                    size: found.size(),
                    dev: to_device_number(found.dev()),
                    rdev: to_device_number(found.rdev()),
                })
            }
            Err(error) => Err(HostError::io(path, &error.into())),
        }
    }

    fn modified(&self, path: &Path) -> Option<i64> {
        let flags = AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
        let found = rustix::fs::statx(CWD, path, flags, StatxFlags::MTIME).ok()?;
        Some(found.stx_mtime.tv_sec)
    }

    fn statfs(&self, path: &Path) -> Result<StatFs, HostError> {
        let found =
            rustix::fs::statvfs(path).map_err(|error| HostError::io(path, &error.into()))?;
        Ok(StatFs {
            total: found.f_blocks.saturating_mul(found.f_frsize),
            available: found.f_bavail.saturating_mul(found.f_frsize),
        })
    }

    fn open_exclusive(&self, path: &Path) -> Result<(), HostError> {
        let flags =
            OFlags::RDONLY | OFlags::EXCL | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(_) => Ok(()),
            Err(error) => Err(HostError::io(path, &error.into())),
        }
    }

    fn run(&self, argv: &[&OsStr], limits: Limits) -> Result<CommandOutput, HostError> {
        let name = argv.first().copied().unwrap_or_default();
        let program = self.which(name).ok_or_else(|| HostError::NoCommand {
            name: name.to_string_lossy().into_owned(),
        })?;
        command::run(&program, argv, limits)
    }

    fn which(&self, name: &OsStr) -> Option<PathBuf> {
        let given = Path::new(name);
        if given.components().count() > 1 {
            return is_executable(given).then(|| given.to_owned());
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        // An empty or relative entry would run programs in the directory under test.
        let dirs = std::env::split_paths(&path).filter(|dir| dir.is_absolute());
        dirs.chain(SBIN.map(PathBuf::from))
            .map(|dir| dir.join(name))
            .find(|path| is_executable(path))
    }
}

fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

fn to_device_number(device: u64) -> DeviceNumber {
    DeviceNumber {
        major: rustix::fs::major(device),
        minor: rustix::fs::minor(device),
    }
}

fn to_file_kind(file_type: FileType) -> FileKind {
    match file_type {
        FileType::Directory => FileKind::Directory,
        FileType::RegularFile => FileKind::Regular,
        FileType::BlockDevice => FileKind::BlockDevice,
        _ => FileKind::Other,
    }
}
