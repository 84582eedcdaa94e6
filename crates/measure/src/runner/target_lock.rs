//! Locks a target, so that only one assay process measures it: two processes would disturb each other.
//!
//! For root, the lock is a file in a directory that only root can write (`/run/assay`), so other users cannot take the
//! lock first or forge the process id. In addition there is an abstract socket (unix(7)), which every user can see and
//! create. Unprivileged users rely on the socket. Root respects the socket only if the kernel reports that its owner is
//! root too, such as an assay in a container that shares the network but not `/run`. Neither lock touches the target,
//! and both end with the process. Containers with separate networks do not see each other's locks.

use crate::runner::TargetRefused;
use assay_host::lockdir::{Attempt, Lock, LockDirectory};
use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::os::fd::{AsFd, OwnedFd};

/// A lock on a target. Dropping the value releases the lock.
#[derive(Debug)]
pub struct Claim {
    lock: Option<Lock>,
    _socket: Option<OwnedFd>,
    remark: Option<String>,
}

impl Claim {
    /// Returns a remark if another process may have measured the same target.
    #[must_use]
    pub fn remark(&self) -> Option<&str> {
        self.remark.as_deref()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(lock) = self.lock.take() {
            // If this fails, the file stays in memory until the next boot, and locks nothing.
            let _ = lock.release();
        }
    }
}

/// Key of a target's lock, derived from the identity of the device, file, directory or server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key(String);

impl Key {
    /// Returns the key of a server, derived from its host name. If a server has two names, the keys differ.
    pub(crate) fn of_server(url: &str) -> Self {
        let end = url.find("://").map_or(0, |at| at + 3);
        let host = url[end..].split(['/', '?', '#']).next().unwrap_or_default();
        // Names of locks and sockets must be short.
        let short: String = host.chars().take(60).collect();
        Self(format!("assay loads {}", short.to_ascii_lowercase()))
    }

    /// Returns the key of an open file, device or directory.
    pub(crate) fn of(fd: impl AsFd) -> Result<Self, Errno> {
        let found = rustix::fs::fstat(fd)?;
        Ok(Self(match FileType::from_raw_mode(found.st_mode) {
            FileType::BlockDevice => format!("assay measures device {:x}", found.st_rdev),
            _ => format!("assay measures {:x} {:x}", found.st_dev, found.st_ino),
        }))
    }
}

/// Locks the target with this key; `target` is its name in messages.
///
/// # Errors
/// Another assay process measures the target.
pub(crate) fn take(key: &Key, target: &str) -> Result<Claim, TargetRefused> {
    let root = rustix::process::geteuid().is_root();
    // If /run is not writable, only the socket is used.
    let locks = root.then(LockDirectory::of_machine).and_then(Result::ok);
    take_in(key, target, locks.as_ref(), root)
}

fn take_in(
    key: &Key,
    target: &str,
    locks: Option<&LockDirectory>,
    root: bool,
) -> Result<Claim, TargetRefused> {
    let measured = |by: String| TargetRefused::Measured {
        target: target.to_owned(),
        by,
    };
    let lock = match locks.map(|locks| locks.try_lock(&key.0)) {
        Some(Ok(Attempt::Busy { note })) => {
            return Err(measured(match note.is_empty() {
                true => String::new(),
                false => format!(" (process {note})"),
            }));
        }
        Some(Ok(Attempt::Taken(lock))) => {
            // Only for the error message of another process.
            let _ = lock.note(&std::process::id().to_string());
            Some(lock)
        }
        Some(Err(_)) | None => None,
    };
    let mut claim = Claim {
        lock,
        _socket: None,
        remark: None,
    };
    match bind_socket(key) {
        Ok(socket) => claim._socket = Some(socket),
        Err(Errno::ADDRINUSE) => {
            let holder = find_holder(key);
            let by = holder.map_or(String::new(), |(process, user)| match user {
                0 => format!(" (process {process})"),
                user => format!(" (process {process} of user {user})"),
            });
            if !root || holder.is_some_and(|(_, user)| user == 0) {
                return Err(measured(by));
            }
            claim.remark = Some(format!(
                "somebody without root's rights holds the sign of an assay that measures {target}{by}: if so, the two have disturbed each other"
            ));
        }
        // A kernel without such sockets has none of other processes either.
        Err(_) => {}
    }
    Ok(claim)
}

