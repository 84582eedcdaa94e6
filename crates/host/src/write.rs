//! Write access to a machine. It is separate from read access, so that code that only reads cannot change anything.

use crate::error::HostError;
use crate::held::{Identity, Removed};
use crate::lockdir::LockDirectory;
use crate::replace::{self, FileVersion, Times};
use crate::{Host, KnownFile, LiveHost, Permissions, Root, new_files, permissions};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Identity of a process, which remains unique if the process number is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessId {
    /// Process number.
    pub pid: i32,
    /// Start time in clock ticks since boot (field 22 of `/proc/PID/stat`, proc(5)). It distinguishes two processes
    /// with the same number.
    pub start: u64,
}

/// A machine that can be changed. When a call returns, its change is on disk, if the file system supports this.
pub trait HostMut: Host {
    /// Checks that a file has a write permission bit. Without this check, root could open the file, and only the later
    /// write(2) would fail.
    ///
    /// # Errors
    /// The file does not exist, is read-only, or the path contains a link.
    fn check_writable(&self, path: &Path) -> Result<(), HostError>;

    /// Writes `bytes` with one write(2) to an existing file, as attributes in /proc and /sys require.
    ///
    /// # Errors
    /// The file does not exist, access is not permitted, the path contains a link, or the kernel rejects the value
    /// (EINVAL).
    fn write_in_place(&self, path: &Path, bytes: &[u8]) -> Result<(), HostError>;

    /// Reads a file that the caller may replace, and returns its content and state. The path must not contain a link.
    ///
    /// # Errors
    /// The file does not exist, is not readable, is not a regular file, or the path contains a link.
    fn read_plain(&self, path: &Path) -> Result<(Vec<u8>, FileVersion), HostError> {
        Ok((self.read(path)?, FileVersion::plain(path)))
    }

    /// Creates a new file at `path` with these bytes. It gets the owner, mode and extended attributes (including ACLs
    /// and SELinux labels) of `like`, which is a file in the same directory. It also gets the given times, if any.
    ///
    /// # Errors
    /// The file exists, `like` has changed or has several hard links (which a replacement would separate), or the owner
    /// cannot be kept.
    fn create_like(
        &self,
        path: &Path,
        like: &FileVersion,
        bytes: &[u8],
        times: Option<Times>,
    ) -> Result<(), HostError>;

    /// Renames the file `from` atomically over the file `seen` in the same directory, if the latter was not modified
    /// since it was read.
    ///
    /// # Errors
    /// The file was replaced or written since it was read; as rename(2).
    fn exchange(&self, from: &Path, seen: &FileVersion) -> Result<(), HostError>;

    /// Checks that a new file can be created in a directory: only this user and root may write there.
    ///
    /// # Errors
    /// Another user may write to the directory or to one of its parents; the directory is a link, does not exist, or
    /// has a flag of chattr(1).
    fn check_directory(&self, _dir: &Path) -> Result<(), HostError> {
        Ok(())
    }

    /// Creates a file with these bytes that belongs to this user and that all users may read, whatever the umask is.
    ///
    /// # Errors
    /// The file exists, the path contains a link, or this is not a live machine.
    fn create_new(&self, path: &Path, _bytes: &[u8]) -> Result<(), HostError> {
        Err(HostError::path(path, "no file can be created here"))
    }

    /// Renames the file `from` atomically to a name in the same directory that no file has.
    ///
    /// # Errors
    /// [`HostError::is_meanwhile`] if the name exists; as rename(2).
    fn rename_new(&self, _from: &Path, to: &Path) -> Result<(), HostError> {
        Err(HostError::path(to, "no file can be created here"))
    }

    /// Removes the file `seen`, if it was not modified since it was read. `aside` is a temporary name in the same
    /// directory.
    ///
    /// # Errors
    /// [`HostError::is_meanwhile`] if the file was replaced or written since it was read; as rename(2).
    fn take_away(&self, _aside: &Path, seen: &FileVersion) -> Result<(), HostError> {
        self.remove_file(&seen.path)
    }

    /// Creates a directory that belongs to this user and that all users may read. Returns its identity, or `None` if
    /// the name exists already.
    ///
    /// # Errors
    /// As mkdir(2), or the path contains a link.
    fn create_directory(&self, _path: &Path) -> Result<Option<KnownFile>, HostError> {
        Ok(None)
    }

    /// Removes a directory if it is empty and still the one that assay created. `known` is `None` if assay was killed
    /// before it recorded the identity. Returns [`Removed::Another`] for any other object, and for a directory with
    /// content.
    ///
    /// # Errors
    /// As rmdir(2).
    fn remove_directory(
        &self,
        _path: &Path,
        _known: Option<&KnownFile>,
    ) -> Result<Removed, HostError> {
        Ok(Removed::Absent)
    }

    /// Returns permission bits and owner of a file or directory. The path must not contain a link.
    ///
    /// # Errors
    /// The path does not exist, access is not permitted, the path contains a link, or this is not a live machine.
    fn permissions(&self, path: &Path) -> Result<Permissions, HostError> {
        Err(HostError::path(path, "its permissions are not known here"))
    }

