//! Table of the files of a scan. It needs 56 bytes per file plus the name, and 36 bytes per duplicated content. A long
//! table is stored in a file ([`crate::store`]).

use crate::contents::{Contents, Numbering};
pub use crate::hash::Hash;
use crate::hash::HashKind;
pub use crate::identity::Identity;
use crate::roots::Roots;
use crate::store::SpillArray;

/// Index of a file in [`Files::files`].
pub type FileId = u32;

/// Marks a file without a known hash; see [`File::hash`].
pub const NO_HASH: u32 = u32::MAX;

/// A range in the byte array of [`Files`] that contains paths and names.
#[derive(Clone, Copy, Debug)]
pub struct BytesSpan {
    at: u64,
    len: u32,
}

/// A folder that contains files of the table.
#[derive(Clone, Copy, Debug)]
pub struct Dir {
    /// Absolute path of the folder.
    pub path: BytesSpan,
    /// Index of its file system in [`Files::filesystems`].
    pub fs: u16,
    /// Index of its first file; the files of a folder are contiguous.
    pub first: FileId,
    /// Number of files of this folder in the table.
    pub count: u32,
    /// Whether the index entry of this folder must be updated.
    pub dirty: bool,
}

/// A regular file in the table.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// Inode, size and times.
    pub id: Identity,
    /// Position of the name in the byte array of [`Files`].
    name_at: u64,
    /// Index of its folder in [`Files::dirs`].
    pub dir: u32,
    /// Number of the file's hash, or [`NO_HASH`]. Equal contents have equal numbers.
    pub hash: u32,
    /// Number of the last scan that compared this file with all other files of its size; 0 if no scan did.
    pub generation: u32,
    /// Index of its file system in [`Files::filesystems`].
    pub fs: u16,
    name_len: u8,
    flags: u8,
}

const SPARSE: u8 = 1;
const FRESH: u8 = 2;
const ASIDE: u8 = 4;

impl File {
    /// Creates a file with a known state and no other data.
    pub(crate) fn known(id: Identity) -> Self {
        Self {
            id,
            name_at: 0,
            dir: 0,
            hash: NO_HASH,
            generation: 0,
            fs: 0,
            name_len: 0,
            flags: 0,
        }
    }

    /// Returns whether the file uses less disk space than its length, so that it may have holes.
    pub fn is_sparse(&self) -> bool {
        self.flags & SPARSE != 0
    }

    /// Returns whether the file was changed so shortly before its examination that another change might leave its times
    /// unchanged. Stored data about this file is not trusted.
    pub fn is_fresh(&self) -> bool {
        self.flags & FRESH != 0
    }

    /// Returns whether the file was set aside, because it is unreadable or changed during the scan.
    pub fn is_aside(&self) -> bool {
        self.flags & ASIDE != 0
    }

    /// Marks the file as unreadable or changed.
    pub fn set_aside(&mut self) {
        self.flags |= ASIDE;
        self.hash = NO_HASH;
        self.generation = 0;
    }
}

/// A file that is about to be added to the table.
#[derive(Clone, Copy, Debug)]
pub struct NewFile {
    /// Inode, size and times.
    pub id: Identity,
    /// Index of its file system in [`Files::filesystems`].
    pub fs: u16,
    /// Bytes on disk, if fewer than the size.
    pub allocated: Option<u64>,
    /// Whether the file had just changed, see [`File::is_fresh`].
    pub fresh: bool,
    /// Data that the index contains for exactly this state of the file; `None` if there is none.
    pub known: Option<RememberedFile>,
}

/// Data that the index contains about a file.
#[derive(Clone, Copy, Debug)]
pub struct RememberedFile {
    /// Scan that compared the file, see [`File::generation`].
    pub generation: u32,
    /// Hash of the content, if known.
    pub hash: Option<Hash>,
    /// Fingerprint of the extents, see [`Files::share`].
    pub share: Option<u64>,
}

/// A file system that contains files of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// Machine of the file system, in merged indexes; empty for this machine.
    pub machine: String,
    /// Identity that stays the same after a reboot (`f_fsid` of statfs(2), else the device number).
    pub fsid: i64,
}

