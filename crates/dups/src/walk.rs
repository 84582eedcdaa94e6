//! Stage 1: walks the directory tree. Threads list folders and examine their files relative to open folders,
//! without following links.

use crate::contents::Numbering;
use crate::filter::{IgnoreChain, glob_excludes};
use crate::fsinfo::{self, FsInfo};
use crate::memory::Memory;
use crate::open_folders::Doors;
use crate::remembered_folder::Recall;
use crate::roots::{OpenRoot, Roots};
use crate::scan_options::{RootScanOptions, WalkOptions};
use crate::skip::{self, Reason, Skipped};
use crate::sys;
use crate::table::{FileSystem, Files, NewFile, join};
use crate::{Control, Error, pool};
use ignore::overrides::Override;
use rustix::fs::{AtFlags, FileType, OFlags, RawDir};
use std::collections::{HashMap, HashSet};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex};

/// Names of snapshot folders: ZFS, NetApp, snapper.
pub(crate) const SNAPSHOT_FOLDERS: [&[u8]; 3] = [b".zfs", b".snapshot", b".snapshots"];
/// Buffer size in bytes for listing a folder.
const LISTING: usize = 32 * 1024;

/// What a walk found.
pub(crate) struct Walked {
    /// Files that passed the filter.
    pub files: Files,
    /// Files and folders that were skipped, with reasons.
    pub skipped: Skipped,
    /// Open folders that contain files without a known hash.
    pub doors: Doors,
    /// Device and inode of all folders that were entered.
    pub entered: HashSet<(u64, u64)>,
}

/// Walks the roots (absolute paths) and returns the selected files. Each root is walked with its own options, also a
/// root within another root.
///
/// # Errors
/// A root cannot be opened, or a glob is invalid.
pub(crate) fn walk(
    roots: &[(PathBuf, RootScanOptions)],
    memory: &Memory,
    control: &Control<'_>,
) -> Result<Walked, Error> {
    let mut places = Vec::new();
    let mut files = Files::default();
    let mut skipped = Skipped::default();
    let mut tasks = Vec::new();
    for (root, manner) in roots {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let fd = rustix::fs::open(root.as_path(), flags, rustix::fs::Mode::empty())
            .map_err(|errno| crate::error::io_error(root, "cannot open")(errno.into()))?;
        let stat = sys::stat_fd(&fd)
            .map_err(|errno| crate::error::io_error(root, "cannot examine")(errno.into()))?;
        if !FileType::from_raw_mode(stat.stx_mode.into()).is_dir() {
            return Err(Error::Usage(format!(
                "{}: not a folder; name the folder that holds the files",
                crate::name::format_readable(sys::path_bytes(root))
            )));
        }
        let device = sys::statx_device(&stat);
        let info = fsinfo::read_fs_info(&fd, device);
        if info.pseudo {
            let path = sys::path_bytes(root).to_vec();
            skipped.note(path, Reason::Pseudo, "on a file system of the kernel");
            continue;
        }
        let fs = number_file_system(&mut files, device, info);
        tasks.push(Task {
            path: sys::path_bytes(root).into(),
            root: places.len(),
            fs,
            ignores: None,
        });
        places.push(Place {
            path: root,
            fd,
            length: sys::path_bytes(root).len(),
            globs: manner.walk.filter.globs_for(root)?,
            options: &manner.walk,
        });
    }
    tasks.reverse();
    std::thread::scope(|scope| {
        let walker = Walker {
            places,
            roots: roots.iter().map(|one| sys::path_bytes(&one.0)).collect(),
            memory,
            control,
            queue: Mutex::new(Queue { tasks, active: 0 }),
            more: Condvar::new(),
            found: Mutex::new(Found {
                files,
                numbering: Numbering::begin(scope, memory.hashes()),
                doors: Doors::new(),
                devices: HashMap::new(),
            }),
            seen: Mutex::new(HashSet::with_capacity(memory.folders())),
            skipped: Mutex::new(skipped),
            started: sys::coarse_unix_nanos(),
        };
        pool::run(control, None, || walker.work(), || control.tick());
        let Found {
            mut files,
            numbering,
            doors,
            ..
        } = into_inner(walker.found);
        numbering.finish(&mut files);
        let standing = walker.places.into_iter().map(|place| {
            let path = sys::path_bytes(place.path);
            OpenRoot::new(path, place.fd)
                .map_err(|errno| crate::error::io_error(place.path, "cannot examine")(errno.into()))
        });
        files.roots = Roots::open(standing.collect::<Result<Vec<OpenRoot>, Error>>()?);
        Ok(Walked {
            files,
            skipped: into_inner(walker.skipped),
            doors,
            entered: into_inner(walker.seen),
        })
    })
}

fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// An open root folder with its options.
struct Place<'a> {
    path: &'a std::path::Path,
    fd: OwnedFd,
    length: usize,
    globs: Option<Override>,
    options: &'a WalkOptions,
}