fn bind_socket(key: &Key) -> Result<OwnedFd, Errno> {
    let socket = create_socket()?;
    rustix::net::bind(&socket, &socket_address(key)?)?;
    rustix::net::listen(&socket, 1)?;
    Ok(socket)
}

fn create_socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

fn socket_address(key: &Key) -> Result<SocketAddrUnix, Errno> {
    SocketAddrUnix::new_abstract_name(key.0.as_bytes())
}

/// Returns the process id and the user id of the lock's holder, as recorded by the kernel; `None` if no process listens
/// on the socket.
fn find_holder(key: &Key) -> Option<(i32, u32)> {
    let socket = create_socket().ok()?;
    rustix::net::connect(&socket, &socket_address(key).ok()?).ok()?;
    let peer = rustix::net::sockopt::socket_peercred(&socket).ok()?;
    Some((peer.pid.as_raw_nonzero().get(), peer.uid.as_raw()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::held::Directory;
    use std::path::Path;

    fn claim(path: &Path, target: &str) -> Result<Claim, TargetRefused> {
        take(&Key::of(Directory::open(path).unwrap()).unwrap(), target)
    }

    #[test]
    fn one_at_a_time_by_whatever_name() {
        let dir = tempfile::tempdir().unwrap();
        let (here, other) = (dir.path().join("here"), dir.path().join("other"));
        std::fs::create_dir(&here).unwrap();
        std::os::unix::fs::symlink(&here, &other).unwrap();
        let first = claim(&here, "here").unwrap();
        let refused = claim(&other, "other").unwrap_err().to_string();
        let us = format!("(process {})", std::process::id());
        assert!(
            refused.starts_with("other ") && refused.contains(&us),
            "{refused}"
        );
        let _elsewhere = claim(dir.path(), "above").unwrap();
        drop(first);
        assert_eq!(claim(&other, "other").unwrap().remark(), None);
    }

    #[test]
    fn without_a_directory_of_locks_the_socket_does() {
        let dir = tempfile::tempdir().unwrap();
        let key = Key::of(Directory::open(dir.path()).unwrap()).unwrap();
        let root = rustix::process::geteuid().is_root();
        let first = take_in(&key, "it", None, root).unwrap();
        assert!(take_in(&key, "it", None, root).is_err());
        drop(first);
        take_in(&key, "it", None, root).unwrap();
    }

    /// Any user may create the socket with this name, and may or may not listen on the socket.
    #[test]
    fn attack_a_squatter_does_not_keep_root_out() {
        if !rustix::process::geteuid().is_root() {
            assay_testing::skipped("root", "only root has a directory of locks");
            return;
        }
        let mut held = 0;
        for listens in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let locks = LockDirectory::open(&dir.path().join("locks")).unwrap();
            let key = Key::of(Directory::open(dir.path()).unwrap()).unwrap();
            let squatter = squat(&key, listens);
            let ours = take_in(&key, "it", Some(&locks), true).unwrap();
            assert!(ours.remark().is_some());
            // Another lock of root is reported with the id of its holder.
            let refused = take_in(&key, "it", Some(&locks), true).unwrap_err();
            let us = format!("(process {})", std::process::id());
            assert!(refused.to_string().contains(&us), "{refused}");
            // Unprivileged users see only the socket.
            assert!(take_in(&key, "it", None, false).is_err());
            drop((ours, squatter));
            held += 1;
        }
        assay_testing::attacked("squatted sign of a measurement", 2, held);
    }

    /// Creates the lock's socket as another user, from a thread with the rights of `nobody`.
    fn squat(key: &Key, listens: bool) -> OwnedFd {
        let key = key.clone();
        let thread = std::thread::spawn(move || {
            let nobody = rustix::process::Uid::from_raw(65534);
            rustix::thread::set_thread_uid(nobody).unwrap();
            let socket = create_socket().unwrap();
            rustix::net::bind(&socket, &socket_address(&key).unwrap()).unwrap();
            if listens {
                rustix::net::listen(&socket, 1).unwrap();
            }
            socket
        });
        thread.join().unwrap()
    }
}
