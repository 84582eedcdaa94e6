//! Records of the test files that assay has on shares, so that a killed measurement leaves nothing for ever.

use crate::smb_session::Session;
use crate::{ShareError, ShareUrl};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A test file on a share.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    /// `//server/share`.
    share: String,
    port: u16,
    directory: String,
    /// Name of the file.
    file: String,
}

/// The record of a file that may exist.
#[derive(Debug)]
pub(crate) struct Leftover {
    path: PathBuf,
}

impl Leftover {
    /// Writes the record, before the file is made.
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
            fs::write(&path, text)?;
            fs::File::open(&path)?.sync_all()
        };
        write().map_err(|source| ShareError::File {
            path: path.clone(),
            source,
        })?;
        Ok(Self { path })
    }

    /// Removes the record, after the file was removed.
    pub(crate) fn forget(self) -> Result<(), ShareError> {
        fs::remove_file(&self.path).map_err(|source| ShareError::File {
            path: self.path.clone(),
            source,
        })
    }
}

/// Removes the files of earlier measurements from the share of this session; returns their names.
pub(crate) fn remove_earlier(
    dir: &Path,
    session: &Session<'_>,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<String>, ShareError> {
    let mut removed = Vec::new();
    let Ok(entries) = fs::read_dir(dir) else {
        return Ok(removed);
    };
    for entry in entries.flatten() {
        let read = fs::read(entry.path()).ok();
        let record = read.and_then(|bytes| serde_json::from_slice::<Record>(&bytes).ok());
        let Some(record) =
            record.filter(|record| session.is_of(&record.share, record.port, &record.directory))
        else {
            continue;
        };
        // A damaged record must not name a file of the user's.
        if !record.file.starts_with(crate::FILE_PREFIX) {
            continue;
        }
        // What cannot be removed today stays recorded.
        if session.delete(&record.file, stop).is_err() {
            continue;
        }
        Leftover { path: entry.path() }.forget()?;
        removed.push(record.file);
    }
    Ok(removed)
}
