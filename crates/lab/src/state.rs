//! Registry of guests. It makes sure that no guest outlives the assay process that needs it.
//!
//! Each guest has a directory with its sockets, console and scratch disks. The guest's QEMU works in this directory.
//! The assay process that owns a guest holds a lock on the directory, which the kernel releases when the process ends
//! for any reason. A guest of `assay lab up` has no owner. Its entry is marked as detached, and contains process number
//! and start time of the guest's QEMU.

use crate::child::kill_all_in;
use crate::error::LabError;
use assay_host::held::Removed;
use assay_host::{HostMut as _, KnownFile, LiveHost, ProcessId, lockfile};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

const OWNER: &str = "owner";
const ENTRY: &str = "entry.json";
/// Name prefix of a directory that is being created for a guest.
const PART: &str = ".part-";
/// Time within which a killed QEMU must end. QEMU may first have to finish writes in flight to slow disks.
const KILLED_WITHIN: Duration = Duration::from_secs(10);

/// What the registry contains about a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestEntry {
    /// Name by which the user addresses the guest.
    pub name: String,
    /// Whether the guest continues after its assay process ends.
    pub detached: bool,
    /// Process number of QEMU; 0 before QEMU has started.
    pub pid: u32,
    /// Start time of QEMU, in clock ticks since boot.
    pub start_time: u64,
    /// Accelerator of the guest: `kvm` or `tcg`.
    pub accel: String,
    /// Memory of the guest in MiB.
    pub memory_mib: u32,
    /// Number of virtual CPUs.
    pub cpus: u32,
    /// Name and size in bytes of each disk.
    pub disks: Vec<(String, u64)>,
    /// Hash of the recipe of the guest's image.
    pub image: String,
    /// Files of the guest that are outside of its directory.
    pub files: Vec<PathBuf>,
    /// Identities of the files in `files`, by name. Each was recorded when the file was created.
    #[serde(default)]
    pub known: BTreeMap<String, KnownFile>,
}

impl GuestEntry {
    /// Returns whether QEMU of this guest runs.
    #[must_use]
    pub fn alive(&self) -> bool {
        ProcessId::of(self.pid).is_some_and(|process| process.start == self.start_time)
    }
}

/// Directory that contains the directories of all guests.
#[derive(Clone, Debug)]
pub struct GuestRegistry {
    root: PathBuf,
}

/// Directory of one guest, with the lock if this process owns the guest.
#[derive(Debug)]
pub struct GuestDirectory {
    /// Path of the guest's directory.
    pub dir: PathBuf,
    /// Lock on the directory; `None` if this process does not own the guest.
    pub(crate) owner: Option<File>,
}