/// A file system: its device number, its index in the table, and its properties.
#[derive(Clone, Copy)]
struct FsRef {
    device: u64,
    number: u16,
    info: FsInfo,
}

fn number_file_system(files: &mut Files, device: u64, info: FsInfo) -> FsRef {
    let number = files.filesystem(FileSystem {
        machine: String::new(),
        fsid: info.fsid,
    });
    FsRef {
        device,
        number,
        info,
    }
}

/// A folder that has to be listed.
struct Task {
    path: Box<[u8]>,
    root: usize,
    /// File system of the parent folder.
    fs: FsRef,
    ignores: Option<Arc<IgnoreChain>>,
}

struct Queue {
    tasks: Vec<Task>,
    active: usize,
}

struct Found<'a> {
    files: Files,
    numbering: Numbering<'a>,
    doors: Doors,
    devices: HashMap<u64, FsRef>,
}

struct Walker<'a> {
    places: Vec<Place<'a>>,
    roots: HashSet<&'a [u8]>,
    memory: &'a Memory,
    control: &'a Control<'a>,
    queue: Mutex<Queue>,
    more: Condvar,
    found: Mutex<Found<'a>>,
    seen: Mutex<HashSet<(u64, u64)>>,
    skipped: Mutex<Skipped>,
    started: i64,
}

/// Buffers that a thread reuses for each folder.
struct Scratch {
    listing: Box<[MaybeUninit<u8>]>,
    names: Vec<u8>,
    pending: Vec<(usize, NewFile)>,
    below: Vec<Task>,
    skipped: Skipped,
}

