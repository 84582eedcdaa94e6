//! The write side of the door, apart from reading so that what only looks can never change.

use crate::error::HostError;
use crate::held::{Identity, Removed};
use crate::lockdir::LockDirectory;
use crate::replace::{self, FileVersion, Times};
use crate::{Host, KnownFile, LiveHost, Root};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A process that cannot be mistaken for another one with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessId {
    /// Its number.
    pub pid: i32,
    /// When it was started, in clock ticks since boot: field 22 of `/proc/PID/stat` (proc(5)).
    pub start: u64,
}

/// A machine that can be changed. Every call is durable when it returns, where its file system
/// knows durability.
pub trait HostMut: Host {
    /// Makes sure that a file has a permission bit for writing at all. Root may open a file without
    /// one, and learns only from write(2) that the kernel takes nothing there.
    ///
    /// # Errors
    /// Not there, read-only, or a link stands on the way to it.
    fn check_writable(&self, path: &Path) -> Result<(), HostError>;

    /// Writes `bytes` with one write(2) to a file that exists, as the attributes in /proc and /sys
    /// want it.
    ///
    /// # Errors
    /// Not there, not allowed, a link stands on the way to it, or refused by the kernel (EINVAL: it
    /// does not like the value).
    fn write_in_place(&self, path: &Path, bytes: &[u8]) -> Result<(), HostError>;

    /// Reads a file that may be replaced, and sees which one it is. The path holds no link.
    ///
    /// # Errors
    /// Not there, not readable, not a regular file, or a link stands on the way to it.
    fn read_plain(&self, path: &Path) -> Result<(Vec<u8>, FileVersion), HostError> {
        Ok((self.read(path)?, FileVersion::plain(path)))
    }

    /// Makes a new file at `path` with these bytes, and with the owner, mode and extended
    /// attributes (ACLs and SELinux labels are such) of `like`, a file of the same directory; with
    /// these times, when some are given.
    ///
    /// # Errors
    /// There is a file already, `like` is no longer the file that was read or has other names (hard
    /// links, which a replacement would tear apart), or the owner cannot be kept.
    fn create_like(
        &self,
        path: &Path,
        like: &FileVersion,
        bytes: &[u8],
        times: Option<Times>,
    ) -> Result<(), HostError>;

    /// Gives the file `from` the name of a file of the same directory that was read, replacing that
    /// one at once.
    ///
    /// # Errors
    /// Somebody else replaced or wrote that file since it was read; as rename(2).
    fn exchange(&self, from: &Path, seen: &FileVersion) -> Result<(), HostError>;

    /// Where every assay of this machine sees which settings are changed: nothing of a machine in
    /// memory. `lasting` is for what outlives a boot.
    ///
    /// # Errors
    /// The directory cannot be used, or others may write in it.
    fn locks(&self, _lasting: bool) -> Result<Option<LockDirectory>, HostError> {
        Ok(None)
    }

    /// Which file or directory a path stands for, links followed: the same by whatever name it is
    /// called. Nothing of a machine in memory.
    ///
    /// # Errors
    /// As stat(2).
    fn identity(&self, _path: &Path) -> Result<Option<Identity>, HostError> {
        Ok(None)
    }

    /// Removes a file. The path holds no link.
    ///
    /// # Errors
    /// As unlink(2), or a link stands on the way to it.
    fn remove_file(&self, path: &Path) -> Result<(), HostError>;

    /// Removes a directory and everything in it. Links are not followed, and where another file
    /// system is mounted below, nothing of it is touched and the call fails.
    ///
    /// # Errors
    /// Not there, not a directory, not allowed, or something is mounted in it.
    fn remove_tree(&self, dir: &Path) -> Result<(), HostError>;

    /// Removes a file or directory that assay made, with everything in it, where it is now, and
    /// nothing else that has its name by now. It may not be known because assay was killed between
    /// making it and writing down what it made: then a directory that others could have exchanged
    /// goes only when it is empty.
    ///
    /// # Errors
    /// Not allowed, not empty, or something is mounted in it.
    fn remove_made(&self, path: &Path, known: Option<&KnownFile>) -> Result<Removed, HostError>;

    /// Nodes of the loop devices on a file.
    ///
    /// # Errors
    /// It cannot be found out.
    fn loops(&self, backing: Identity) -> Result<Vec<PathBuf>, HostError>;

    /// Takes a loop device away, if it is still on that file.
    ///
    /// # Errors
    /// Not allowed.
    fn detach_loop(&self, node: &Path, backing: Identity) -> Result<(), HostError>;

    /// Kills a process and waits until it is gone; one that is gone already, or whose number now
    /// belongs to another one, is left alone.
    ///
    /// # Errors
    /// Not allowed, or it does not go.
    fn kill(&self, process: ProcessId) -> Result<(), HostError>;

    /// Replaces the contents of a file at once: whoever opens it sees the old bytes or the new
    /// ones. `aside` is a name in the same directory that is used in between.
    ///
    /// # Errors
    /// As [`HostMut::create_like`] and [`HostMut::exchange`].
    fn replace_file(&self, path: &Path, aside: &Path, bytes: &[u8]) -> Result<(), HostError> {
        let (_, seen) = self.read_plain(path)?;
        self.create_like(aside, &seen, bytes, None)?;
        let renamed = self.exchange(aside, &seen);
        if renamed.is_err() {
            let _ = self.remove_file(aside);
        }
        renamed
    }
}