impl GuestRegistry {
    /// Opens the directory `lab` below `root`. Creates it with private access if it is missing.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub fn open(root: &Path) -> Result<Self, LabError> {
        let root = root.join("lab");
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&root)
            .map_err(|source| LabError::State {
                path: root.clone(),
                source,
            })?;
        Ok(Self { root })
    }

    /// Opens the directory `lab` below `root` if it exists.
    #[must_use]
    pub fn existing(root: &Path) -> Option<Self> {
        let root = root.join("lab");
        root.is_dir().then_some(Self { root })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Takes the lock that is needed for adding guests and for cleaning up.
    fn lock(&self) -> Result<File, LabError> {
        let path = self.root.join(".lock");
        lockfile::wait(&path).map_err(LabError::io(&path))
    }

    /// Checks a guest's name.
    ///
    /// # Errors
    /// [`LabError::Name`].
    pub fn check_name(name: &str) -> Result<(), LabError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        match (1..=32).contains(&name.len()) && name.bytes().all(plain) {
            true => Ok(()),
            false => Err(LabError::Name(name.to_owned())),
        }
    }

    /// Returns the path for the directory of a new guest. Fails if the name is already used.
    pub(crate) fn free(&self, name: &str) -> Result<PathBuf, LabError> {
        Self::check_name(name)?;
        let dir = self.root.join(name);
        match dir.symlink_metadata() {
            Ok(_) => Err(LabError::Taken(name.to_owned())),
            Err(_) => Ok(dir),
        }
    }

    /// Creates and locks the directory of a new guest.
    pub fn add(&self, name: &str) -> Result<GuestDirectory, LabError> {
        let _lock = self.lock()?;
        let dir = self.free(name)?;
        // It appears with its owner file in it, which distinguishes it from directories of other people.
        let part = self.root.join(format!("{PART}{name}"));
        match fs::remove_dir_all(&part) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(LabError::io(&part)(error));
            }
            _ => {}
        }
        let owner = fs::DirBuilder::new()
            .mode(0o700)
            .create(&part)
            .and_then(|()| File::create_new(part.join(OWNER)))
            .map_err(LabError::io(&part))?;
        flock(&owner, FlockOperation::NonBlockingLockExclusive)
            .map_err(|error| LabError::io(&part)(error.into()))?;
        fs::rename(&part, &dir).map_err(LabError::io(&dir))?;
        Ok(GuestDirectory {
            dir,
            owner: Some(owner),
        })
    }

    /// Lists the directories of guests. Ignores unknown directories, because `ASSAY_STATE` may contain a directory
    /// `lab` that does not belong to assay.
    fn dirs(&self) -> Vec<PathBuf> {
        let ours = |entry: &fs::DirEntry| {
            let dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let name = entry.file_name();
            let named = name
                .to_str()
                .is_some_and(|name| Self::check_name(name).is_ok());
            let owner = entry.path().join(OWNER).symlink_metadata();
            dir && named && owner.is_ok_and(|owner| owner.is_file() && owner.len() == 0)
        };
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let mut dirs: Vec<_> = entries.filter(ours).map(|entry| entry.path()).collect();
        dirs.sort();
        dirs
    }

    /// Returns the running guests, ordered by name. Call [`Self::sweep`] before.
    #[must_use]
    pub fn list(&self) -> Vec<GuestEntry> {
        let dirs = self.dirs();
        dirs.iter()
            .filter_map(|dir| read(dir))
            .filter(GuestEntry::alive)
            .collect()
    }

    /// Returns the directory of the detached guest with this name.
    pub(crate) fn find(&self, name: &str) -> Result<(GuestDirectory, GuestEntry), LabError> {
        let mut running = self.list();
        running.retain(|entry| entry.detached);
        match running.iter().find(|entry| entry.name == name) {
            Some(entry) => Ok((
                GuestDirectory {
                    dir: self.root.join(name),
                    owner: None,
                },
                entry.clone(),
            )),
            None => Err(LabError::NoGuest {
                name: name.to_owned(),
                running: running.into_iter().map(|entry| entry.name).collect(),
            }),
        }
    }

    /// Removes the files of ended guests and of killed processes. Ends guests whose assay process was killed, and
    /// returns the names of these guests.
    ///
    /// # Errors
    /// The directory cannot be used, or some files of a guest cannot be removed. The other guests are removed anyway,
    /// and the error of the first failed guest is returned.
    pub fn sweep(&self) -> Result<Vec<String>, LabError> {
        let _lock = self.lock()?;
        let (mut swept, mut failed) = (Vec::new(), Ok(()));
        self.sweep_parts();
        for dir in self.dirs() {
            let owned = File::open(dir.join(OWNER)).is_ok_and(|owner| {
                flock(&owner, FlockOperation::NonBlockingLockExclusive).is_err()
            });
            let wanted = read(&dir).is_some_and(|entry| entry.detached && entry.alive());
            if owned || wanted {
                continue;
            }
            let removed = remove(&dir);
            if removed.is_ok() {
                let name = dir.file_name().unwrap_or_default();
                swept.push(name.to_string_lossy().into_owned());
            }
            failed = failed.and(removed);
        }
        failed.map(|()| swept)
    }
}

impl GuestRegistry {
    /// Removes directories that assay was creating when it was killed. Requires the lock, so that no other process is
    /// creating a directory.
    fn sweep_parts(&self) {
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            if entry.file_name().as_bytes().starts_with(PART.as_bytes()) {
                // Only directories that are as empty as assay's own.
                let owner = entry.path().join(OWNER);
                if owner.symlink_metadata().is_ok_and(|file| file.len() == 0) {
                    let _ = fs::remove_file(&owner);
                }
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}

impl GuestDirectory {
    /// Writes the registry entry of the guest atomically.
    pub(crate) fn enter(&self, entry: &GuestEntry) -> Result<(), LabError> {
        let (path, part) = (self.dir.join(ENTRY), self.dir.join("entry.part"));
        let text = serde_json::to_vec_pretty(entry)
            .map_err(|error| LabError::io(&path)(io::Error::other(error)))?;
        File::create(&part)
            .and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_data()))
            .and_then(|()| fs::rename(&part, &path))
            .map_err(LabError::io(&path))
    }

    /// Reads the registry entry of the guest; `None` if it is missing or unreadable.
    pub(crate) fn entered(&self) -> Option<GuestEntry> {
        read(&self.dir)
    }
}

fn read(dir: &Path) -> Option<GuestEntry> {
    serde_json::from_slice(&fs::read(dir.join(ENTRY)).ok()?).ok()
}

