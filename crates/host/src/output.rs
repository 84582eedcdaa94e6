//! Writes output files that a user named. Each file is first written completely under another name in the same
//! directory, and then renamed.
//!
//! Other modules write scratch files ([`crate::held`]) and edited files (`replace`).

mod folder;
mod link_safe_directory;
mod stream;

pub use folder::{OutputFolder, open_own_directory};
pub use link_safe_directory::check_links;

use crate::error::HostError;
use crate::held::{Directory, Identity};
use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, Stat, flock};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Prefix of the temporary names of output files.
const PREFIX: &str = ".assay-";
/// Maximum number of bytes of a file name that are repeated in its temporary name. A name has at most 255 bytes.
const REPEATED_NAME: usize = 200;

/// An output file that a user named.
///
/// The content is written to an unnamed file, or under a hidden name in the same directory. The file gets its name when
/// it is complete; until then, an existing file remains. Links and special files are not followed or overwritten. `-`,
/// `/dev/stdout`, `/dev/stderr`, `/dev/fd/N` and a terminal are written directly.
#[derive(Debug)]
pub struct OutputFile {
    shown: PathBuf,
    sink: Sink,
}

#[derive(Debug)]
enum Sink {
    Beside(Beside),
    Stream(File),
}

/// An output file that does not have its final name yet.
#[derive(Debug)]
struct Beside {
    above: Directory,
    name: OsString,
    aside: OsString,
    file: File,
    /// Whether the file has the temporary name `aside`; otherwise it is unnamed.
    named: bool,
    /// Whether the file replaces an existing file.
    replaces: bool,
    published: bool,
}

/// Writes `bytes` to an output file that a user named, either completely or not at all.
///
/// # Errors
/// As [`OutputFile::create`] and [`OutputFile::publish`].
pub fn write_output(path: &Path, bytes: &[u8]) -> Result<(), HostError> {
    let mut output = OutputFile::create(path)?;
    output.write_bytes(bytes)?;
    output.publish()
}

impl OutputFile {
    /// Prepares an output file. An existing file with this name is replaced later, and its mode is kept.
    ///
    /// # Errors
    /// The path is a link, a directory or a special file; a link in the path belongs to another user; or as open(2).
    pub fn create(path: &Path) -> Result<Self, HostError> {
        Self::prepare(path, Mode::from_raw_mode(0o666), true)
    }

    /// Prepares an output file that only this user can read. An existing file with this name is replaced later.
    ///
    /// # Errors
    /// As [`OutputFile::create`].
    pub fn create_private(path: &Path) -> Result<Self, HostError> {
        Self::prepare(path, Mode::RUSR | Mode::WUSR, true)
    }

    /// Prepares an output file that only this user can read. Its name must not exist when the file is published.
    ///
    /// # Errors
    /// As [`OutputFile::create`]; the name exists.
    pub fn create_secret(path: &Path) -> Result<Self, HostError> {
        Self::prepare(path, Mode::RUSR | Mode::WUSR, false)
    }

    fn prepare(path: &Path, mode: Mode, replaces: bool) -> Result<Self, HostError> {
        let shown = path.to_owned();
        if let Some(stream) = stream::open_descriptor(path)? {
            let sink = Sink::Stream(stream);
            return Ok(Self { shown, sink });
        }
        let name = file_name(path)?;
        let above = link_safe_directory::open_parent(path)?;
        let old = match look(&above, name, path)? {
            Place::Free => None,
            Place::Regular(_) if !replaces => {
                let reason = "there is a file already; remove it, or name a new one";
                return Err(HostError::path(path, reason));
            }
            Place::Regular(old) => Some(old),
            Place::Stream(stream) => {
                let sink = Sink::Stream(stream);
                return Ok(Self { shown, sink });
            }
        };
        sweep(&above, name);
        let sink = Sink::Beside(Beside::create(above, name, mode, replaces)?);
        let output = Self { shown, sink };
        // This user's old file keeps its mode; private files become private.
        if let Some(old) = old.filter(|old| is_ours(old) && mode.contains(Mode::ROTH)) {
            output.set_mode(old.st_mode & 0o777)?;
        }
        Ok(output)
    }

