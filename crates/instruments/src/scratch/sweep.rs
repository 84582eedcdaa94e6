//! What killed sessions left is removed, and nothing else: regular files that assay made, under the
//! names that it gives, in a directory that may belong to somebody else.

use super::list::{self, Entry};
use super::{LOCK, PREFIX, SUFFIX, State, is_uid, scratch_name};
use assay_host::HostError;
use assay_host::held::{Access, Directory, Held, Identity, Removed};
use rustix::fs::{FlockOperation, flock};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Something that a killed session had left and that is gone now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swept {
    /// The scratch file.
    pub path: PathBuf,
    /// Why it could not be removed, when it could not.
    pub error: Option<String>,
}

/// What became of an entry.
enum End {
    Gone,
    Removed,
    /// Something that assay did not make has the name.
    Another(&'static str),
    Failed(HostError),
}

impl State {
    /// Removes what killed sessions left. Says what was found; nothing to find is the usual case.
    #[must_use]
    pub fn sweep(&self) -> Vec<Swept> {
        let mut swept = Vec::new();
        let Ok(root) = Directory::open(&self.root) else {
            return swept;
        };
        // The directory may be one that somebody else uses too.
        let names = root.list().unwrap_or_default();
        for uid in names.iter().filter(|name| is_uid(name.as_bytes())) {
            let Ok(dir) = root.below(Path::new(uid)) else {
                continue;
            };
            let Ok(lock) = dir.file(OsStr::new(LOCK), Access::Read) else {
                continue;
            };
            if flock(lock.file(), FlockOperation::NonBlockingLockExclusive).is_err() {
                continue;
            }
            let ours = scratch_name(&uid.to_string_lossy());
            let mut left = false;
            for entry in list::read(&dir) {
                if entry.path.file_name() != Some(&*ours) {
                    continue;
                }
                let error = match remove(&entry) {
                    End::Gone => continue,
                    End::Removed => None,
                    End::Another(why) => Some(why.to_owned()),
                    End::Failed(error) => {
                        // Not mounted now, perhaps: kept on the list for the next start.
                        left = true;
                        Some(error.reason())
                    }
                };
                swept.push(Swept {
                    path: entry.path,
                    error,
                });
            }
            if !left {
                let _ = fs::remove_dir_all(self.root.join(uid));
            }
        }
        swept
    }
}

fn remove(entry: &Entry) -> End {
    let (Some(above), Some(name)) = (entry.path.parent(), entry.path.file_name()) else {
        return End::Gone;
    };
    let attempt = || -> Result<End, HostError> {
        let directory = Directory::open(above)?;
        if directory.look(name)?.is_none() {
            return Ok(End::Gone);
        }
        // A link, a directory, a pipe or a device has the name.
        let Ok(held) = directory.file(name, Access::Read) else {
            return Ok(End::Another("it is no file of assay's any more"));
        };
        if !made_by_us(&held, entry.identity)? {
            return Ok(End::Another("another file has its name by now"));
        }
        Ok(match directory.remove(name, held.identity())? {
            Removed::Gone => End::Removed,
            Removed::Absent => End::Gone,
            Removed::Another => End::Another("another file has its name by now"),
        })
    };
    match attempt() {
        Ok(end) => end,
        Err(error) if error.is_absent() => End::Gone,
        Err(error) => End::Failed(error),
    }
}

/// Whether it is the file that was noted, else whether it can be one of ours: this user's, and under
/// no other name. The number of a device may change with every boot.
pub(super) fn made_by_us(held: &Held, noted: Option<Identity>) -> Result<bool, HostError> {
    if let Some(noted) = noted {
        return Ok(noted.inode == held.identity().inode);
    }
    Ok(held.owner()? == rustix::process::geteuid().as_raw() && held.names()? == 1)
}

/// Removes abandoned scratch files from a directory itself: those named as assay names them, this
/// user's, under no other name, and locked by nobody.
#[must_use]
pub fn sweep_directory(directory: &Directory) -> Vec<Swept> {
    let mut swept = Vec::new();
    for name in directory.list().unwrap_or_default() {
        let uid = name.as_bytes().strip_prefix(PREFIX.as_bytes());
        let Some(uid) = uid.and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes())) else {
            continue;
        };
        if !is_uid(uid) {
            continue;
        }
        let Ok(held) = directory.file(&name, Access::Read) else {
            continue;
        };
        if !made_by_us(&held, None).unwrap_or(false)
            || flock(held.file(), FlockOperation::NonBlockingLockExclusive).is_err()
        {
            continue;
        }
        let error = match directory.remove(&name, held.identity()) {
            Ok(Removed::Gone) => None,
            Ok(Removed::Absent | Removed::Another) => continue,
            Err(error) => Some(error.reason()),
        };
        swept.push(Swept {
            path: directory.shown().join(&name),
            error,
        });
    }
    swept
}