/// Ends the guest's QEMU and removes everything that belongs to the guest.
pub(crate) fn remove(dir: &Path) -> Result<(), LabError> {
    kill_all_in(dir, KILLED_WITHIN).map_err(LabError::io(dir))?;
    let (files, known) = read(dir)
        .map(|entry| (entry.files, entry.known))
        .unwrap_or_default();
    let mut removed = Ok(());
    // Files in assay's own directory are removed with it. A small file system that was mounted there
    // (`experiments`) disappeared with the killed process, so its files cannot be searched.
    let outside = |file: &PathBuf| !dir.parent().is_some_and(|ours| file.starts_with(ours));
    for file in files.into_iter().filter(outside) {
        // Only files with the guest's own mark, because the entry may have been manipulated.
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(&scratch_prefix(dir)) {
            // A failure for one file must not prevent the others.
            removed = removed.and(remove_file(&file, &known));
        }
    }
    // The entry stays until all files are removed, for the next attempt.
    removed?;
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(LabError::io(dir)(error)),
        _ => Ok(()),
    }
}

/// Removes a file outside of the guest's directory, even if the file was moved. Another file that now has its name is
/// not removed.
pub(crate) fn remove_file(
    file: &Path,
    known: &BTreeMap<String, KnownFile>,
) -> Result<(), LabError> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    match LiveHost.remove_made(file, known.get(&*name))? {
        Removed::Gone | Removed::Absent => Ok(()),
        Removed::Another => {
            let reason = "not removed: something else has this name now, and where the disk's file \
                was moved to is not known; look for it and remove it, then take this one away";
            Err(LabError::io(file)(io::Error::other(reason)))
        }
        Removed::Emptied => {
            let reason = "moved away, and its present name is unknown; it was emptied, so that it \
                takes no space: look for it and remove it";
            Err(LabError::io(file)(io::Error::other(reason)))
        }
    }
}