    /// Returns the open file, to which the caller writes the content.
    #[must_use]
    pub fn file(&self) -> &File {
        match &self.sink {
            Sink::Beside(beside) => &beside.file,
            Sink::Stream(file) => file,
        }
    }

    /// Sets the permission bits of the file. Does nothing for a descriptor or a device.
    ///
    /// # Errors
    /// As fchmod(2).
    pub fn set_mode(&self, mode: u32) -> Result<(), HostError> {
        let Sink::Beside(beside) = &self.sink else {
            return Ok(());
        };
        let set = (beside.file).set_permissions(std::fs::Permissions::from_mode(mode));
        set.map_err(|error| HostError::io(&self.shown, &error))
    }

    /// Writes bytes. Errors contain the name of the file.
    ///
    /// # Errors
    /// As write(2).
    pub fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), HostError> {
        let written = self.file().write_all(bytes);
        written.map_err(|error| HostError::io(&self.shown, &error))
    }

    /// Syncs the file, and gives it its final name. An existing file with this name is replaced.
    ///
    /// # Errors
    /// As fsync(2) and rename(2), or another object got the name at the same time.
    pub fn publish(self) -> Result<(), HostError> {
        match self.sink {
            Sink::Stream(_) => Ok(()),
            Sink::Beside(beside) => beside.publish(&self.shown),
        }
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Beside {
    fn create(
        above: Directory,
        name: &OsStr,
        mode: Mode,
        replaces: bool,
    ) -> Result<Self, HostError> {
        let aside = temporary_name(name);
        let fail = |error: Errno| HostError::io(&above.shown().join(name), &error.into());
        let unnamed = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let (fd, named) = match rustix::fs::openat(&above, ".", unnamed, mode) {
            Ok(fd) => (fd, false),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
                let new = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
                let made = rustix::fs::openat(&above, &*aside, new | OFlags::CLOEXEC, mode);
                (made.map_err(fail)?, true)
            }
            Err(error) => return Err(fail(error)),
        };
        // Shows other assay processes that this one is running.
        let _ = flock(&fd, FlockOperation::NonBlockingLockExclusive);
        Ok(Self {
            name: name.to_owned(),
            aside,
            file: File::from(fd),
            named,
            replaces,
            published: false,
            above,
        })
    }

    fn publish(mut self, shown: &Path) -> Result<(), HostError> {
        let fail = |error: Errno| match error {
            Errno::BUSY => HostError::path(
                shown,
                "something is mounted there, so it cannot be replaced; \
                 write to /dev/stdout and redirect that to the file",
            ),
            Errno::EXIST => HostError::path(shown, "there is a file already; name a new one"),
            error => HostError::io(shown, &error.into()),
        };
        match self.file.sync_all() {
            Err(error) if error.raw_os_error() != Some(Errno::INVAL.raw_os_error()) => {
                return Err(HostError::io(shown, &error));
            }
            _ => {}
        }
        if !self.named {
            match self.link(&self.name) {
                Ok(()) => {
                    self.published = true;
                    return self.above.sync();
                }
                Err(Errno::EXIST) if self.replaces => {}
                Err(error) => return Err(fail(error)),
            }
            self.link(&self.aside).map_err(fail)?;
            self.named = true;
        }
        // A link or special file that appeared in between is refused as well.
        look(&self.above, &self.name, shown)?;
        match self.replaces {
            true => rustix::fs::renameat(&self.above, &*self.aside, &self.above, &*self.name),
            false => rename_new(&self.above, &self.aside, &self.name),
        }
        .map_err(fail)?;
        self.published = true;
        let ours = Identity::of(&self.file).map_err(fail)?;
        match self.above.look(&self.name)? == Some(ours) {
            true => self.above.sync(),
            false => Err(HostError::path(
                shown,
                "somebody put another file in its place while it was written",
            )),
        }
    }

    /// Gives an unnamed file a name.
    fn link(&self, name: &OsStr) -> Result<(), Errno> {
        let from = crate::held::descriptor_path(&self.file);
        rustix::fs::linkat(CWD, from, &self.above, name, AtFlags::SYMLINK_FOLLOW)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if self.named
            && !self.published
            && let Ok(ours) = Identity::of(&self.file)
        {
            let _ = self.above.remove(&self.aside, ours);
        }
    }
}

