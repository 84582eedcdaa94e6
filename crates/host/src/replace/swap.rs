//! A file and its replacement change places, and what came out is looked at: an edit that somebody made at
//! this very moment goes back to its place.
//!
//! `renameat2(2)` exchanges two names in one step, so no name is ever missing and nothing is lost. Where a file
//! system lacks that call (NFS, OpenZFS before 2.2, some of FUSE), the old file gets a second name first
//! (`link`), and the replacement is renamed over it: a file that somebody renames to the same name within
//! those microseconds is lost there, an edit in place is not. Where it lacks hard links too, the old file
//! is compared once more right before it is replaced.

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

/// How long a writer that looked the name up before the exchange may take to be seen at the old file.
const STRAGGLERS: Duration = Duration::from_millis(10);
/// `F_SETSIG` (fcntl(2)), which libc does not name on every target.
const SET_SIGNAL: libc::c_int = 10;

/// Which calls the file system has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Means {
    /// Names are exchanged in one step.
    Exchange,
    /// A second name for the old file, then a rename.
    Links,
    /// A rename alone.
    Rename,
}

/// Gives the file `from` the name of one that was read, when that one is still there and was not written
/// since; else everything stays as it is.
///
/// # Errors
/// [`HostError::is_meanwhile`] when somebody else replaced or wrote the file, or has it open for writing.
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
    // No link, pipe or directory is put in its place.
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

/// Makes sure that the file under the name beside is the one that was read, that it holds the same bytes and
/// that nobody is about to write it. As long as the lease is held, a writer that comes late waits.
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

/// Whether a file holds the bytes that were read.
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

/// Two names of one directory, and the files that they stand for.
struct Swap<'a> {
    directory: &'a Directory,
    name: &'a OsStr,
    aside: &'a OsStr,
    old: Identity,
    new: Identity,
}

impl Swap<'_> {
    /// Puts the new file in the place of the old one, and the old one aside, by the best means there are from
    /// `means` on. Returns which ones.
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

    /// The exchange in three steps, of which the second is atomic: the name always stands for one of the two.
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

    /// Puts what came out back in its place, and removes the new file. Where somebody has replaced the new file
    /// by now, theirs stays.
    fn back(&self, means: Means) -> Result<(), HostError> {
        let failed = |error: Errno| fail(&self.directory.shown().join(self.name))(error.into());
        if means == Means::Links {
            // The rename replaces the new file, and nothing is left beside.
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
                // Somebody was faster than the look: theirs goes back on top.
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

/// A lease on a file (fcntl(2)): while it is held, whoever opens the file for writing waits.
struct Lease {
    descriptor: RawFd,
    _held: Held,
}

/// What the kernel says to the wish for a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Granted {
    /// Nobody has the file open for writing. The lease is on this descriptor.
    Lease(RawFd),
    /// Somebody has.
    Writers,
    /// This file system, or this user, gets no lease.
    Unknown,
}

impl Lease {
    fn take(held: &Held) -> Granted {
        let descriptor = held.file().as_raw_fd();
        // The default signal of a lease that somebody waits for ends a process; this one is passed over.
        // SAFETY: the descriptor is open, and the arguments are plain ints.
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
    /// Whether somebody waits to write.
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