/// How long a killed process may take to go: it may sleep in the kernel.
const DYING: Duration = Duration::from_secs(10);

impl HostMut for LiveHost {
    fn check_writable(&self, path: &Path) -> Result<(), HostError> {
        replace::writable(path)
    }

    fn write_in_place(&self, path: &Path, bytes: &[u8]) -> Result<(), HostError> {
        replace::write_in_place(path, bytes)
    }

    fn read_plain(&self, path: &Path) -> Result<(Vec<u8>, FileVersion), HostError> {
        replace::read(path)
    }

    fn create_like(
        &self,
        path: &Path,
        like: &FileVersion,
        bytes: &[u8],
        times: Option<Times>,
    ) -> Result<(), HostError> {
        replace::create_like(path, like, bytes, times)
    }

    fn exchange(&self, from: &Path, seen: &FileVersion) -> Result<(), HostError> {
        replace::exchange(from, seen)
    }

    fn locks(&self, lasting: bool) -> Result<Option<LockDirectory>, HostError> {
        match lasting {
            true => LockDirectory::lasting().map(Some),
            false => LockDirectory::of_machine().map(Some),
        }
    }

    fn identity(&self, path: &Path) -> Result<Option<Identity>, HostError> {
        crate::held::read_identity(path).map(Some)
    }

    fn remove_file(&self, path: &Path) -> Result<(), HostError> {
        crate::remove::file(path)
    }

    fn remove_tree(&self, dir: &Path) -> Result<(), HostError> {
        crate::remove::tree(dir)
    }

    fn remove_made(&self, path: &Path, known: Option<&KnownFile>) -> Result<Removed, HostError> {
        crate::remove::remove_created(path, known)
    }

    fn loops(&self, backing: Identity) -> Result<Vec<PathBuf>, HostError> {
        crate::loops::find_loop_devices(backing)
    }

    fn detach_loop(&self, node: &Path, backing: Identity) -> Result<(), HostError> {
        crate::loops::detach(node, backing)
    }

    fn kill(&self, process: ProcessId) -> Result<(), HostError> {
        let stat = Path::new("/proc").join(process.pid.to_string());
        let fail = |error: Errno| HostError::io(&stat, &error.into());
        let Some(pid) = Pid::from_raw(process.pid) else {
            return Ok(());
        };
        // The handle is opened first, so that what is compared next is what will be killed.
        let handle = match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => handle,
            Err(Errno::SRCH) => return Ok(()),
            Err(error) => return Err(fail(error)),
        };
        if process_start_time(process.pid) != Some(process.start) {
            return Ok(());
        }
        match rustix::process::pidfd_send_signal(&handle, Signal::KILL) {
            Ok(()) | Err(Errno::SRCH) => {}
            Err(error) => return Err(fail(error)),
        }
        let deadline = Instant::now() + DYING;
        while process_start_time(process.pid) == Some(process.start) {
            if Instant::now() >= deadline {
                return Err(HostError::path(&stat, "was killed but does not end"));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }
}

/// When a process was started; nothing when there is none, or only a zombie that its parent has
/// not asked after.
fn process_start_time(pid: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (state, start) = parse_stat(&text)?;
    (!matches!(state, "Z" | "X")).then_some(start)
}

/// State (field 3) and start time (field 22) of `/proc/PID/stat`. The name in field 2 may hold
/// anything, also parentheses.
fn parse_stat(text: &str) -> Option<(&str, u64)> {
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

impl ProcessId {
    /// The identity of a live process of this machine.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        let pid = i32::try_from(pid).ok()?;
        Some(Self {
            pid,
            start: process_start_time(pid)?,
        })
    }
}

/// A captured machine is what it was.
impl HostMut for Root {
    fn check_writable(&self, path: &Path) -> Result<(), HostError> {
        Err(captured_error(path))
    }
    fn write_in_place(&self, path: &Path, _bytes: &[u8]) -> Result<(), HostError> {
        Err(captured_error(path))
    }
    fn create_like(
        &self,
        path: &Path,
        _like: &FileVersion,
        _bytes: &[u8],
        _times: Option<Times>,
    ) -> Result<(), HostError> {
        Err(captured_error(path))
    }
    fn exchange(&self, _from: &Path, seen: &FileVersion) -> Result<(), HostError> {
        Err(captured_error(&seen.path))
    }
    fn remove_file(&self, path: &Path) -> Result<(), HostError> {
        Err(captured_error(path))
    }
    fn remove_tree(&self, dir: &Path) -> Result<(), HostError> {
        Err(captured_error(dir))
    }
    fn remove_made(&self, path: &Path, _known: Option<&KnownFile>) -> Result<Removed, HostError> {
        Err(captured_error(path))
    }
    fn loops(&self, _backing: Identity) -> Result<Vec<PathBuf>, HostError> {
        Err(captured_error(Path::new("/sys/block")))
    }
    fn detach_loop(&self, node: &Path, _backing: Identity) -> Result<(), HostError> {
        Err(captured_error(node))
    }
    fn kill(&self, process: ProcessId) -> Result<(), HostError> {
        Err(captured_error(
            &Path::new("/proc").join(process.pid.to_string()),
        ))
    }
}

fn captured_error(path: &Path) -> HostError {
    HostError::path(
        path,
        "a captured machine cannot be changed: run this on the machine itself",
    )
}
