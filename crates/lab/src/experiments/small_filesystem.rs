//! Creates a small file system that can be filled. It consists of a file, a loop device and a mount.
//!
//! The mount is in a mount namespace of the calling thread. When assay ends for any reason, the kernel removes the
//! namespace with the mount and the loop device. The file is in a directory that assay cleans up at its next start.

use crate::{GuestDirectory, GuestRegistry, LabError, run_here};
use assay_host::{Host as _, Limits, LiveHost};
use rustix::fs::{FallocateFlags, fallocate};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Size of the file system in bytes. mkfs.xfs needs at least 300 MiB. The backing file is sparse.
const SIZE: u64 = 512 << 20;
/// Name of the file that fills the file system.
const BALLAST: &str = "ballast";

/// File systems that report a lack of space at the write itself and not later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostFs {
    /// File system ext4.
    Ext4,
    /// File system XFS.
    Xfs,
}

impl HostFs {
    /// Returns the type of the file system for `mkfs` and `mount`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }

    fn mkfs(self) -> (&'static str, &'static [&'static str], &'static str) {
        match self {
            // Nothing is reserved for root, because assay runs as root.
            Self::Ext4 => ("mkfs.ext4", &["-q", "-F", "-m", "0"], "e2fsprogs"),
            Self::Xfs => ("mkfs.xfs", &["-q", "-f"], "xfsprogs"),
        }
    }
}

/// A mounted small file system, which is removed on drop.
#[derive(Debug)]
pub(crate) struct Room {
    place: GuestDirectory,
    mount: PathBuf,
}

impl Room {
    /// Creates and mounts the file system. Only this thread sees the mount, and the processes and threads that it
    /// starts later. Therefore call this function on a separate thread.
    pub(crate) fn make(state: &GuestRegistry, name: &str, kind: HostFs) -> Result<Self, LabError> {
        if !rustix::process::geteuid().is_root() {
            return Err(LabError::Refused {
                path: PathBuf::from("mount"),
                errno: 1,
                reason: "making a small file system to fill up needs root".to_owned(),
            });
        }
        let place = state.add(name)?;
        let mount = place.dir.join("mnt");
        let room = Self { place, mount };
        let backing = room.place.dir.join("backing");
        File::create_new(&backing)
            .and_then(|file| file.set_len(SIZE))
            .map_err(LabError::io(&backing))?;
        fs::create_dir(&room.mount).map_err(LabError::io(&room.mount))?;
        let (mkfs, options, package) = kind.mkfs();
        let mut argv = vec![OsStr::new(mkfs)];
        argv.extend(options.iter().map(OsStr::new));
        argv.push(backing.as_os_str());
        command(&argv, mkfs, package)?;
        private_mounts().map_err(LabError::io(&room.mount))?;
        let quiet = ["mount", "--make-rprivate", "/"].map(OsStr::new);
        command(&quiet, "mount", "mount")?;
        let argv = ["mount", "-t", kind.name(), "-o", "loop,noatime", "--"].map(OsStr::new);
        let both = [backing.as_os_str(), room.mount.as_os_str()];
        command(&[&argv[..], &both].concat(), "mount", "mount")?;
        Ok(room)
    }

    /// Returns the mount point.
    pub(crate) fn path(&self) -> &Path {
        &self.mount
    }

    fn available(&self) -> Result<u64, LabError> {
        let found = LiveHost.statfs(&self.mount);
        let found = found.map_err(|error| LabError::io(&self.mount)(std::io::Error::other(error)));
        Ok(found?.available)
    }

    /// Fills the file system until at most `left` bytes are free. Returns the number of free bytes.
    pub(crate) fn leave(&self, left: u64) -> Result<u64, LabError> {
        let path = self.mount.join(BALLAST);
        let failed = || LabError::io(&path);
        let file = File::options()
            .create(true)
            .truncate(true)
            .write(true)
            .open(&path)
            .map_err(failed())?;
        // Freed space may count only after a sync.
        rustix::fs::syncfs(&file).map_err(|error| failed()(error.into()))?;
        let mut taken = 0;
        for _ in 0..16 {
            let free = self.available()?;
            if free <= left {
                break;
            }
            let more = free - left;
            fallocate(&file, FallocateFlags::empty(), taken, more)
                .map_err(|error| failed()(error.into()))?;
            taken += more;
        }
        self.available()
    }

    /// Frees the space that [`Room::leave`] occupied.
    pub(crate) fn free(&self) -> Result<(), LabError> {
        let path = self.mount.join(BALLAST);
        let file = File::options().write(true).open(&path);
        let file = file.map_err(LabError::io(&path))?;
        file.set_len(0).map_err(LabError::io(&path))?;
        // XFS frees space with a delay.
        rustix::fs::syncfs(&file).map_err(|error| LabError::io(&path)(error.into()))
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let argv = [
            OsStr::new("umount"),
            OsStr::new("--"),
            self.mount.as_os_str(),
        ];
        // If it is not mounted yet, this fails without harm.
        let _ = command(&argv, "umount", "mount");
        // Not through a mount: an empty directory can be removed, a mount point cannot.
        if fs::remove_dir(&self.mount).is_ok() || !self.mount.exists() {
            let _ = fs::remove_dir_all(&self.place.dir);
        }
    }
}

/// Gives the calling thread its own mount namespace.
#[allow(
    unsafe_code,
    reason = "unshare(2) is unsafe for file descriptors alone"
)]
fn private_mounts() -> std::io::Result<()> {
    // SAFETY: without CLONE_FILES, file descriptors stay shared between the threads.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNS) }?;
    Ok(())
}

fn command(argv: &[&OsStr], tool: &'static str, package: &'static str) -> Result<(), LabError> {
    let limits = Limits {
        timeout: Duration::from_secs(60),
    };
    run_here(argv, limits, (tool, package), |reason| LabError::Refused {
        path: PathBuf::from(tool),
        errno: 0,
        reason,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_fills_up_is_freed_and_goes() {
        if !rustix::process::geteuid().is_root() {
            assay_testing::skipped("root", "a loop device needs root");
            return;
        }
        let home = tempfile::tempdir().unwrap();
        let state = GuestRegistry::open(home.path()).unwrap();
        let seen = std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                let room = Room::make(&state, "room", HostFs::Ext4)?;
                assert!(room.leave(1 << 20)? <= 1 << 20);
                let path = room.path().join("data");
                let full = fs::write(&path, vec![1; 2 << 20]).unwrap_err();
                assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
                room.free()?;
                fs::write(&path, vec![1; 2 << 20]).unwrap();
                Ok::<_, LabError>(room.place.dir.clone())
            });
            inside.join().unwrap()
        });
        let dir = match seen {
            Ok(dir) => dir,
            // Loop devices are unavailable.
            Err(error) => {
                assay_testing::skipped("loop", error);
                return;
            }
        };
        assert!(!dir.exists());
    }
}