/// All files of a scan or an index.
#[derive(Default, Debug)]
pub struct Files {
    /// Byte array of all paths and names.
    bytes: SpillArray<u8>,
    /// Folders that contain at least one file.
    pub dirs: SpillArray<Dir>,
    /// Files, in the order of their folders.
    pub files: SpillArray<File>,
    /// Hashes of the contents, each stored once.
    pub(crate) contents: Contents,
    /// Hash function of the table.
    pub kind: HashKind,
    /// File systems of the files, without repetitions.
    pub filesystems: Vec<FileSystem>,
    /// Roots of this machine that contain the files.
    pub roots: Roots,
    /// Fingerprint of the extents of each file, see [`Files::share`]; empty if none is known; 0 means unknown.
    shares: SpillArray<u64>,
    /// Bytes on disk of each file, see [`Files::allocated`]; empty if no file uses less than its size.
    allocated: SpillArray<u64>,
}

impl Files {
    /// Adds a folder to the table. Returns its number.
    pub fn add_dir(&mut self, path: &[u8], fs: u16) -> u32 {
        let path = self.keep(path);
        self.dirs.push(Dir {
            path,
            fs,
            first: index(self.files.len()),
            count: 0,
            dirty: false,
        });
        index(self.dirs.len() - 1)
    }

    /// Adds a file to the last added folder. `name` has at most 255 bytes, as Linux guarantees.
    pub fn add_file(&mut self, dir: u32, name: &[u8], new: NewFile) -> FileId {
        let hash = new.known.and_then(|known| known.hash);
        let number = hash.map_or(NO_HASH, |hash| self.add_hash(hash));
        self.put(dir, name, new, number)
    }

    /// Like [`Files::add_file`], but the hash gets its final number only when `numbering` finishes.
    pub(crate) fn add_file_later(
        &mut self,
        dir: u32,
        name: &[u8],
        new: NewFile,
        numbering: &mut Numbering<'_>,
    ) {
        let hash = new.known.and_then(|known| known.hash);
        let mark = hash.map_or(NO_HASH, |hash| numbering.add(hash));
        self.put(dir, name, new, mark);
    }

    fn put(&mut self, dir: u32, name: &[u8], new: NewFile, hash: u32) -> FileId {
        let span = self.keep(name);
        let mut flags = 0;
        for (set, flag) in [(new.allocated.is_some(), SPARSE), (new.fresh, FRESH)] {
            if set {
                flags |= flag;
            }
        }
        self.dirs[dir as usize].count += 1;
        self.files.push(File {
            id: new.id,
            name_at: span.at,
            name_len: u8::try_from(name.len()).unwrap_or(u8::MAX),
            dir,
            hash,
            generation: new.known.map_or(0, |known| known.generation),
            fs: new.fs,
            flags,
        });
        let id = index(self.files.len() - 1);
        if let Some(bytes) = new.allocated {
            set(&mut self.allocated, id, bytes);
        }
        if let Some(share) = new.known.and_then(|known| known.share) {
            self.set_share(id, share);
        }
        id
    }

    /// Returns the number of a hash and adds it if it is new.
    pub fn add_hash(&mut self, hash: Hash) -> u32 {
        self.contents.add(hash)
    }

    /// Returns the number of different known hashes.
    pub fn contents(&self) -> usize {
        self.contents.len()
    }

    /// Returns the fingerprint of a file's physical extents, on file systems with reflinks. Files with equal
    /// fingerprints share all their blocks.
    pub fn share(&self, file: FileId) -> Option<u64> {
        let share = self.shares.get(file as usize).copied();
        share.filter(|share| *share != 0)
    }

    /// Sets the fingerprint of a file's extents, see [`Files::share`].
    pub fn set_share(&mut self, file: FileId, share: u64) {
        // Zero means unknown, so a fingerprint of zero is replaced.
        set(&mut self.shares, file, share.max(1));
    }

    /// Returns an upper bound of the disk space of a file, in bytes. The bound is lower than the size if the file has
    /// holes or is compressed.
    pub fn allocated(&self, file: FileId) -> u64 {
        let one = self.file(file);
        match one.is_sparse() {
            true => self.allocated.get(file as usize).copied().unwrap_or(0),
            false => one.id.size,
        }
    }

