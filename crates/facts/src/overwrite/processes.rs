//! Finds processes that have a file open or mapped. The file is identified by device and inode number, not by its path.

use assay_host::Host;
use assay_host::held::Identity;
use rustix::fs::{AtFlags, CWD, StatxFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Processes that use the file, and processes that could not be checked.
#[derive(Debug, Default)]
pub(crate) struct Users {
    /// Descriptions of the uses, such as `open in process 7 (cat)`.
    pub found: Vec<String>,
    /// Processes whose open files are not visible.
    pub hidden: Vec<String>,
}

/// Searches all processes. `except` is a descriptor of this process that does not count as a use, as `/proc/PID/fd/N`.
pub(crate) fn users(host: &dyn Host, file: Identity, except: Option<&Path>) -> Users {
    let mut users = Users::default();
    let proc = Path::new("/proc");
    let pids = match host.list(proc) {
        Ok(pids) => pids,
        Err(error) => {
            users.hidden.push(error.to_string());
            return users;
        }
    };
    for pid in pids {
        if !pid.as_bytes().iter().all(u8::is_ascii_digit) {
            continue;
        }
        let dir = proc.join(&pid);
        let name = || {
            let comm = host.read_text(&dir.join("comm")).unwrap_or_default();
            format!("process {} ({})", pid.to_string_lossy(), comm.trim())
        };
        for (look, what) in [
            (
                open as fn(&dyn Host, &Path, Identity, Option<&Path>) -> Seen,
                "open in",
            ),
            (find_mapping, "mapped by"),
        ] {
            match look(host, &dir, file, except) {
                Seen::Yes => users.found.push(format!("{what} {}", name())),
                Seen::No => {}
                Seen::Hidden => {
                    users.hidden.push(name());
                    break;
                }
            }
        }
    }
    users
}

enum Seen {
    Yes,
    No,
    Hidden,
}

fn open(host: &dyn Host, dir: &Path, file: Identity, except: Option<&Path>) -> Seen {
    let dir = dir.join("fd");
    let handles = match host.list(&dir) {
        Ok(handles) => handles,
        Err(error) if has_ended(error.is_absent(), error.errno()) => return Seen::No,
        Err(_) => return Seen::Hidden,
    };
    for handle in handles {
        let handle = dir.join(handle);
        if Some(handle.as_path()) == except {
            continue;
        }
        match read_identity(&handle) {
            Ok(found) if found == file => return Seen::Yes,
            Err(errno) if !has_ended(false, Some(errno.raw_os_error())) => return Seen::Hidden,
            _ => {}
        }
    }
    Seen::No
}

fn find_mapping(host: &dyn Host, dir: &Path, file: Identity, _: Option<&Path>) -> Seen {
    let maps = match host.read(&dir.join("maps")) {
        Ok(maps) => maps,
        Err(error) if has_ended(error.is_absent(), error.errno()) => return Seen::No,
        Err(_) => return Seen::Hidden,
    };
    // `address perms offset device inode path` (proc_pid_maps(5)). The device may differ from that
    // of stat(2) (btrfs, overlayfs), so the inode only selects candidates.
    let inode = file.inode.to_string();
    for line in maps.split(|byte| *byte == b'\n') {
        let mut fields = line
            .split(|byte| *byte == b' ')
            .filter(|field| !field.is_empty());
        let (Some(address), Some(found)) = (fields.next(), fields.nth(3)) else {
            continue;
        };
        if found != inode.as_bytes() {
            continue;
        }
        let link = dir.join("map_files").join(OsStr::from_bytes(address));
        match read_identity(&link) {
            Ok(found) if found != file => {}
            Err(Errno::NOENT | Errno::SRCH) => {}
            // The inode number is the same and no further check is permitted: this counts as a use.
            _ => return Seen::Yes,
        }
    }
    Seen::No
}

/// Returns whether a process or descriptor disappeared during the search (ESRCH, ENOENT).
fn has_ended(absent: bool, errno: Option<i32>) -> bool {
    absent
        || [Errno::SRCH, Errno::NOENT]
            .map(|errno| Some(errno.raw_os_error()))
            .contains(&errno)
}

/// Returns the identity of a file. Cached attributes suffice, so that an unresponsive network file system does not
/// block.
fn read_identity(path: &Path) -> Result<Identity, Errno> {
    let flags = AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
    let found = rustix::fs::statx(CWD, path, flags, StatxFlags::INO)?;
    Ok(Identity {
        device: rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor),
        inode: found.stx_ino,
    })
}