/// Renames a file without replacing an existing file. Uses link(2) on file systems that do not support
/// RENAME_NOREPLACE.
fn rename_new(above: &Directory, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
    let flags = rustix::fs::RenameFlags::NOREPLACE;
    match rustix::fs::renameat_with(above, from, above, to, flags) {
        Err(Errno::INVAL | Errno::NOSYS) => {
            rustix::fs::linkat(above, from, above, to, AtFlags::empty())?;
            rustix::fs::unlinkat(above, from, AtFlags::empty())
        }
        done => done,
    }
}

/// Object that has the name of an output file.
enum Place {
    Free,
    Regular(Stat),
    /// A terminal or a device such as /dev/null, open for writing.
    Stream(File),
}

/// Examines the object that has the name of the output, without opening it.
fn look(above: &Directory, name: &OsStr, shown: &Path) -> Result<Place, HostError> {
    let fail = |error: Errno| HostError::io(shown, &error.into());
    let way = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = match rustix::fs::openat(above, name, way, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(Place::Free),
        other => other.map_err(fail)?,
    };
    let found = rustix::fs::fstat(&fd).map_err(fail)?;
    let reason = match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => return Ok(Place::Regular(found)),
        FileType::CharacterDevice => match stream::open_device(fd.as_fd(), &found).map_err(fail)? {
            Some(device) => return Ok(Place::Stream(device)),
            None => "a device; name a file, or /dev/stdout".to_owned(),
        },
        FileType::Symlink => match rustix::fs::readlinkat(&fd, "", Vec::new()) {
            Ok(target) => {
                let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                let target = shown.parent().unwrap_or(Path::new("")).join(target);
                format!(
                    "a symbolic link; name the file that it leads to, {}, or remove the link",
                    target.display()
                )
            }
            Err(_) => "a symbolic link; name the file that it leads to, or remove it".to_owned(),
        },
        FileType::Directory => "a directory; name a file in it".to_owned(),
        FileType::Fifo | FileType::Socket => {
            "a pipe or socket; write to /dev/stdout and redirect that to it, or name a file"
                .to_owned()
        }
        _ => "a device; name a file, or /dev/stdout".to_owned(),
    };
    Err(HostError::path(shown, reason))
}

/// Returns the last component of a path, which is the name of the output file.
fn file_name(path: &Path) -> Result<&OsStr, HostError> {
    match path.file_name() {
        Some(name) if !path.as_os_str().as_bytes().ends_with(b"/") => Ok(name),
        _ => Err(HostError::path(path, "a directory; name a file in it")),
    }
}

/// Returns a temporary name that no other output of this process uses.
fn temporary_name(name: &OsStr) -> OsString {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut aside = format!("{PREFIX}{}{count:04}-", std::process::id()).into_bytes();
    aside.extend_from_slice(strip_repetition(name));
    OsString::from_vec(aside)
}

fn strip_repetition(name: &OsStr) -> &[u8] {
    let name = name.as_bytes();
    &name[..name.len().min(REPEATED_NAME)]
}

/// Removes temporary files of this output file that killed processes left. Such files belong to this user, have one
/// hard link, and are not locked.
fn sweep(above: &Directory, name: &OsStr) {
    for found in above.list().unwrap_or_default() {
        let number = found.as_bytes().strip_prefix(PREFIX.as_bytes());
        let number = number.and_then(|rest| rest.strip_suffix(strip_repetition(name)));
        let number = number.and_then(|rest| rest.strip_suffix(b"-"));
        if number.is_some_and(|one| !one.is_empty() && one.iter().all(u8::is_ascii_digit)) {
            // A file that cannot be removed does no harm.
            let _ = above.remove_abandoned(&found);
        }
    }
}

fn is_ours(found: &Stat) -> bool {
    found.st_uid == rustix::process::geteuid().as_raw()
}

/// Returns whether two paths refer to the same file. Follows links.
#[must_use]
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    let of = |path: &Path| {
        std::fs::metadata(path)
            .ok()
            .map(|one| (one.dev(), one.ino()))
    };
    of(one).is_some_and(|one| Some(one) == of(other))
}

#[cfg(test)]
mod tests;
