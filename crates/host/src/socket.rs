//! Connects to Unix sockets whose paths are longer than the kernel's limit of 107 bytes (unix(7)).

use crate::held::descriptor_path;
use rustix::fs::{Mode, OFlags};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Connects to a socket.
///
/// # Errors
/// As connect(2).
pub fn connect(socket: &Path) -> io::Result<UnixStream> {
    let (_directory, name) = open_short_path(socket)?;
    UnixStream::connect(name)
}

/// Creates a socket and listens on it.
///
/// # Errors
/// As bind(2).
pub fn listen_at(socket: &Path) -> io::Result<UnixListener> {
    let (_directory, name) = open_short_path(socket)?;
    UnixListener::bind(name)
}

/// Opens the directory of a path. Returns a short path through the descriptor of this directory, which is valid while
/// the descriptor is open.
fn open_short_path(path: &Path) -> io::Result<(OwnedFd, PathBuf)> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    let directory = rustix::fs::open(above.unwrap_or(Path::new(".")), flags, Mode::empty())?;
    let name = descriptor_path(&directory).join(path.file_name().unwrap_or_default());
    Ok((directory, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_is_no_obstacle() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("d".repeat(200));
        std::fs::create_dir(&deep).unwrap();
        let socket = deep.join("socket");
        let _listens = listen_at(&socket).unwrap();
        connect(&socket).unwrap();
        assert!(connect(&deep.join("other")).is_err());
    }
}
