//! A host for tests of error handling. One call or every n-th call fails.

use crate::error::HostError;
use crate::held::{Identity, Removed};
use crate::lockdir::LockDirectory;
use crate::replace::{FileVersion, Times};
use crate::{CommandOutput, Host, HostMut, KnownFile, Limits, ProcessId, Stat, StatFs};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Passes calls to another host, but lets the n-th call or every n-th call fail.
pub struct Faulty<'a, H: ?Sized = dyn Host> {
    inner: &'a H,
    every: usize,
    repeat: bool,
    calls: AtomicUsize,
}

impl<'a, H: Host + ?Sized> Faulty<'a, H> {
    /// Creates a host of which the calls number `every`, 2 × `every` and so on fail. If `every` is 0, no call fails.
    #[must_use]
    pub fn new(inner: &'a H, every: usize) -> Self {
        Self {
            inner,
            every,
            repeat: true,
            calls: AtomicUsize::new(0),
        }
    }

    /// Creates a host of which only the call number `nth` fails.
    #[must_use]
    pub fn once(inner: &'a H, nth: usize) -> Self {
        Self {
            repeat: false,
            ..Self::new(inner, nth)
        }
    }

    /// Returns the number of calls so far.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    fn fails(&self) -> bool {
        let call = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        match self.repeat {
            true => self.every > 0 && call.is_multiple_of(self.every),
            false => call == self.every,
        }
    }

    fn path<T>(
        &self,
        path: &Path,
        call: impl FnOnce() -> Result<T, HostError>,
    ) -> Result<T, HostError> {
        match self.fails() {
            true => Err(HostError::Path {
                path: path.to_owned(),
                errno: Some(rustix::io::Errno::IO.raw_os_error()),
                reason: "Input/output error".to_owned(),
            }),
            false => call(),
        }
    }
}

impl<H: Host + ?Sized> Host for Faulty<'_, H> {
    fn read(&self, path: &Path) -> Result<Vec<u8>, HostError> {
        self.path(path, || self.inner.read(path))
    }
    fn list(&self, dir: &Path) -> Result<Vec<OsString>, HostError> {
        self.path(dir, || self.inner.list(dir))
    }
    fn link(&self, path: &Path) -> Result<PathBuf, HostError> {
        self.path(path, || self.inner.link(path))
    }
    fn realpath(&self, path: &Path) -> Result<PathBuf, HostError> {
        self.path(path, || self.inner.realpath(path))
    }
    fn stat(&self, path: &Path) -> Result<Stat, HostError> {
        self.path(path, || self.inner.stat(path))
    }
    fn modified(&self, path: &Path) -> Option<i64> {
        self.inner.modified(path)
    }
    fn tree_mode(&self, path: &Path) -> Option<u32> {
        self.inner.tree_mode(path)
    }
    fn tree_owner(&self, path: &Path) -> Option<u32> {
        self.inner.tree_owner(path)
    }
    fn statfs(&self, path: &Path) -> Result<StatFs, HostError> {
        self.path(path, || self.inner.statfs(path))
    }
    fn open_exclusive(&self, path: &Path) -> Result<(), HostError> {
        self.path(path, || self.inner.open_exclusive(path))
    }
    fn run(&self, argv: &[&OsStr], limits: Limits) -> Result<CommandOutput, HostError> {
        self.path(Path::new(argv.first().copied().unwrap_or_default()), || {
            self.inner.run(argv, limits)
        })
    }
    /// Never fails, because "not installed" is a valid answer.
    fn which(&self, name: &OsStr) -> Option<PathBuf> {
        self.inner.which(name)
    }
}

impl<H: HostMut + ?Sized> HostMut for Faulty<'_, H> {
    fn check_writable(&self, path: &Path) -> Result<(), HostError> {
        self.path(path, || self.inner.check_writable(path))
    }
    fn write_in_place(&self, path: &Path, bytes: &[u8]) -> Result<(), HostError> {
        self.path(path, || self.inner.write_in_place(path, bytes))
    }
    fn read_plain(&self, path: &Path) -> Result<(Vec<u8>, FileVersion), HostError> {
        self.path(path, || self.inner.read_plain(path))
    }
    fn create_like(
        &self,
        path: &Path,
        like: &FileVersion,
        bytes: &[u8],
        times: Option<Times>,
    ) -> Result<(), HostError> {
        self.path(path, || self.inner.create_like(path, like, bytes, times))
    }
    fn exchange(&self, from: &Path, seen: &FileVersion) -> Result<(), HostError> {
        self.path(&seen.path, || self.inner.exchange(from, seen))
    }
    fn check_directory(&self, dir: &Path) -> Result<(), HostError> {
        self.path(dir, || self.inner.check_directory(dir))
    }
    fn create_new(&self, path: &Path, bytes: &[u8]) -> Result<(), HostError> {
        self.path(path, || self.inner.create_new(path, bytes))
    }
    fn rename_new(&self, from: &Path, to: &Path) -> Result<(), HostError> {
        self.path(to, || self.inner.rename_new(from, to))
    }
    fn take_away(&self, aside: &Path, seen: &FileVersion) -> Result<(), HostError> {
        self.path(&seen.path, || self.inner.take_away(aside, seen))
    }
    fn create_directory(&self, path: &Path) -> Result<Option<KnownFile>, HostError> {
        self.path(path, || self.inner.create_directory(path))
    }
    fn remove_directory(
        &self,
        path: &Path,
        known: Option<&KnownFile>,
    ) -> Result<Removed, HostError> {
        self.path(path, || self.inner.remove_directory(path, known))
    }
    fn locks(&self, lasting: bool) -> Result<Option<LockDirectory>, HostError> {
        self.path(Path::new("/run"), || self.inner.locks(lasting))
    }
    fn identity(&self, path: &Path) -> Result<Option<Identity>, HostError> {
        self.path(path, || self.inner.identity(path))
    }
    fn remove_file(&self, path: &Path) -> Result<(), HostError> {
        self.path(path, || self.inner.remove_file(path))
    }
    fn remove_tree(&self, dir: &Path) -> Result<(), HostError> {
        self.path(dir, || self.inner.remove_tree(dir))
    }
    fn remove_made(&self, path: &Path, known: Option<&KnownFile>) -> Result<Removed, HostError> {
        self.path(path, || self.inner.remove_made(path, known))
    }
    fn loops(&self, backing: Identity) -> Result<Vec<PathBuf>, HostError> {
        self.path(Path::new("/sys/block"), || self.inner.loops(backing))
    }
    fn detach_loop(&self, node: &Path, backing: Identity) -> Result<(), HostError> {
        self.path(node, || self.inner.detach_loop(node, backing))
    }
    fn kill(&self, process: ProcessId) -> Result<(), HostError> {
        let path = Path::new("/proc").join(process.pid.to_string());
        self.path(&path, || self.inner.kill(process))
    }
}
