//! Records of the test files that assay created on shares, so that the next measurement can remove a file that a killed
//! measurement left.

use crate::share_client::ShareClient;
use crate::{ShareError, ShareUrl};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// A test file on a share, as it is recorded.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    /// Share in the form `//server/share`.
    share: String,
    port: u16,
    directory: String,
    /// Name of the test file.
    file: String,
}

/// Record of a test file that may exist on a share. The record is locked while the file is in use, so that another
/// measurement does not remove the file. The kernel releases the lock when the process ends.
#[derive(Debug)]
pub(crate) struct Leftover {
    path: PathBuf,
    _lock: File,
}

impl Leftover {
    /// Writes the record. Must be called before the file is created.
    pub(crate) fn record(dir: &Path, url: &ShareUrl, file: &str) -> Result<Self, ShareError> {
        let path = dir.join(format!("{file}.json"));
        let record = Record {
            share: url.share_name(),
            port: url.port(),
            directory: url.directory().to_owned(),
            file: file.to_owned(),
        };
        let write = || {
            fs::create_dir_all(dir)?;
            let text = serde_json::to_vec(&record).map_err(io::Error::other)?;
            let mut lock = File::create_new(&path)?;
            lock.lock()?;
            lock.write_all(&text)?;
            lock.sync_all()?;
            Ok(lock)
        };
        match write() {
            Ok(lock) => Ok(Self { path, _lock: lock }),
            Err(source) => Err(ShareError::File { path, source }),
        }
    }

    /// Removes the record. Must be called after the file was removed.
    pub(crate) fn forget(self) -> Result<(), ShareError> {
        match fs::remove_file(&self.path) {
            // The measurement that wrote it ended just now.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(|source| ShareError::File {
                path: self.path,
                source,
            }),
        }
    }
}

/// Opens and locks a record. Returns `None` if a running measurement has locked it, or if it is invalid.
fn open_record(path: &Path) -> Option<(Leftover, Record)> {
    let mut lock = File::open(path).ok()?;
    lock.try_lock().ok()?;
    let mut text = Vec::new();
    lock.read_to_end(&mut text).ok()?;
    let record: Record = serde_json::from_slice(&text).ok()?;
    // A damaged record must not name a file of the user's, nor contain commands of smbclient.
    let id = record.file.strip_prefix(crate::FILE_PREFIX)?;
    let plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let path = path.to_owned();
    plain.then_some((Leftover { path, _lock: lock }, record))
}

/// Removes the files of earlier measurements from the client's directory. Returns the names of the removed files.
pub(crate) fn remove_earlier(
    dir: &Path,
    client: &dyn ShareClient,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<String>, ShareError> {
    let mut removed = Vec::new();
    let Ok(entries) = fs::read_dir(dir) else {
        return Ok(removed);
    };
    for entry in entries.flatten() {
        let Some((leftover, record)) = open_record(&entry.path()) else {
            continue;
        };
        let here = client.is_for(&record.share, record.port, &record.directory);
        // A file that cannot be removed now stays recorded.
        if here && client.delete(&record.file, stop).is_ok() {
            leftover.forget()?;
            removed.push(record.file);
        }
    }
    Ok(removed)
}
