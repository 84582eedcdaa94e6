//! Exchanges a file and its replacement, then checks the old file. If another process edited the old file at this
//! moment, the old file is put back.
//!
//! - `renameat2(2)` exchanges two names atomically, so that no name is ever missing and nothing is lost.
//! - On file systems without it (NFS, OpenZFS before 2.2, some FUSE), the old file first gets a second name (`link`).
//!   Then the replacement is renamed over the old name. If another process renames a file to the same name within these
//!   microseconds, that file is lost; an edit in place is not.
//! - On file systems without hard links, the old file is compared once more right before it is replaced.

#![allow(
    unsafe_code,
    reason = "fcntl(2) with the commands of leases has no safe wrapper"
)]

use super::{FileVersion, fail, open, open_parent, same};
use crate::MAX_BYTES;
use crate::directory_owner;
use crate::error::HostError;
use crate::held::{Directory, Held, Identity, Removed};
use rustix::fs::{AtFlags, RenameFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::io::{Read as _, Seek as _};
use std::os::fd::{AsRawFd as _, RawFd};
use std::path::Path;
use std::time::Duration;

/// Time to wait after the exchange for processes that had opened the old file for writing.
const STRAGGLERS: Duration = Duration::from_millis(10);
/// `F_SETSIG` of fcntl(2), which libc does not define for every target.
const SET_SIGNAL: libc::c_int = 10;

/// Ways to exchange two files, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Means {
    /// An atomic exchange of the two names.
    Exchange,
    /// A second name for the old file, followed by a rename.
    Links,
    /// Only a rename.
    Rename,
}

/// Replaces a file by the file `from`. `seen` is the state of the replaced file when it was read. If it no longer
/// exists or was modified since, changes nothing.
///
/// # Errors
/// [`HostError::is_meanwhile`] if another process replaced or wrote the file, or has it open for writing.
pub(crate) fn exchange(from: &Path, seen: &FileVersion) -> Result<(), HostError> {
    exchange_by(from, seen, Means::Exchange)
}

fn exchange_by(from: &Path, seen: &FileVersion, means: Means) -> Result<(), HostError> {
    let (directory, name) = open_parent(&seen.path)?;
    if from.parent() != seen.path.parent() {
        let reason = format!("not in the directory of {}", seen.path.display());
        return Err(HostError::path(from, reason));
    }
    let (old, found) = open(&directory, name)?;
    same(seen, &found)?;
    if !is_content(&old, seen)? {
        return Err(changed_meanwhile(seen));
    }
    // A link, pipe or directory is never put in its place.
    let aside = directory_owner::last_component(from)?;
    let (new, _) = open(&directory, aside)?;
    let swap = Swap {
        directory: &directory,
        name,
        aside,
        old: old.identity(),
        new: new.identity(),
    };
    let means = swap.forth(means).map_err(|error| match error {
        Errno::STALE => changed_meanwhile(seen),
        error => fail(&seen.path)(error.into()),
    })?;
    if means == Means::Rename {
        return directory.sync();
    }
    match inspect_old_file(&swap, seen) {
        Ok(lease) => {
            directory.remove(aside, swap.old)?;
            drop(lease);
            directory.sync()
        }
        Err(error) => {
            swap.back(means).map_err(|second| {
                let reason = format!(
                    "{}; it could not be put back from {}: {second}",
                    error.reason(),
                    from.display()
                );
                HostError::path(&seen.path, reason)
            })?;
            directory.sync()?;
            Err(error)
        }
    }
}

