//! One assay at a time measures a target: two would measure each other.
//!
//! The sign is the name of an abstract socket (unix(7)) that says which file is meant. It is there
//! for every assay on the machine, whatever its user and its state directory, it leaves the target
//! itself alone, and the kernel takes it away with the process. Containers with a network of their
//! own do not see each other's.

use crate::TargetRefused;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

/// The right to measure a target, until it is dropped.
#[derive(Debug)]
pub struct Claim {
    _socket: Option<OwnedFd>,
}

/// Takes the right to measure what is at `path`; `target` is its name in messages.
///
/// # Errors
/// Another assay measures it.
pub fn claim(path: &Path, target: &str) -> Result<Claim, TargetRefused> {
    match bind(path) {
        Ok(socket) => Ok(Claim {
            _socket: Some(socket),
        }),
        Err(Errno::ADDRINUSE) => Err(TargetRefused::Measured {
            target: target.to_owned(),
            by: holder(path).map_or(String::new(), |pid| format!(" (process {pid})")),
        }),
        // Where the kernel has no such sockets, nobody else has one either.
        Err(_) => Ok(Claim { _socket: None }),
    }
}

fn bind(path: &Path) -> Result<OwnedFd, Errno> {
    let socket = socket()?;
    rustix::net::bind(&socket, &address(path)?)?;
    rustix::net::listen(&socket, 1)?;
    Ok(socket)
}

fn socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

fn address(path: &Path) -> Result<SocketAddrUnix, Errno> {
    let found = path.metadata().map_err(|_| Errno::NOENT)?;
    let name = match found.file_type().is_block_device() {
        true => format!("assay measures device {:x}", found.rdev()),
        false => format!("assay measures {:x} {:x}", found.dev(), found.ino()),
    };
    SocketAddrUnix::new_abstract_name(name.as_bytes())
}

/// Number of the process that listens there.
fn holder(path: &Path) -> Option<i32> {
    let socket = socket().ok()?;
    rustix::net::connect(&socket, &address(path).ok()?).ok()?;
    let peer = rustix::net::sockopt::socket_peercred(&socket).ok()?;
    Some(peer.pid.as_raw_nonzero().get())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        claim(&other, "other").unwrap();
    }
}
