//! A file that comes out of a guest into a directory that somebody else may own: it appears whole or
//! not at all, and a killed assay leaves nothing of it.

use crate::error::LabError;
use assay_host::HostError;
use assay_host::held::{Directory, Held};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

const PREFIX: &str = ".assay-";

/// Where a file lands.
pub(crate) struct Landing<'a> {
    above: Directory,
    name: &'a OsStr,
    /// A name beside it: from the beginning where files need one, else for a moment, when the file
    /// replaces another one.
    aside: OsString,
    held: Held,
    named: bool,
    landed: bool,
}

impl<'a> Landing<'a> {
    /// Makes a file that has no name yet, where the file system can (`O_TMPFILE`, open(2)).
    pub(crate) fn new(to: &'a Path) -> Result<Self, LabError> {
        let above = Directory::open(match to.parent() {
            Some(above) if above != Path::new("") => above,
            _ => Path::new("."),
        })?;
        let name = to.file_name().unwrap_or_default();
        sweep(&above, name);
        let mut aside = OsString::from(format!("{PREFIX}{}-", std::process::id()));
        aside.push(name);
        let (held, named) = match above.unnamed()? {
            Some(held) => (held, false),
            None => (above.create(&aside)?, true),
        };
        // Tells the next one that this one lives.
        let _ = flock(held.file(), FlockOperation::NonBlockingLockExclusive);
        Ok(Self {
            above,
            name,
            aside,
            held,
            named,
            landed: false,
        })
    }

    pub(crate) fn file(&self) -> &std::fs::File {
        self.held.file()
    }

    /// Gives the file its name, replacing what has it.
    pub(crate) fn land(mut self) -> Result<(), LabError> {
        if !self.named {
            match self.above.name(&self.held, self.name) {
                Ok(()) => {
                    self.landed = true;
                    return Ok(());
                }
                Err(error) if is_there(&error) => {}
                Err(error) => return Err(error.into()),
            }
            self.above.name(&self.held, &self.aside)?;
            self.named = true;
        }
        self.above.rename(&self.aside, self.name)?;
        self.landed = true;
        Ok(())
    }
}

impl Drop for Landing<'_> {
    fn drop(&mut self) {
        if self.named && !self.landed {
            let _ = self.above.remove(&self.aside, self.held.identity());
        }
    }
}

fn is_there(error: &HostError) -> bool {
    error.errno() == Some(Errno::EXIST.raw_os_error())
}

/// Removes what killed ones left of a file of this name: this user's, under no other name, and locked
/// by nobody.
fn sweep(above: &Directory, name: &OsStr) {
    for found in above.list().unwrap_or_default() {
        let number = found.as_bytes().strip_prefix(PREFIX.as_bytes());
        let number = number.and_then(|rest| rest.strip_suffix(name.as_bytes()));
        let number = number.and_then(|rest| rest.strip_suffix(b"-"));
        if !number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
        {
            continue;
        }
        // What cannot be removed is in nobody's way.
        let _ = above.remove_abandoned(&found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write as _;

    #[test]
    fn a_file_lands_whole_and_a_killed_one_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let to = dir.path().join("file");
        let count = || fs::read_dir(dir.path()).unwrap().count();
        for (round, text) in ["first", "second"].into_iter().enumerate() {
            let landing = Landing::new(&to).unwrap();
            landing.file().write_all(text.as_bytes()).unwrap();
            assert_eq!(count(), round + usize::from(landing.named));
            landing.land().unwrap();
            assert_eq!(fs::read_to_string(&to).unwrap(), text);
            assert_eq!(count(), 1);
        }
        drop(Landing::new(&to).unwrap());
        assert_eq!(count(), 1);
    }

    #[test]
    fn attack_what_a_killed_one_left_goes_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let left = path(".assay-4711-file");
        let lives = path(".assay-4712-file");
        for name in [
            ".assay-4711-file",
            ".assay-4712-file",
            ".assay-4713-other",
            ".assay-x-file",
        ] {
            fs::write(path(name), "part").unwrap();
        }
        fs::write(path("victim"), "precious").unwrap();
        std::os::unix::fs::symlink(path("victim"), path(".assay-1-file")).unwrap();
        fs::hard_link(path("victim"), path(".assay-2-file")).unwrap();
        let other = fs::File::open(&lives).unwrap();
        flock(&other, FlockOperation::LockExclusive).unwrap();
        Landing::new(&path("file")).unwrap().land().unwrap();
        assert!(!left.exists());
        assert!(lives.exists() && path(".assay-4713-other").exists());
        assert!(path(".assay-x-file").exists() && path(".assay-2-file").exists());
        assert!(path(".assay-1-file").is_symlink());
        assert_eq!(fs::read_to_string(path("victim")).unwrap(), "precious");
        assay_testing::attacked("names that a killed copy may have left", 6, 6);
    }

    /// The owner of the directory gives every name in it to a link to root's file.
    #[test]
    fn attack_files_landing_in_a_directory_of_others() {
        if !rustix::process::geteuid().is_root() {
            assay_testing::skipped("root", "only root has something to lose here");
            return;
        }
        let all = tempfile::tempdir().unwrap();
        let (theirs, victim) = (all.path().join("theirs"), all.path().join("victim"));
        fs::create_dir(&theirs).unwrap();
        fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::chown(&theirs, Some(65534), None).unwrap();
        let modes = [(all.path(), 0o755), (&*victim, 0o600)];
        for (path, mode) in modes {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let over = std::sync::atomic::AtomicBool::new(false);
        let rounds = 500 * assay_testing::factor();
        let mut held = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let nobody = rustix::process::Uid::from_raw(65534);
                rustix::thread::set_thread_uid(nobody).unwrap();
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    for entry in fs::read_dir(&theirs).into_iter().flatten().flatten() {
                        let _ = fs::remove_file(entry.path());
                        let _ = std::os::unix::fs::symlink(&victim, entry.path());
                    }
                }
            });
            for round in 0..rounds {
                let to = theirs.join(format!("file{}", round % 3));
                if let Ok(landing) = Landing::new(&to) {
                    let _ = landing.file().write_all(b"from a guest");
                    let _ = landing.land();
                }
                held += u64::from(fs::read(&victim).unwrap() == b"precious");
            }
            over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        assay_testing::attacked("files that land in a directory of others", rounds, held);
    }
}