/// Returns the name prefix of a guest's files outside of its directory. Two guests with the same name in two state
/// directories have different prefixes.
pub(crate) fn scratch_prefix(dir: &Path) -> String {
    let name = dir.file_name().unwrap_or_default();
    let whole = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let mark = blake3::hash(whole.as_os_str().as_bytes()).to_hex();
    format!(".assay-lab-{}-{}-", name.to_string_lossy(), &mark[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, files: Vec<PathBuf>) -> GuestEntry {
        GuestEntry {
            name: name.to_owned(),
            detached: true,
            pid: 0,
            start_time: 0,
            accel: "tcg".to_owned(),
            memory_mib: 512,
            cpus: 1,
            disks: Vec::new(),
            image: "0".repeat(16),
            files,
            known: BTreeMap::new(),
        }
    }

    #[test]
    fn a_guest_that_ended_is_swept_with_its_own_files_and_no_others() {
        let home = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let state = GuestRegistry::open(home.path()).unwrap();
        let place = state.add("gone").unwrap();
        let ours = elsewhere.path().join(scratch_prefix(&place.dir) + "data");
        // File of a guest with the same name in another state directory.
        let theirs = elsewhere
            .path()
            .join(scratch_prefix(Path::new("/other/lab/gone")) + "data");
        let precious = elsewhere.path().join("precious");
        for path in [&ours, &theirs, &precious] {
            fs::write(path, "x").unwrap();
        }
        place
            .enter(&entry(
                "gone",
                vec![ours.clone(), theirs.clone(), precious.clone()],
            ))
            .unwrap();
        assert_eq!(state.sweep().unwrap(), Vec::<String>::new(), "still held");
        drop(place);
        assert_eq!(state.sweep().unwrap(), ["gone"]);
        assert!(!ours.exists() && theirs.exists() && precious.exists());
        assert_eq!(state.sweep().unwrap(), Vec::<String>::new());
    }

    #[test]
    fn what_lay_on_a_file_system_of_ours_that_is_gone_keeps_nothing() {
        let home = tempfile::tempdir().unwrap();
        let state = GuestRegistry::open(home.path()).unwrap();
        let (guest, room) = (state.add("full").unwrap(), state.add("full-room").unwrap());
        let mount = room.dir.join("mnt");
        fs::create_dir(&mount).unwrap();
        let file = mount.join(scratch_prefix(&guest.dir) + "data.img");
        // A file on another file system: the original file system is no longer mounted.
        let known = KnownFile::of(File::open("/proc/self/status").unwrap()).unwrap();
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let known = BTreeMap::from([(name, known)]);
        assert!(remove_file(&file, &known).is_err());
        let mut entered = entry("full", vec![file]);
        entered.known = known;
        guest.enter(&entered).unwrap();
        drop((guest, room));
        let mut swept = state.sweep().unwrap();
        swept.sort();
        assert_eq!(swept, ["full", "full-room"]);
    }

    #[test]
    fn what_cannot_be_removed_does_not_keep_the_rest() {
        let dir = tempfile::tempdir().unwrap();
        let state = GuestRegistry::open(dir.path()).unwrap();
        let outside = tempfile::tempdir().unwrap();
        // A path that leads to itself.
        let way = outside.path().join("way");
        std::os::unix::fs::symlink(&way, &way).unwrap();
        let mut far = Vec::new();
        for name in ["a", "b"] {
            let place = state.add(name).unwrap();
            let prefix = scratch_prefix(&place.dir);
            let [stuck, goes] =
                [&way, outside.path()].map(|dir| dir.join(format!("{prefix}d.img")));
            fs::write(&goes, "").unwrap();
            let files = match name {
                "a" => vec![stuck, goes.clone()],
                _ => vec![goes.clone()],
            };
            place.enter(&entry(name, files)).unwrap();
            far.push(goes);
        }
        assert!(state.sweep().is_err());
        assert!(far.iter().all(|file| !file.exists()), "{far:?}");
        let left = |name: &str| dir.path().join("lab").join(name).is_dir();
        assert!(left("a") && !left("b"));
        fs::remove_file(&way).unwrap();
        assert_eq!(state.sweep().unwrap(), ["a"]);
    }

    /// `ASSAY_STATE` may be a home directory with an unrelated directory `lab`, which must stay untouched.
    #[test]
    fn directories_of_others_are_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let state = GuestRegistry::open(home.path()).unwrap();
        let lab = home.path().join("lab");
        let theirs = [lab.join("thesis"), lab.join("owned"), lab.join(".part")];
        for dir in &theirs {
            fs::create_dir(dir).unwrap();
        }
        fs::write(theirs[0].join("chapter"), "x").unwrap();
        fs::write(theirs[1].join(OWNER), "Ada").unwrap();
        // A link to a directory that looks like a guest's.
        let place = state.add("gone").unwrap();
        std::os::unix::fs::symlink("gone", lab.join("link")).unwrap();
        assert!(matches!(state.add("thesis"), Err(LabError::Taken(_))));
        drop(place);
        assert_eq!(state.sweep().unwrap(), ["gone"]);
        assert!(theirs.iter().all(|dir| dir.is_dir()));
        assert!(theirs[0].join("chapter").is_file());
        assert!(lab.join("link").symlink_metadata().is_ok());
    }

    #[test]
    fn what_a_kill_left_half_made_is_in_nobodys_way() {
        let home = tempfile::tempdir().unwrap();
        let state = GuestRegistry::open(home.path()).unwrap();
        fs::create_dir(home.path().join("lab/.part-one")).unwrap();
        let _one = state.add("one").unwrap();
        let part = home.path().join("lab/.part-two");
        fs::create_dir(&part).unwrap();
        fs::write(part.join(OWNER), "").unwrap();
        assert_eq!(state.sweep().unwrap(), Vec::<String>::new());
        assert_eq!(
            fs::read_dir(home.path().join("lab")).unwrap().count(),
            2,
            "and the lock"
        );
    }

    #[test]
    fn a_detached_guest_that_runs_stays() {
        let home = tempfile::tempdir().unwrap();
        let state = GuestRegistry::open(home.path()).unwrap();
        let mut place = state.add("up").unwrap();
        // This process stands for QEMU.
        let pid = std::process::id();
        let mut known = entry("up", Vec::new());
        known.pid = pid;
        known.start_time = ProcessId::of(pid).unwrap().start;
        place.enter(&known).unwrap();
        place.owner = None;
        assert_eq!(state.sweep().unwrap(), Vec::<String>::new());
        assert_eq!(state.list(), std::slice::from_ref(&known));
        // Another process with the same number has another start time.
        known.start_time += 1;
        place.enter(&known).unwrap();
        assert_eq!(state.sweep().unwrap(), ["up"]);
    }

    #[test]
    fn names_cannot_lead_elsewhere_and_are_given_once() {
        let home = tempfile::tempdir().unwrap();
        let state = GuestRegistry::open(home.path()).unwrap();
        for name in ["", "..", "a/b", ".lock", "x y", &"n".repeat(33)] {
            assert!(matches!(state.add(name), Err(LabError::Name(_))), "{name}");
        }
        let _held = state.add("one").unwrap();
        assert!(matches!(state.add("one"), Err(LabError::Taken(_))));
        insta::assert_snapshot!(state.find("one").unwrap_err(), @"there is no guest one; none is running: `assay lab up` starts one");
    }
}