/// Removes a file. `seen` is the state of the file when it was read, and `aside` is a temporary name in the same
/// directory. The file gets this name first, so that an edit at this moment is noticed and put back.
///
/// # Errors
/// [`HostError::is_meanwhile`] if another process replaced or wrote the file, or has it open for writing.
pub(crate) fn take_away(aside: &Path, seen: &FileVersion) -> Result<(), HostError> {
    let (directory, name) = open_parent(&seen.path)?;
    if aside.parent() != seen.path.parent() {
        let reason = format!("not in the directory of {}", seen.path.display());
        return Err(HostError::path(aside, reason));
    }
    let (old, found) = open(&directory, name)?;
    same(seen, &found)?;
    if !is_content(&old, seen)? {
        return Err(changed_meanwhile(seen));
    }
    let aside = directory_owner::last_component(aside)?;
    if directory.look(aside)?.is_some() {
        return Err(HostError::path(
            &directory.shown().join(aside),
            "the temporary name is in use",
        ));
    }
    rustix::fs::renameat(&directory, name, &directory, aside)
        .map_err(|error| fail(&seen.path)(error.into()))?;
    directory.sync()?;
    let swap = Swap {
        directory: &directory,
        name,
        aside,
        old: old.identity(),
        new: old.identity(),
    };
    match inspect_old_file(&swap, seen) {
        Ok(lease) => {
            directory.remove(aside, swap.old)?;
            drop(lease);
            directory.sync()
        }
        Err(error) => {
            let shown = directory.shown();
            crate::new_files::rename(&shown.join(aside), &shown.join(name))?;
            Err(error)
        }
    }
}

/// Checks that the old file is the file that was read, has the same content, and is not open for writing. While the
/// returned lease exists, processes that open the file for writing wait.
fn inspect_old_file(swap: &Swap<'_>, seen: &FileVersion) -> Result<Option<Lease>, HostError> {
    let (held, found) = open(swap.directory, swap.aside).map_err(|_| changed_meanwhile(seen))?;
    same(seen, &found)?;
    let lease = Lease::take(&held);
    if lease == Granted::Writers && !seen.despite_writers {
        return Err(HostError::meanwhile(
            &seen.path,
            "somebody has it open for writing",
        ));
    }
    std::thread::sleep(STRAGGLERS);
    let (_, found) = open(swap.directory, swap.aside).map_err(|_| changed_meanwhile(seen))?;
    same(seen, &found)?;
    if !is_content(&held, seen)? || lease.is_wanted() {
        return Err(changed_meanwhile(seen));
    }
    Ok(match lease {
        Granted::Lease(descriptor) => Some(Lease {
            descriptor,
            _held: held,
        }),
        Granted::Writers | Granted::Unknown => None,
    })
}

fn changed_meanwhile(seen: &FileVersion) -> HostError {
    HostError::meanwhile(
        &seen.path,
        "somebody else replaced or wrote it at this moment",
    )
}

/// Returns whether a file still has the content that was read.
fn is_content(held: &Held, seen: &FileVersion) -> Result<bool, HostError> {
    let Some(wanted) = seen.content else {
        return Ok(true);
    };
    let mut file = held.file();
    let mut bytes = Vec::new();
    file.rewind()
        .and_then(|()| file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes))
        .map_err(fail(held.shown()))?;
    Ok(blake3::hash(&bytes) == wanted)
}

/// Two names in one directory, with their files.
struct Swap<'a> {
    directory: &'a Directory,
    name: &'a OsStr,
    aside: &'a OsStr,
    old: Identity,
    new: Identity,
}

