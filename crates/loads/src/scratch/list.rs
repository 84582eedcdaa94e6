//! List of a session's scratch files, with the planned paths and the identities of the created files.
//!
//! Each line has a checksum (`assay_host::seal`). A file is recorded twice: before it is created, and with its identity
//! before another user can rename it.

use assay_host::held::{Access, Directory, Held};
use assay_host::seal::{seal, unseal};
use assay_host::{HostError, KnownFile};
use serde::{Deserialize, Serialize};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::PathBuf;

pub(super) const NAME: &str = "scratch";
/// Maximum length of a list in bytes. For comparison: a line has a few hundred bytes.
const LONGEST: u64 = 1 << 20;

pub(super) struct List<'a> {
    dir: &'a Directory,
    held: Held,
}

/// A planned or created scratch file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    #[serde(with = "assay_host::path_json")]
    pub path: PathBuf,
    /// Identity of the created file; `None` if assay was killed before it recorded the identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<KnownFile>,
}

impl<'a> List<'a> {
    /// Opens the list for appending.
    pub fn open(dir: &'a Directory) -> Result<Self, HostError> {
        let held = match dir.look(NAME.as_ref())? {
            None => dir.create(NAME.as_ref())?,
            Some(_) => dir.file(NAME.as_ref(), Access::ReadWrite)?,
        };
        Ok(Self { dir, held })
    }

    /// Appends a scratch file to the list and syncs the list.
    pub fn enter(&self, entry: &Entry) -> io::Result<()> {
        let line = seal(0, entry)?;
        let mut file = self.held.file();
        file.seek(io::SeekFrom::End(0))?;
        file.write_all(&line)?;
        file.sync_all()?;
        self.dir.sync().map_err(io::Error::other)
    }
}

/// Reads a list. Skips incomplete lines.
pub(super) fn read(dir: &Directory) -> Vec<Entry> {
    let mut bytes = Vec::new();
    if let Ok(held) = dir.file(NAME.as_ref(), Access::Read) {
        let _ = held.file().take(LONGEST).read_to_end(&mut bytes);
    }
    parse(&bytes)
}

fn parse(bytes: &[u8]) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        let body = unseal(line).map(|(_, body)| body).unwrap_or_default();
        let Ok(entry) = serde_json::from_slice::<Entry>(&body) else {
            continue;
        };
        // The second line of a file replaces the first.
        let first = entries.pop_if(|last| last.path == entry.path && last.known.is_none());
        drop(first);
        entries.push(entry);
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;
    use std::path::Path;

    #[test]
    fn what_was_entered_is_read_back_and_nothing_else() {
        let temp = tempfile::tempdir().unwrap();
        let dir = Directory::open(temp.path()).unwrap();
        assert_eq!(read(&dir), []);
        let known = KnownFile::of(dir.create("file".as_ref()).unwrap().file()).unwrap();
        let entry = |path: &Path, known: Option<&KnownFile>| Entry {
            path: path.to_owned(),
            known: known.cloned(),
        };
        let odd = PathBuf::from(OsString::from_vec(b"/a b\n=1:2/\xff".to_vec()));
        let twice = [entry(&odd, None), entry(&odd, Some(&known))];
        let last = entry(Path::new("/b"), None);
        for entry in twice.iter().chain([&last]) {
            List::open(&dir).unwrap().enter(entry).unwrap();
        }
        let [_, odd] = twice;
        assert_eq!(read(&dir), [odd.clone(), last]);
        let whole = std::fs::read(temp.path().join(NAME)).unwrap();
        // Incomplete and damaged lines are skipped without losing other lines.
        let torn = [&whole[..whole.len() - 3], b"\n", &whole].concat();
        assert_eq!(parse(&torn).len(), 3);
        let mut flipped = whole;
        let first = flipped.iter().position(|byte| *byte == b'\n').unwrap() + 20;
        flipped[first] ^= 1;
        assert_eq!(parse(&flipped)[0].known, None);
        assert!(!parse(&flipped).contains(&odd));
    }
}
