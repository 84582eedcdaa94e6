//! Root folders that the user specified. Each root is opened once. Files below a root are opened relative to the open
//! folder, without following links, so that renamed folders cannot redirect assay.

use crate::mount_identity::FileSystemMap;
use crate::name::split;
use crate::sys;
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

/// Identity of a root folder, stored in the journal. By it, the folder can be recognised even after a reboot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootIdentity {
    /// Path as the user specified it; the paths of files start with this path.
    #[serde(with = "crate::name_json")]
    pub path: Vec<u8>,
    /// Path with symbolic links resolved.
    #[serde(with = "crate::name_json")]
    pub real: Vec<u8>,
    /// Inode number.
    pub ino: u64,
    /// Creation time in nanoseconds since 1970, if the file system reports it.
    pub born: Option<i64>,
}

impl Default for RootIdentity {
    /// Returns `/`, the root of the file tree. It needs no identity, because no user can replace it.
    fn default() -> Self {
        Self {
            path: b"/".to_vec(),
            real: b"/".to_vec(),
            ino: 0,
            born: None,
        }
    }
}

/// `f_type` of overlayfs (linux/magic.h). Its folders change their inode numbers on the first write and on a
/// new mount.
const OVERLAY: u32 = 0x794c_7630;

impl RootIdentity {
    /// Reads the identity of an open folder.
    pub(crate) fn of(path: &[u8], fd: impl AsFd) -> Result<Self, Errno> {
        let mask = StatxFlags::INO | StatxFlags::BTIME;
        let stat = rustix::fs::statx(&fd, c"", AtFlags::EMPTY_PATH, mask)?;
        let has_birth = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::BTIME);
        Ok(Self {
            path: path.to_vec(),
            real: sys::real_path(&fd)?,
            ino: stat.stx_ino,
            born: has_birth.then(|| sys::to_nanos(stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec)),
        })
    }

    /// Opens the folder again by its resolved path, and checks its identity.
    pub(crate) fn open(&self) -> Result<OwnedFd, String> {
        let cannot = |errno| {
            format!(
                "cannot open the folder {}: {}",
                crate::name::format_readable(&self.real),
                sys::describe_errno(errno)
            )
        };
        let below = self.real.strip_prefix(b"/").unwrap_or(&self.real);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = rustix::fs::open("/", flags, Mode::empty()).map_err(cannot)?;
        let fd = sys::open_below(top.as_fd(), below, flags).map_err(cannot)?;
        if self.ino == 0 {
            return Ok(fd);
        }
        let now = Self::of(&self.path, &fd).map_err(cannot)?;
        let renumbers = || rustix::fs::fstatfs(&fd).is_ok_and(|fs| fs.f_type as u32 == OVERLAY);
        let born = now.born == self.born || now.born.is_none() || self.born.is_none();
        match (now.ino == self.ino && born) || renumbers() {
            true => Ok(fd),
            false => Err(format!(
                "{} is another folder than it was",
                crate::name::format_readable(&self.real)
            )),
        }
    }

    /// Returns the part of a path after the root's path.
    fn below<'p>(&self, path: &'p [u8]) -> Option<&'p [u8]> {
        let below = sys::path_from_bytes(path)
            .strip_prefix(sys::path_from_bytes(&self.path))
            .ok()?;
        Some(sys::path_bytes(below))
    }
}

/// A root folder that is open, with its identity.
#[derive(Debug)]
pub(crate) struct OpenRoot {
    pub anchor: Arc<RootIdentity>,
    pub fd: OwnedFd,
}

impl OpenRoot {
    /// Creates a root from an open folder that the user named.
    pub fn new(path: &[u8], fd: OwnedFd) -> Result<Self, Errno> {
        let anchor = Arc::new(RootIdentity::of(path, &fd)?);
        Ok(Self { anchor, fd })
    }