    /// Checks that the permission bits of an object can be changed.
    ///
    /// # Errors
    /// The object has several names, or flags of chattr(1).
    fn check_permissions(&self, path: &Path) -> Result<(), HostError> {
        self.permissions(path).map(drop)
    }

    /// Changes the permission bits of a file or directory whose current permissions are `seen`.
    ///
    /// # Errors
    /// Those of [`HostMut::check_permissions`]; another process changed the permissions; chmod(2) fails.
    fn set_permissions(
        &self,
        path: &Path,
        _seen: Permissions,
        _wanted: Permissions,
    ) -> Result<(), HostError> {
        Err(HostError::path(
            path,
            "its permissions cannot be changed here",
        ))
    }

    /// Returns the directory in which all assay processes record changed settings; `None` for a machine in memory. With
    /// `lasting`, returns the directory that survives a reboot.
    ///
    /// # Errors
    /// The directory cannot be used, or others can write to it.
    fn locks(&self, _lasting: bool) -> Result<Option<LockDirectory>, HostError> {
        Ok(None)
    }

    /// Returns the identity of the object at a path; `None` for a machine in memory. Follows links.
    ///
    /// # Errors
    /// As stat(2).
    fn identity(&self, _path: &Path) -> Result<Option<Identity>, HostError> {
        Ok(None)
    }

    /// Removes a file. The path must not contain a link.
    ///
    /// # Errors
    /// As unlink(2), or the path contains a link.
    fn remove_file(&self, path: &Path) -> Result<(), HostError>;

    /// Removes a directory and everything in it, without following links. Fails if another file system is mounted below
    /// the directory, and does not touch that file system.
    ///
    /// # Errors
    /// The path does not exist, is not a directory, access is not permitted, or it contains a mount.
    fn remove_tree(&self, dir: &Path) -> Result<(), HostError>;

    /// Removes a file that assay created, or a directory with its content, even if it was moved. No other object is
    /// removed, even if it has the same name now. `known` is `None` if assay was killed after it created the object and
    /// before it recorded the identity. In this case, a directory that others could have replaced is removed only if it
    /// is empty.
    ///
    /// # Errors
    /// Permission is denied, or the directory is not empty or contains a mount.
    fn remove_made(&self, path: &Path, known: Option<&KnownFile>) -> Result<Removed, HostError>;

    /// Returns the device nodes of the loop devices that are attached to a file.
    ///
    /// # Errors
    /// The loop devices cannot be determined.
    fn loops(&self, backing: Identity) -> Result<Vec<PathBuf>, HostError>;

    /// Detaches a loop device if it is still attached to the file `backing`.
    ///
    /// # Errors
    /// Permission is denied.
    fn detach_loop(&self, node: &Path, backing: Identity) -> Result<(), HostError>;

    /// Kills a process, and waits until it is gone. Does nothing if the process has ended, also if another process has
    /// its number now.
    ///
    /// # Errors
    /// Permission is denied, or the process does not end.
    fn kill(&self, process: ProcessId) -> Result<(), HostError>;

    /// Replaces the content of a file atomically: other programs read either the old or the new bytes. `aside` is a
    /// temporary name in the same directory.
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

/// Maximum time to wait until a killed process has ended. It may be long, because the process may sleep in the kernel.
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

    fn check_directory(&self, dir: &Path) -> Result<(), HostError> {
        new_files::check_directory(dir)
    }

    fn create_new(&self, path: &Path, bytes: &[u8]) -> Result<(), HostError> {
        new_files::create(path, bytes)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> Result<(), HostError> {
        new_files::rename(from, to)
    }

    fn take_away(&self, aside: &Path, seen: &FileVersion) -> Result<(), HostError> {
        replace::take_away(aside, seen)
    }

    fn create_directory(&self, path: &Path) -> Result<Option<KnownFile>, HostError> {
        new_files::create_directory(path)
    }

    fn remove_directory(
        &self,
        path: &Path,
        known: Option<&KnownFile>,
    ) -> Result<Removed, HostError> {
        new_files::remove_directory(path, known)
    }

    fn permissions(&self, path: &Path) -> Result<Permissions, HostError> {
        permissions::read(path)
    }

    fn check_permissions(&self, path: &Path) -> Result<(), HostError> {
        permissions::check(path)
    }

    fn set_permissions(
        &self,
        path: &Path,
        seen: Permissions,
        wanted: Permissions,
    ) -> Result<(), HostError> {
        permissions::set(path, seen, wanted)
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
        // The handle is opened first, so that the process that is compared next is the one that is killed.
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

/// Returns the start time of a process. `None` if the process does not exist or is a zombie.
fn process_start_time(pid: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (state, start) = parse_stat(&text)?;
    (!matches!(state, "Z" | "X")).then_some(start)
}

/// Parses the state (field 3) and the start time (field 22) of `/proc/PID/stat`. The name in field 2 may contain any
/// character, including parentheses.
fn parse_stat(text: &str) -> Option<(&str, u64)> {
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

impl ProcessId {
    /// Returns the identity of a running process of this machine.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        let pid = i32::try_from(pid).ok()?;
        Some(Self {
            pid,
            start: process_start_time(pid)?,
        })
    }
}

/// All changes fail, because a captured machine cannot be changed.
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
