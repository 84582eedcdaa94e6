//! A captured machine: a directory with copies of files, written by `assay facts --capture` or by hand. The directory
//! is only read, and symbolic links never lead out of it.

use crate::capture::{CaptureError, INDEX, Index, Node, SCHEMA, copied_stat, resolve};
use crate::error::HostError;
use crate::{CommandOutput, FileKind, Host, Limits, LiveHost, Stat, StatFs};
use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// A captured machine in a directory.
#[derive(Debug)]
pub struct Root {
    dir: PathBuf,
    index: Index,
}

impl Root {
    /// Opens a captured directory.
    ///
    /// # Errors
    /// The path is not a directory or cannot be listed, or its index is invalid.
    pub fn open(dir: &Path) -> Result<Self, CaptureError> {
        let io = |source| CaptureError::Io {
            path: dir.to_owned(),
            source,
        };
        std::fs::read_dir(dir).map_err(io)?;
        let dir = dir.canonicalize().map_err(io)?;
        let path = dir.join(INDEX);
        let index = match LiveHost.read(&path) {
            Ok(bytes) => {
                Index::parse(&bytes).map_err(|source| CaptureError::Index { path, source })?
            }
            Err(error) if error.is_absent() => Index {
                schema: SCHEMA,
                ..Index::default()
            },
            Err(error) => return Err(error.into()),
        };
        Ok(Self { dir, index })
    }

    /// Converts a path on the captured machine to the path of its copy. All links are resolved.
    fn place(&self, path: &Path, follow_last: bool) -> Result<PathBuf, HostError> {
        let inside = self.resolve(path, follow_last)?;
        Ok(self.outside(&inside))
    }

    fn outside(&self, inside: &Path) -> PathBuf {
        self.dir.join(inside.strip_prefix("/").unwrap_or(inside))
    }

    fn resolve(&self, path: &Path, follow_last: bool) -> Result<PathBuf, HostError> {
        resolve(path, follow_last, |candidate| {
            let outside = self.outside(candidate);
            let fail = |error: &std::io::Error| HostError::io(candidate, error);
            match outside.symlink_metadata() {
                Ok(found) if found.is_symlink() => Ok(Node::Link(
                    outside.read_link().map_err(|error| fail(&error))?,
                )),
                Ok(_) => Ok(Node::Here),
                Err(error) => match fail(&error) {
                    // A device node is not copied; the index contains its description.
                    _ if self.index.stat.contains_key(&*candidate.to_string_lossy()) => {
                        Ok(Node::Here)
                    }
                    error if error.is_absent() => Ok(Node::Missing),
                    error => Err(error),
                },
            }
        })
    }

    /// Returns the error that the capture recorded for a path; if there is none, the result of `call`. Errors contain
    /// the path on the captured machine.
    fn answer<T>(
        &self,
        path: &Path,
        follow_last: bool,
        call: impl FnOnce(&Path) -> Result<T, HostError>,
    ) -> Result<T, HostError> {
        if let Some(fault) = self.index.fault(path) {
            return Err(fault);
        }
        let place = self.place(path, follow_last)?;
        call(&place).map_err(|error| error.named(path))
    }
}

impl Host for Root {
    fn read(&self, path: &Path) -> Result<Vec<u8>, HostError> {
        self.answer(path, true, |place| LiveHost.read(place))
    }

    fn scan(
        &self,
        path: &Path,
        look: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), HostError> {
        self.answer(path, true, |place| LiveHost.scan(place, look))
    }

    fn list(&self, dir: &Path) -> Result<Vec<OsString>, HostError> {
        self.answer(dir, true, |place| LiveHost.list(place))
    }

    fn link(&self, path: &Path) -> Result<PathBuf, HostError> {
        self.answer(path, false, |place| LiveHost.link(place))
    }

    fn realpath(&self, path: &Path) -> Result<PathBuf, HostError> {
        match self.index.fault(path) {
            Some(fault) => Err(fault),
            None => self.resolve(path, true),
        }
    }

    fn stat(&self, path: &Path) -> Result<Stat, HostError> {
        if let Some(stat) = self.index.stat.get(&*path.to_string_lossy()) {
            return Ok(*stat);
        }
        self.answer(path, true, |place| {
            let found = LiveHost.stat(place)?;
            Ok(match found.kind {
                FileKind::Directory | FileKind::Regular => copied_stat(found.kind, found.size),
                FileKind::BlockDevice | FileKind::Other => copied_stat(FileKind::Other, 0),
            })
        })
    }

    fn modified(&self, path: &Path) -> Option<i64> {
        self.answer(path, true, |place| Ok(LiveHost.modified(place)))
            .ok()?
    }

    fn tree_owner(&self, path: &Path) -> Option<u32> {
        let owner = |place: &Path| {
            let flags = rustix::fs::AtFlags::NO_AUTOMOUNT;
            let found =
                rustix::fs::statx(rustix::fs::CWD, place, flags, rustix::fs::StatxFlags::UID);
            Ok(found.ok().map(|found| found.stx_uid))
        };
        self.answer(path, true, owner).ok()?
    }

    fn tree_mode(&self, path: &Path) -> Option<u32> {
        let mode = |place: &Path| {
            let flags = rustix::fs::AtFlags::NO_AUTOMOUNT;
            let found =
                rustix::fs::statx(rustix::fs::CWD, place, flags, rustix::fs::StatxFlags::MODE);
            Ok(found.ok().map(|found| u32::from(found.stx_mode) & 0o7777))
        };
        self.answer(path, true, mode).ok()?
    }

    fn statfs(&self, path: &Path) -> Result<StatFs, HostError> {
        self.index.statfs(path)
    }

    fn open_exclusive(&self, path: &Path) -> Result<(), HostError> {
        Index::open_exclusive(path)
    }

    fn run(&self, argv: &[&OsStr], _limits: Limits) -> Result<CommandOutput, HostError> {
        self.index.run(argv)
    }

    fn which(&self, name: &OsStr) -> Option<PathBuf> {
        let dirs = [
            "/usr/local/sbin",
            "/usr/local/bin",
            "/usr/sbin",
            "/usr/bin",
            "/sbin",
            "/bin",
        ];
        let installed = dirs
            .map(|dir| Path::new(dir).join(name))
            .into_iter()
            .find(|path| self.place(path, true).is_ok());
        installed.or_else(|| self.index.knows(name).then(|| PathBuf::from(name)))
    }
}
