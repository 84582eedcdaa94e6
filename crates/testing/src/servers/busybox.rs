//! A root directory that contains only a static busybox. This is the smallest system on which a shell script runs.

use crate::servers::{copy_executable, find};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Busybox programs (applets) that the scripts need.
const APPLETS: [&str; 16] = [
    "sh", "awk", "tr", "ls", "cat", "find", "head", "sed", "grep", "readlink", "df", "sort",
    "timeout", "gzip", "sleep", "stat",
];

/// Returns the path of a statically linked busybox; `None` if none is installed.
#[must_use]
pub fn is_static() -> Option<PathBuf> {
    let found = find("busybox")?;
    let dynamic = Command::new("ldd").arg(&found).output().ok()?;
    (!dynamic.status.success()).then_some(found)
}

/// Creates `/bin` with busybox and its programs, and `/dev/null`, below a directory. Needs root.
///
/// # Errors
/// A file cannot be created.
pub fn furnish(root: &Path, busybox: &Path) -> io::Result<()> {
    for dir in ["bin", "dev"] {
        std::fs::create_dir_all(root.join(dir))?;
    }
    copy_executable(busybox, &root.join("bin/busybox"))?;
    let null = Command::new("mknod")
        .arg(root.join("dev/null"))
        .args(["c", "1", "3"])
        .status()?;
    if !null.success() {
        return Err(io::Error::other("mknod: /dev/null cannot be made"));
    }
    for applet in APPLETS {
        symlink("/bin/busybox", root.join("bin").join(applet))?;
    }
    Ok(())
}
