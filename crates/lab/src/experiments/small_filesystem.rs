//! A small file system of our own to run out of space on: a file, a loop device, a mount.
//!
//! The mount lives in a mount namespace of the calling thread. When assay ends, however it ends,
//! the kernel drops the namespace, with it the mount, and with that the loop device; the file lies
//! in a directory that the next start sweeps.

use crate::{GuestDirectory, GuestRegistry, LabError, run_here};
use assay_host::{Host as _, Limits, LiveHost};
use rustix::fs::{FallocateFlags, fallocate};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The whole file system, in bytes: the least that mkfs.xfs makes is 300 MiB. The file is sparse.
const SIZE: u64 = 512 << 20;
/// Name of the file that takes up what nobody is to have.
const BALLAST: &str = "ballast";

/// File systems that fill up where the guest writes, and say so at the write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostFs {
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
}

impl HostFs {
    /// Its name in mkfs and mount.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }

    fn mkfs(self) -> (&'static str, &'static [&'static str], &'static str) {
        match self {
            // Nothing is reserved for root: assay is root.
            Self::Ext4 => ("mkfs.ext4", &["-q", "-F", "-m", "0"], "e2fsprogs"),
            Self::Xfs => ("mkfs.xfs", &["-q", "-f"], "xfsprogs"),
        }
    }
}

/// The file system; it goes when this is dropped.
#[derive(Debug)]
pub(crate) struct Room {
    place: GuestDirectory,
    mount: PathBuf,
}

impl Room {
    /// Makes and mounts it, seen by this thread and the processes and threads it starts from now
    /// on, by nobody else. So this is for a thread of its own.
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

    /// Where it is mounted.
    pub(crate) fn path(&self) -> &Path {
        &self.mount
    }

    fn available(&self) -> Result<u64, LabError> {
        let found = LiveHost.statfs(&self.mount);
        let found = found.map_err(|error| LabError::io(&self.mount)(std::io::Error::other(error)));
        Ok(found?.available)
    }

    /// Takes up space until no more than `left` bytes are free. Returns what is free then.
    pub(crate) fn leave(&self, left: u64) -> Result<u64, LabError> {
        let path = self.mount.join(BALLAST);
        let failed = || LabError::io(&path);
        let file = File::options()
            .create(true)
            .truncate(true)
            .write(true)
            .open(&path)
            .map_err(failed())?;
        // What was given back before may be counted as free only after a sync.
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

    /// Gives back what [`Room::leave`] took.
    pub(crate) fn free(&self) -> Result<(), LabError> {
        let path = self.mount.join(BALLAST);
        let file = File::options().write(true).open(&path);
        let file = file.map_err(LabError::io(&path))?;
        file.set_len(0).map_err(LabError::io(&path))?;
        // XFS gives back later than it says.
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
        // Where it was not mounted yet this fails, and nothing has to be done.
        let _ = command(&argv, "umount", "mount");
        // Not through a mount: an empty directory can be removed, a mounted one cannot.
        if fs::remove_dir(&self.mount).is_ok() || !self.mount.exists() {
            let _ = fs::remove_dir_all(&self.place.dir);
        }
    }
}

/// Gives the calling thread mounts of its own.
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
            // No loop devices here.
            Err(error) => {
                assay_testing::skipped("loop", error);
                return;
            }
        };
        assert!(!dir.exists());
    }
}