    /// Returns the first file system that can share blocks with file system `fs`. The subvolumes of one btrfs have half
    /// of their `f_fsid` in common (`btrfs_statfs`, fs/btrfs/super.c).
    pub fn pool(&self, fs: u16) -> u16 {
        let Some(own) = self.filesystems.get(usize::from(fs)) else {
            return fs;
        };
        let half = |one: &FileSystem| one.fsid & i64::from(u32::MAX);
        let same = |one: &FileSystem| one.machine == own.machine && half(one) == half(own);
        let first = self.filesystems.iter().position(same);
        first.and_then(|at| u16::try_from(at).ok()).unwrap_or(fs)
    }

    /// Returns the index of a file system and adds it if it is new.
    pub fn filesystem(&mut self, wanted: FileSystem) -> u16 {
        let found = self.filesystems.iter().position(|one| *one == wanted);
        let at = found.unwrap_or_else(|| {
            self.filesystems.push(wanted);
            self.filesystems.len() - 1
        });
        u16::try_from(at).unwrap_or(u16::MAX)
    }

    fn keep(&mut self, bytes: &[u8]) -> BytesSpan {
        let at = self.bytes.len() as u64;
        self.bytes.extend_from_slice(bytes);
        BytesSpan {
            at,
            len: index(bytes.len()),
        }
    }

    /// Returns the bytes of a span.
    fn text(&self, span: BytesSpan) -> &[u8] {
        let at = span.at as usize;
        &self.bytes[at..at + span.len as usize]
    }

    /// Returns the path of a folder.
    pub fn dir_path(&self, dir: u32) -> &[u8] {
        self.text(self.dirs[dir as usize].path)
    }

    /// Returns the name of a file within its folder.
    pub fn name(&self, file: FileId) -> &[u8] {
        let file = &self.files[file as usize];
        let at = file.name_at as usize;
        &self.bytes[at..at + usize::from(file.name_len)]
    }

    /// Returns the full path of a file.
    pub fn path(&self, file: FileId) -> Vec<u8> {
        join(
            self.dir_path(self.files[file as usize].dir),
            self.name(file),
        )
    }

    /// Appends the full path of a file.
    pub fn push_path(&self, file: FileId, to: &mut Vec<u8>) {
        let dir = self.dir_path(self.files[file as usize].dir);
        to.extend_from_slice(dir);
        if !dir.ends_with(b"/") {
            to.push(b'/');
        }
        to.extend_from_slice(self.name(file));
    }

    /// Returns the machine of a file; empty for this machine.
    pub fn machine(&self, file: FileId) -> &str {
        &self.filesystems[usize::from(self.files[file as usize].fs)].machine
    }

    /// Returns the entry of a file.
    pub fn file(&self, file: FileId) -> &File {
        &self.files[file as usize]
    }

    /// Returns the hash of a file, if known.
    pub fn hash(&self, file: FileId) -> Option<&Hash> {
        self.contents.hash(self.files[file as usize].hash)
    }

    /// Returns the files of a folder.
    pub fn dir_files(&self, dir: u32) -> std::ops::Range<FileId> {
        let dir = &self.dirs[dir as usize];
        dir.first..dir.first + dir.count
    }

    /// Returns file system and inode number of a file, which identify its inode.
    pub fn inode(&self, file: FileId) -> (u16, u64) {
        let file = self.file(file);
        (file.fs, file.id.ino)
    }
}

/// Sets the value of a file in a list. The list grows only as far as needed.
fn set(list: &mut SpillArray<u64>, file: FileId, value: u64) {
    if list.len() <= file as usize {
        list.resize(file as usize + 1, 0);
    }
    list[file as usize] = value;
}

/// Joins a folder and a name.
pub fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(dir.len() + 1 + name.len());
    path.extend_from_slice(dir);
    if !dir.ends_with(b"/") {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

/// Converts a position in the table to 32 bits, which are enough for four thousand million files.
pub(crate) fn index(at: usize) -> u32 {
    u32::try_from(at).expect("more than 4 billion entries in one scan")
}
