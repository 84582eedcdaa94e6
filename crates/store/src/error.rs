//! Why the store refused, and the way out.

use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
use std::error::Error;
use std::path::{Path, PathBuf};

/// What a library said, or what was found instead.
pub(crate) type Cause = Box<dyn Error + Send + Sync>;

/// Why the store refused.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Its directory cannot be made.
    #[error("{path}: {source}: say with --store where runs are kept")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// Not a database, or one of another program.
    #[error(
        "{path} is not a store of assay's: {reason}; name another file with --store, or move this one away"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        reason: String,
    },
    /// Written by a newer assay.
    #[error(
        "{path} was written by a newer assay (store version {found}, this one knows {known}); it is left as it is: use that assay, or name another file with --store"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// Newest version known here.
        known: i64,
    },
    /// The file system is full.
    #[error(
        "{path}: the file system is full; what was stored before is intact: free some space, or name a store elsewhere with --store"
    )]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The file or its file system may not be written.
    #[error(
        "{path}: the store, its directory or its file system is read-only, and SQLite writes beside the file even to read it: copy it to a writable place and name the copy with --store"
    )]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// Another process kept it locked.
    #[error("{path}: another process kept the store locked for {seconds} s: try again")]
    Busy {
        /// The file.
        path: PathBuf,
        /// How long assay waited.
        seconds: u64,
    },
    /// It is a store, or was one, but parts of it are not what they should be.
    #[error(
        "{path} is damaged ({source}): move it away and begin a new one; `sqlite3 FILE .recover` may save what it holds"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// SQLite's words.
        source: rusqlite::Error,
    },
    /// It is a store, or was one, but its version or a table is missing.
    #[error("{path} is a damaged store: {reason}. {way_out}; or name another store with --store")]
    Incomplete {
        /// The file, or the URL without the password.
        path: PathBuf,
        /// What is missing.
        reason: String,
        /// How it is set right.
        way_out: String,
    },
    /// Any other answer of SQLite.
    #[error("{path}: {source}")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: rusqlite::Error,
    },
    /// PostgreSQL refuses, or is not there.
    #[error("{path}: {reason}")]
    Postgres {
        /// Its URL, without the password.
        path: PathBuf,
        /// What it said, and what can be done.
        reason: String,
    },
    /// A row that does not read back, or would not if it were stored.
    #[error(
        "{path}: {what} cannot be read back ({source}); other runs are not affected, and `assay runs delete` removes a damaged one"
    )]
    Row {
        /// The file.
        path: PathBuf,
        /// Which run or sample.
        what: String,
        /// Why.
        source: Cause,
    },
    /// No such run, trial or study.
    #[error("there is no {what} `{asked}`; {known}")]
    Missing {
        /// `run`, `trial` or `study`.
        what: &'static str,
        /// As asked for.
        asked: String,
        /// What there is.
        known: String,
    },
    /// Several fit.
    #[error("`{asked}` fits several: {ids}; give more characters of the uid, or the number")]
    Ambiguous {
        /// As asked for.
        asked: String,
        /// Numbers of those that fit.
        ids: String,
    },
    /// Not a way to name a run or trial.
    #[error(
        "`{asked}` does not name one: use its number, `last`, `last~1` for the one before, or at least four characters of its uid"
    )]
    Name {
        /// As asked for.
        asked: String,
    },
    /// A document that is no export.
    #[error("not an export of assay's: {0}")]
    Export(#[source] Cause),
}

impl StoreError {
    /// SQLite's answer in our words, where it has a way out of its own.
    pub(crate) fn sqlite(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full { path },
            // The index of the write-ahead log did not fit.
            Some(ErrorCode::SystemIoFailure) if extended(&source) == Some(SQLITE_IOERR_SHMSIZE) => {
                Self::Full { path }
            }
            // The file itself has been read by then: it is the files beside it that cannot be made.
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen) => Self::ReadOnly { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy {
                path,
                seconds: crate::sqlite::LONGEST_WAIT.as_secs(),
            },
            Some(ErrorCode::NotADatabase) => Self::Foreign {
                path,
                reason: "it is not a SQLite database".to_owned(),
            },
            Some(ErrorCode::DatabaseCorrupt) => Self::Damaged { path, source },
            _ => Self::Sqlite { path, source },
        }
    }

    /// A record that does not read back, or would not if it were stored.
    pub(crate) fn row(path: &Path, what: &str, source: Cause) -> Self {
        Self::Row {
            path: path.to_owned(),
            what: what.to_owned(),
            source,
        }
    }

    /// The kernel's answer about the file itself.
    pub(crate) fn file(path: &Path, source: &std::io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            std::io::ErrorKind::StorageFull => Self::Full { path },
            std::io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path },
            _ => Self::Foreign {
                path,
                reason: source.to_string(),
            },
        }
    }
}

fn extended(error: &rusqlite::Error) -> Option<i32> {
    error.sqlite_error().map(|error| error.extended_code)
}
