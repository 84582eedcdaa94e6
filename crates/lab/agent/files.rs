//! Examines files, directories and device nodes for `assay_host::Host`.

use crate::Answer;
use crate::protocol::{CHUNK, PathLook, Reply};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Directories that are searched for commands.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

// open(2) on x86-64, from <asm-generic/fcntl.h>.
const O_EXCL: i32 = 0o200;
const O_NONBLOCK: i32 = 0o4000;
const O_NOFOLLOW: i32 = 0o400_000;

/// Examines a path and sends the result.
pub fn look(look: PathLook, path: &[u8], answer: &Answer) {
    let name = OsStr::from_bytes(path);
    let path = Path::new(name);
    let seen = match look {
        PathLook::Read | PathLook::Get => read(path, answer),
        PathLook::List => list(path, answer),
        PathLook::Link => fs::read_link(path).map(|found| piece(found, answer)),
        PathLook::RealPath => fs::canonicalize(path).map(|found| piece(found, answer)),
        PathLook::Stat => stat(path),
        PathLook::Exclusive => exclusive(path),
        PathLook::Which => which(name)
            .map(|found| piece(found, answer))
            .ok_or_else(|| io::ErrorKind::NotFound.into()),
    };
    match seen {
        Ok(numbers) => answer.send(&Reply::Done(numbers)),
        Err(error) => answer.refuse(&error),
    }
}

fn piece(path: impl Into<OsString>, answer: &Answer) -> Vec<u64> {
    answer.send(&Reply::Piece(path.into().into_vec()));
    Vec::new()
}

fn read(path: &Path, answer: &Answer) -> io::Result<Vec<u64>> {
    // Not blocking: a name may turn out to be a pipe that nobody writes to.
    let mut file = File::options().read(true).custom_flags(O_NONBLOCK).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut buffer = vec![0; CHUNK];
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok(vec![u64::from(found.mode())]);
        }
        answer.send(&Reply::Piece(buffer[..count].to_vec()));
    }
}

fn list(path: &Path, answer: &Answer) -> io::Result<Vec<u64>> {
    for entry in fs::read_dir(path)? {
        piece(entry?.file_name(), answer);
    }
    Ok(Vec::new())
}

/// Returns four numbers: the kind (0 directory, 1 regular file, 2 block device, 3 other), the size, the number of the
/// device that contains the path, and the device number if the path is a device node.
fn stat(path: &Path) -> io::Result<Vec<u64>> {
    let found = fs::metadata(path)?;
    let kind = match found.file_type() {
        kind if kind.is_dir() => 0,
        kind if kind.is_file() => 1,
        kind if kind.is_block_device() => 2,
        _ => 3,
    };
    Ok(vec![kind, found.size(), found.dev(), found.rdev()])
}

fn exclusive(path: &Path) -> io::Result<Vec<u64>> {
    let flags = O_EXCL | O_NONBLOCK | O_NOFOLLOW;
    File::options().read(true).custom_flags(flags).open(path)?;
    Ok(Vec::new())
}

/// Returns the path of a command.
pub fn which(name: &OsStr) -> Option<PathBuf> {
    let given = Path::new(name);
    if given.components().count() > 1 {
        return executable(given).then(|| given.to_owned());
    }
    if name.is_empty() {
        return None;
    }
    PATH.split(':')
        .map(|dir| Path::new(dir).join(name))
        .find(|path| executable(path))
}

fn executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0)
}

/// Creates a file; truncates an existing file.
pub fn create(path: &[u8], mode: u32) -> io::Result<File> {
    let file = File::create(OsStr::from_bytes(path))?;
    file.set_permissions(fs::Permissions::from_mode(mode & 0o7777))?;
    Ok(file)
}
