//! Removes the scratch files of killed sessions and nothing else. These are regular files that assay created, in
//! directories that may belong to other users. Files with a recorded identity are removed even after a move.

use super::list::{self, Entry};
use super::{LOCK, PREFIX, SUFFIX, ScratchRegistry, is_uid, scratch_name};
use assay_host::held::{Access, Directory, Removed, read_identity};
use assay_host::{HostError, HostMut as _, KnownFile, LiveHost, Mark};
use rustix::fs::{FlockOperation, flock};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// A scratch file of a killed session, and the result of the attempt to remove it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swept {
    /// Path of the scratch file.
    pub path: PathBuf,
    /// Reason why the file could not be removed; `None` if it was removed.
    pub error: Option<String>,
}

/// Result of removing one recorded file.
enum End {
    Gone,
    Removed,
    /// The name now refers to another object, which is not changed. Contains the reason.
    Another(&'static str),
    Failed(HostError),
}

impl ScratchRegistry {
    /// Removes the files of killed sessions. Returns the files that were found, usually none.
    #[must_use]
    pub fn sweep(&self) -> Vec<Swept> {
        let mut swept = Vec::new();
        let Ok(root) = Directory::open(&self.root) else {
            return swept;
        };
        // Other programs may use the directory, too.
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
                        // Its file system may not be mounted now, so the entry stays for the next start.
                        left = true;
                        let why = describe_failure(&entry.path, &error);
                        let forget = self.root.join(uid);
                        Some(format!(
                            "{why}; when it is gone, remove {}",
                            forget.display()
                        ))
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
    let attempt = match &entry.known {
        Some(known) => by_what_it_is(&entry.path, known),
        None => by_name(&entry.path),
    };
    match attempt {
        Ok(end) => end,
        Err(error) if error.is_absent() && entry.known.is_none() => End::Gone,
        Err(error) => End::Failed(error),
    }
}

/// Describes why a file was not removed, and what the user can do.
fn describe_failure(path: &Path, error: &HostError) -> String {
    let mark = error.errno().and_then(|_| Mark::against_removal(path));
    match mark {
        Some(mark) => format!("{}: {mark}", error.reason()),
        None => error.reason(),
    }
}

/// Returns whether the path of the file is now on another file system, for example because the original file system is
/// not mounted.
fn is_covered(path: &Path, known: &KnownFile) -> bool {
    let mut above = path.ancestors().skip(1);
    let nearest = above.find_map(|above| read_identity(above).ok());
    nearest.is_some_and(|nearest| nearest.device != known.identity.device)
}

fn by_what_it_is(path: &Path, known: &KnownFile) -> Result<End, HostError> {
    Ok(match LiveHost.remove_made(path, Some(known))? {
        Removed::Gone => End::Removed,
        Removed::Absent => End::Gone,
        Removed::Another if is_covered(path, known) => End::Failed(HostError::Path {
            path: path.to_owned(),
            errno: None,
            reason: "its file system is not mounted there now, or has another number since the last start: mount it and start assay again".to_owned(),
        }),
        Removed::Another => End::Another("another file has its name by now"),
        Removed::Emptied => End::Failed(HostError::Path {
            path: path.to_owned(),
            errno: None,
            reason: "it was moved away or something is mounted on it, and its present name is unknown; it was emptied, so that it takes no space".to_owned(),
        }),
    })
}

/// Removes the file of an entry without identity by its name. Such a file may not have been created at all.
fn by_name(path: &Path) -> Result<End, HostError> {
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(End::Gone);
    };
    let directory = match Directory::open(above) {
        // Either its file system is not mounted now, or the directory was removed.
        Err(error) if error.is_absent() => {
            return Ok(End::Failed(HostError::Path {
                path: path.to_owned(),
                errno: None,
                reason: "its directory is not there now: if a file system is to be mounted there, mount it and start assay again".to_owned(),
            }));
        }
        other => other?,
    };
    // The file was created by its name and renamed before it was recorded.
    if directory.remove_unentered(name)? {
        return Ok(End::Removed);
    }
    if directory.look(name)?.is_none() {
        return Ok(End::Gone);
    }
    // A link, a directory, a pipe or a device has the name.
    let Ok(held) = directory.file(name, Access::Read) else {
        return Ok(End::Another("it is no file of assay's any more"));
    };
    if !held.can_be_ours()? {
        return Ok(End::Another("another file has its name by now"));
    }
    Ok(match directory.remove(name, held.identity())? {
        Removed::Gone => End::Removed,
        Removed::Absent => End::Gone,
        _ => End::Another("another file has its name by now"),
    })
}

/// Removes abandoned scratch files from a directory. A file is abandoned if its name has assay's pattern, it belongs to
/// this user, it has exactly one hard link, and it is not locked.
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
        let error = match directory.remove_abandoned(&name) {
            Ok(Some(Removed::Gone)) => None,
            Ok(_) => continue,
            Err(error) => Some(error.reason()),
        };
        swept.push(Swept {
            path: directory.shown().join(&name),
            error,
        });
    }
    swept
}
