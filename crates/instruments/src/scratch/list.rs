//! The list of a session: where its scratch files were to be made, and which ones they became.
//!
//! A file of records that end with a zero byte, as a path may hold any other byte. A path is absolute
//! and begins with `/`; the record behind it, `=DEVICE:INODE`, is the file that came of it.

use assay_host::HostError;
use assay_host::held::{Access, Directory, Held, Identity};
use std::ffi::OsString;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

pub(super) const NAME: &str = "scratch";
/// Longest list that is read; a record is some hundred bytes.
const LONGEST: u64 = 1 << 20;

pub(super) struct List<'a> {
    dir: &'a Directory,
    held: Held,
}

/// A scratch file that was to be made.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub path: PathBuf,
    /// Not known when assay was killed just before, or just after, it was made.
    pub identity: Option<Identity>,
}

impl<'a> List<'a> {
    /// Opens the list for more entries.
    pub fn open(dir: &'a Directory) -> Result<Self, HostError> {
        let held = match dir.look(NAME.as_ref())? {
            None => dir.create(NAME.as_ref())?,
            Some(_) => dir.file(NAME.as_ref(), Access::ReadWrite)?,
        };
        Ok(Self { dir, held })
    }

    /// Enters a file that will be made, durably.
    pub fn enter(&self, path: &Path) -> io::Result<()> {
        self.append(path.as_os_str().as_bytes())?;
        self.held.file().sync_all()?;
        self.dir.sync().map_err(io::Error::other)
    }

    /// Notes which file it became. Without it the file is recognised by its name and its owner.
    pub fn note(&self, made: Identity) -> io::Result<()> {
        self.append(format!("={}:{}", made.device, made.inode).as_bytes())
    }

    fn append(&self, record: &[u8]) -> io::Result<()> {
        let mut file = self.held.file();
        file.seek(io::SeekFrom::End(0))?;
        file.write_all(&[record, b"\0"].concat())
    }
}

/// What a list says. Records that nobody can have written are left out.
pub(super) fn read(dir: &Directory) -> Vec<Entry> {
    let mut bytes = Vec::new();
    if let Ok(held) = dir.file(NAME.as_ref(), Access::Read) {
        let _ = held.file().take(LONGEST).read_to_end(&mut bytes);
    }
    parse(&bytes)
}

fn parse(bytes: &[u8]) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for record in bytes.split(|byte| *byte == 0) {
        match record.first() {
            Some(b'/') => entries.push(Entry {
                path: OsString::from_vec(record.to_vec()).into(),
                identity: None,
            }),
            Some(b'=') => {
                if let Some(last) = entries.last_mut() {
                    last.identity = identity(&record[1..]);
                }
            }
            _ => {}
        }
    }
    entries
}

fn identity(record: &[u8]) -> Option<Identity> {
    let (device, inode) = std::str::from_utf8(record).ok()?.split_once(':')?;
    Some(Identity {
        device: device.parse().ok()?,
        inode: inode.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_entered_is_read_back() {
        let temp = tempfile::tempdir().unwrap();
        let dir = Directory::open(temp.path()).unwrap();
        assert_eq!(read(&dir), []);
        let made = Identity {
            device: 7,
            inode: u64::MAX,
        };
        let odd = PathBuf::from(OsString::from_vec(b"/a b\n=1:2/\xff".to_vec()));
        List::open(&dir).unwrap().enter(&odd).unwrap();
        List::open(&dir).unwrap().note(made).unwrap();
        List::open(&dir).unwrap().enter(Path::new("/b")).unwrap();
        let entry = |path: &Path, identity| Entry {
            path: path.to_owned(),
            identity,
        };
        let expected = [entry(&odd, Some(made)), entry(Path::new("/b"), None)];
        assert_eq!(read(&dir), expected);
    }

    #[test]
    fn nonsense_is_left_out() {
        assert_eq!(parse(b"=1:2\0relative\0\0"), []);
        assert_eq!(parse(b"/a\0=1\0")[0].identity, None);
        assert_eq!(parse(b"/a\0=-1:x\0")[0].identity, None);
    }
}