impl Walker<'_> {
    fn work(&self) {
        let mut scratch = Scratch {
            listing: vec![MaybeUninit::uninit(); LISTING].into_boxed_slice(),
            names: Vec::new(),
            pending: Vec::new(),
            below: Vec::new(),
            skipped: Skipped::default(),
        };
        while let Some(task) = self.next() {
            if !self.control.stopped() {
                self.folder(task, &mut scratch);
            }
            let mut queue = skip::lock(&self.queue);
            queue.active -= 1;
            let wake = !scratch.below.is_empty() || queue.active == 0;
            queue.tasks.append(&mut scratch.below);
            drop(queue);
            if wake {
                self.more.notify_all();
            }
        }
        skip::merge(&self.skipped, scratch.skipped);
    }

    fn next(&self) -> Option<Task> {
        let mut queue = skip::lock(&self.queue);
        loop {
            if let Some(task) = queue.tasks.pop() {
                queue.active += 1;
                return Some(task);
            }
            if queue.active == 0 {
                return None;
            }
            queue = self
                .more
                .wait(queue)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    fn folder(&self, task: Task, scratch: &mut Scratch) {
        let place = &self.places[task.root];
        let below = task.path.get(place.length..).unwrap_or_default();
        let below = below.strip_prefix(b"/").unwrap_or(below);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK;
        let unreadable = |scratch: &mut Scratch, errno| {
            scratch.skipped.note(
                task.path.to_vec(),
                Reason::UnreadableFolder,
                sys::describe_errno(errno),
            );
        };
        let fd = match sys::open_below(place.fd.as_fd(), below, flags) {
            Ok(fd) => fd,
            Err(errno) => return unreadable(scratch, errno),
        };
        let stat = match sys::stat_fd(&fd) {
            Ok(stat) => stat,
            Err(errno) => return unreadable(scratch, errno),
        };
        let device = sys::statx_device(&stat);
        let fs = if device == task.fs.device {
            task.fs
        } else if !place.options.other_filesystems {
            return scratch.skipped.add(Reason::OtherFilesystem);
        } else {
            self.filesystem(device, fd.as_fd())
        };
        if fs.info.pseudo {
            return scratch.skipped.add(Reason::Pseudo);
        }
        if !skip::lock(&self.seen).insert((device, stat.stx_ino)) {
            return scratch.skipped.add(Reason::SeenAlready);
        }
        let ignores = match place.options.filter.ignore_files {
            true => IgnoreChain::descend(task.ignores.as_ref(), &task.path, &fd),
            false => None,
        };
        let remembered = self.memory.find(&task.path);
        let mut recall = Recall::new(remembered.map(|(_, block)| block));
        scratch.names.clear();
        scratch.pending.clear();
        let mut listing = std::mem::take(&mut scratch.listing);
        let mut dir = RawDir::new(&fd, &mut listing);
        while let Some(entry) = dir.next() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(errno) => {
                    unreadable(scratch, errno);
                    break;
                }
            };
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let mut kind = entry.file_type();
            let mut stat = None;
            if matches!(kind, FileType::RegularFile | FileType::Unknown) {
                match rustix::fs::statx(
                    &fd,
                    entry.file_name(),
                    AtFlags::SYMLINK_NOFOLLOW,
                    sys::WANTED,
                ) {
                    Ok(found) => {
                        kind = FileType::from_raw_mode(found.stx_mode.into());
                        stat = Some(found);
                    }
                    Err(errno) => {
                        let reason = match errno {
                            rustix::io::Errno::NOENT => Reason::Changed,
                            _ => Reason::Unreadable,
                        };
                        let path = join(&task.path, name);
                        scratch
                            .skipped
                            .note(path, reason, sys::describe_errno(errno));
                        continue;
                    }
                }
            }
            match (kind, stat) {
                (FileType::RegularFile, Some(stat)) => {
                    self.file(&task, fs, &fd, name, &stat, &ignores, &mut recall, scratch);
                }
                (FileType::Directory, _) => {
                    if !place.options.snapshots && SNAPSHOT_FOLDERS.contains(&name) {
                        scratch.skipped.add(Reason::Snapshot);
                        continue;
                    }
                    let path = join(&task.path, name);
                    if self.roots.contains(path.as_slice()) {
                        scratch.skipped.add(Reason::SeenAlready);
                    } else if glob_excludes(place.globs.as_ref(), &path, true) {
                        scratch.skipped.add(Reason::Filtered);
                    } else if IgnoreChain::excludes(ignores.as_ref(), &path, true) {
                        scratch.skipped.add(Reason::Ignored);
                    } else {
                        scratch.below.push(Task {
                            path: path.into(),
                            root: task.root,
                            fs,
                            ignores: ignores.clone(),
                        });
                    }
                }
                (FileType::Symlink, _) => scratch.skipped.add(Reason::Symlink),
                _ => scratch.skipped.add(Reason::Special),
            }
        }
        scratch.listing = listing;
        let dirty = !recall.was_complete();
        if let Some((number, _)) = remembered.filter(|_| !scratch.pending.is_empty()) {
            self.memory.mark(number);
        }
        self.keep(&task, fs, fd, dirty, scratch);
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "one entry of a listing and its surroundings"
    )]
    fn file(
        &self,
        task: &Task,
        fs: FsRef,
        dir: &OwnedFd,
        name: &[u8],
        stat: &rustix::fs::Statx,
        ignores: &Option<Arc<IgnoreChain>>,
        recall: &mut Recall<'_>,
        scratch: &mut Scratch,
    ) {
        let id = sys::statx_identity(stat);
        if id.size == 0 {
            return scratch.skipped.add(Reason::Empty);
        }
        let place = &self.places[task.root];
        let globs = place.globs.as_ref();
        let age = self.started.saturating_sub(id.mtime);
        if !place.options.filter.wants(id.size, age, stat.stx_uid)
            || globs.is_some() && glob_excludes(globs, &join(&task.path, name), false)
        {
            return scratch.skipped.add(Reason::Filtered);
        }
        if ignores.is_some()
            && IgnoreChain::excludes(ignores.as_ref(), &join(&task.path, name), false)
        {
            return scratch.skipped.add(Reason::Ignored);
        }
        // On overlayfs a file can be on another device than its folder without being a mount.
        let device = sys::statx_device(stat);
        let fs = match device == fs.device {
            true => fs,
            false => self.filesystem(device, dir.as_fd()),
        };
        let fresh = id.ctime > self.started - fs.info.blur;
        let allocated = stat.stx_blocks.saturating_mul(512);
        let allocated = (allocated < id.size).then_some(allocated);
        let known = match fresh {
            true => {
                recall.forget(name);
                None
            }
            false => recall.find(name, id, allocated, fs.info.fsid),
        };
        scratch.pending.push((
            scratch.names.len(),
            NewFile {
                id,
                fs: fs.number,
                allocated,
                fresh,
                known,
            },
        ));
        scratch.names.extend_from_slice(name);
    }

    /// Adds a folder's files to the table.
    fn keep(&self, task: &Task, fs: FsRef, fd: OwnedFd, dirty: bool, scratch: &mut Scratch) {
        if scratch.pending.is_empty() {
            return;
        }
        let bytes: u64 = scratch.pending.iter().map(|(_, file)| file.id.size).sum();
        let progress = self.control.progress;
        progress
            .files_seen
            .fetch_add(scratch.pending.len() as u64, Ordering::Relaxed);
        progress.bytes_seen.fetch_add(bytes, Ordering::Relaxed);
        let mut found = skip::lock(&self.found);
        let Found {
            files,
            numbering,
            doors,
            ..
        } = &mut *found;
        let dir = files.add_dir(&task.path, fs.number);
        files.dirs[dir as usize].dirty = dirty;
        if dirty {
            doors.keep(dir, fd);
        }
        for (number, (at, file)) in scratch.pending.iter().enumerate() {
            let end = scratch
                .pending
                .get(number + 1)
                .map_or(scratch.names.len(), |(next, _)| *next);
            files.add_file_later(dir, &scratch.names[*at..end], *file, numbering);
        }
    }

    fn filesystem(&self, device: u64, fd: BorrowedFd<'_>) -> FsRef {
        let mut found = skip::lock(&self.found);
        if let Some(known) = found.devices.get(&device) {
            return *known;
        }
        let fs = number_file_system(&mut found.files, device, fsinfo::read_fs_info(fd, device));
        found.devices.insert(device, fs);
        fs
    }
}