    /// Opens a folder that the user specified. Follows symbolic links in the path, because the user chose the path.
    fn open(path: &[u8]) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(sys::path_from_bytes(path), flags, Mode::empty())?;
        Self::new(path, fd)
    }

    /// Opens a target folder that the user named, and creates missing parts.
    pub fn make(path: &[u8]) -> Result<Self, String> {
        let cannot = |why: String| {
            format!(
                "cannot create {}: {why}",
                crate::name::format_readable(path)
            )
        };
        std::fs::create_dir_all(sys::path_from_bytes(path))
            .map_err(|error| cannot(error.to_string()))?;
        // Nothing identifies the right folder, so no link may lead to it.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::open(sys::path_from_bytes(path), flags, Mode::empty())
            .and_then(|fd| Self::new(path, fd))
            .map_err(|errno| match errno {
                Errno::LOOP | Errno::NOTDIR => {
                    cannot("it is a link; name the folder that it leads to".into())
                }
                errno => cannot(sys::describe_errno(errno)),
            })
    }

    /// Opens the parent folder of a file below the root. Returns it with the file's name.
    pub fn parent<'p>(&self, path: &'p [u8]) -> Result<(OwnedFd, &'p [u8]), Errno> {
        let (folder, name) = split(self.anchor.below(path).ok_or(Errno::XDEV)?);
        if name.is_empty() {
            return Err(Errno::ISDIR);
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK;
        Ok((sys::open_below(self.fd.as_fd(), folder, flags)?, name))
    }

    /// Like [`OpenRoot::parent`], but creates missing folders with access only for `owner`.
    pub fn make_parent<'p>(
        &self,
        path: &'p [u8],
        owner: (u32, u32),
    ) -> Result<(OwnedFd, &'p [u8]), Errno> {
        let (folder, name) = split(self.anchor.below(path).ok_or(Errno::XDEV)?);
        Ok((sys::make_below(self.fd.as_fd(), folder, owner)?, name))
    }

    fn open_file(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let below = self.anchor.below(path).ok_or(Errno::XDEV)?;
        sys::open_below(self.fd.as_fd(), below, flags)
    }
}

/// Path of a root, and the open root after its first use.
type Named = (Vec<u8>, OnceLock<Result<OpenRoot, Errno>>);

/// Roots, each opened at its first use.
#[derive(Debug, Default)]
pub struct Roots {
    /// The roots, longest paths first, so that the nearest root is found first.
    list: Vec<Named>,
    land: OnceLock<FileSystemMap>,
}

impl Roots {
    /// Creates roots from absolute paths that the user named.
    pub fn named(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let list = paths
            .into_iter()
            .map(|path| (sys::path_bytes(&path).to_vec(), OnceLock::new()));
        Self::sorted(list.collect())
    }

    /// Creates roots from folders that are already open.
    pub(crate) fn open(list: impl IntoIterator<Item = OpenRoot>) -> Self {
        let list = list
            .into_iter()
            .map(|one| (one.anchor.path.clone(), OnceLock::from(Ok(one))));
        Self::sorted(list.collect())
    }

    fn sorted(mut list: Vec<Named>) -> Self {
        list.sort_by_key(|one| std::cmp::Reverse(one.0.len()));
        Self {
            list,
            land: OnceLock::new(),
        }
    }

    /// Returns the nearest root that contains a path.
    pub(crate) fn of(&self, path: &[u8]) -> Result<&OpenRoot, Errno> {
        let path = sys::path_from_bytes(path);
        let (root, held) = self
            .list
            .iter()
            .find(|one| path.starts_with(sys::path_from_bytes(&one.0)))
            .ok_or(Errno::XDEV)?;
        held.get_or_init(|| OpenRoot::open(root))
            .as_ref()
            .map_err(|errno| *errno)
    }

    /// Opens a file by its absolute path, as [`sys::open_file_at`] does.
    pub(crate) fn open_file(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        let root = self.of(path)?;
        sys::open_without_atime(|flags| root.open_file(path, flags))
    }

    /// Like [`Self::open_file`], but reads past the page cache (O_DIRECT).
    pub(crate) fn open_direct(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        self.of(path)?.open_file(path, sys::READ | OFlags::DIRECT)
    }

    /// Returns the map of the file systems below the roots, including which of them may show the same files.
    pub(crate) fn landscape(&self) -> &FileSystemMap {
        self.land.get_or_init(|| {
            let paths = self.list.iter().map(|one| one.0.as_slice());
            FileSystemMap::survey(paths.filter_map(|path| Some((path, &self.of(path).ok()?.fd))))
        })
    }
}

/// An opened root folder, or the reason why it cannot be opened.
type Opened = (Arc<RootIdentity>, Result<Rc<OpenRoot>, String>);

/// The root folders of a journal or plan, each opened once.
#[derive(Debug, Default)]
pub(crate) struct Anchors(Vec<Opened>);

impl Anchors {
    /// Opens the root folder of an anchor, or returns it if it is already open.
    pub fn stand(&mut self, anchor: &Arc<RootIdentity>) -> Result<Rc<OpenRoot>, String> {
        if let Some((_, held)) = self.0.iter().find(|one| one.0 == *anchor) {
            return held.clone();
        }
        let fresh = anchor.open().map(|fd| {
            let anchor = anchor.clone();
            Rc::new(OpenRoot { anchor, fd })
        });
        self.0.push((anchor.clone(), fresh.clone()));
        fresh
    }
}