impl Swap<'_> {
    /// Exchanges the new and the old file, in the first way that works, beginning with `means`. Returns the way that
    /// worked.
    fn forth(&self, means: Means) -> Result<Means, Errno> {
        if means == Means::Exchange {
            match self.exchange() {
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
                other => return other.map(|()| Means::Exchange),
            }
        }
        if means != Means::Rename {
            match self.replace_linked() {
                Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK) => {}
                other => return other.map(|()| Means::Links),
            }
        }
        match self.look(self.name) == Some(self.old) {
            true => rustix::fs::renameat(self.directory, self.aside, self.directory, self.name)?,
            false => return Err(Errno::STALE),
        }
        Ok(Means::Rename)
    }

    fn exchange(&self) -> Result<(), Errno> {
        let (directory, flags) = (self.directory, RenameFlags::EXCHANGE);
        rustix::fs::renameat_with(directory, self.aside, directory, self.name, flags)
    }

    /// Replaces the file in three steps. Only the second step changes the name, and it does so atomically, so that the
    /// name always refers to one of the two files.
    fn replace_linked(&self) -> Result<(), Errno> {
        let directory = self.directory;
        let mut spare = OsString::from(self.aside);
        spare.push("-old");
        let _ = rustix::fs::unlinkat(directory, &spare, AtFlags::empty());
        rustix::fs::linkat(directory, self.name, directory, &spare, AtFlags::empty())?;
        let as_planned =
            self.look(&spare) == Some(self.old) && self.look(self.name) == Some(self.old);
        let replaced = match as_planned {
            true => rustix::fs::renameat(directory, self.aside, directory, self.name),
            false => Err(Errno::STALE),
        };
        if replaced.is_err() {
            let _ = rustix::fs::unlinkat(directory, &spare, AtFlags::empty());
            return replaced;
        }
        rustix::fs::renameat(directory, &spare, directory, self.aside)
    }

    /// Puts the old file back, and removes the new file. If another process has replaced the new file since the
    /// exchange, its file remains.
    fn back(&self, means: Means) -> Result<(), HostError> {
        let failed = |error: Errno| fail(&self.directory.shown().join(self.name))(error.into());
        if means == Means::Links {
            // The rename replaces the new file and leaves nothing aside.
            return match self.look(self.name) == Some(self.new) {
                true => {
                    let directory = self.directory;
                    rustix::fs::renameat(directory, self.aside, directory, self.name)
                        .map_err(failed)
                }
                false => self.remove_aside(),
            };
        }
        if self.look(self.name) == Some(self.new) {
            self.exchange().map_err(failed)?;
            if self.look(self.aside) != Some(self.new) {
                // Somebody replaced the file before the check; that file goes back.
                self.exchange().map_err(failed)?;
            }
        }
        self.remove_aside()
    }

    fn remove_aside(&self) -> Result<(), HostError> {
        match self.directory.look(self.aside)? {
            Some(there) => match self.directory.remove(self.aside, there)? {
                Removed::Gone | Removed::Absent | Removed::Another | Removed::Emptied => Ok(()),
            },
            None => Ok(()),
        }
    }

    fn look(&self, name: &OsStr) -> Option<Identity> {
        self.directory.look(name).ok().flatten()
    }
}

/// A lease on a file (fcntl(2)). While it exists, processes that open the file for writing wait.
struct Lease {
    descriptor: RawFd,
    _held: Held,
}

/// The kernel's answer to a request for a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Granted {
    /// No process has the file open for writing. The lease belongs to this descriptor.
    Lease(RawFd),
    /// Another process has the file open for writing.
    Writers,
    /// Unknown, because the file system or the user's rights do not permit a lease.
    Unknown,
}

impl Lease {
    fn take(held: &Held) -> Granted {
        let descriptor = held.file().as_raw_fd();
        // The default signal of a contested lease ends a process; SIGURG is ignored. SAFETY: the descriptor is
        // open, and the arguments are plain ints.
        let signal = unsafe { libc::fcntl(descriptor, SET_SIGNAL, libc::SIGURG) };
        if signal == -1 {
            return Granted::Unknown;
        }
        // SAFETY: as above.
        match unsafe { libc::fcntl(descriptor, libc::F_SETLEASE, libc::F_RDLCK) } {
            -1 => match Errno::from_io_error(&std::io::Error::last_os_error()) {
                Some(Errno::AGAIN | Errno::BUSY) => Granted::Writers,
                _ => Granted::Unknown,
            },
            _ => Granted::Lease(descriptor),
        }
    }
}

impl Granted {
    /// Returns whether a process is waiting to open the file for writing.
    fn is_wanted(self) -> bool {
        let Self::Lease(descriptor) = self else {
            return false;
        };
        // SAFETY: the descriptor is open as long as the caller holds the file.
        let lease = unsafe { libc::fcntl(descriptor, libc::F_GETLEASE) };
        lease != libc::F_RDLCK
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // SAFETY: the descriptor is open, because the file is held, and the argument is a plain int.
        let _ = unsafe { libc::fcntl(self.descriptor, libc::F_SETLEASE, libc::F_UNLCK) };
    }
}

#[cfg(test)]
mod tests;
