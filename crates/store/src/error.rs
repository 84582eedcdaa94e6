//! Errors of the store, with a way out.

use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
use std::error::Error;
use std::path::{Path, PathBuf};

/// An error of a library, or a description.
pub(crate) type Cause = Box<dyn Error + Send + Sync>;

/// Errors of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The directory cannot be created.
    #[error("{path}: {source}: say with --store where runs are kept")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Error of the kernel.
        source: std::io::Error,
    },
    /// The file is not a database, or belongs to another program.
    #[error(
        "{path} is not a store of assay's: {reason}; name another file with --store, or move this one away"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Description of the file.
        reason: String,
    },
    /// A newer version of assay wrote the store.
    #[error(
        "{path} was written by a newer assay (store version {found}, this one knows {known}); it is left as it is: use that assay, or name another file with --store"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Version of the store.
        found: i64,
        /// Newest supported version.
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
    /// The file or its file system is read-only.
    #[error(
        "{path}: the store, its directory or its file system is read-only, and SQLite writes beside the file even to read it: copy it to a writable place and name the copy with --store"
    )]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// Another process kept the file locked.
    #[error("{path}: another process kept the store locked for {seconds} s: try again")]
    Busy {
        /// The file.
        path: PathBuf,
        /// Waiting time.
        seconds: u64,
    },
    /// The store is damaged.
    #[error(
        "{path} is damaged ({source}): move it away and begin a new one; `sqlite3 FILE .recover` may save what it holds"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Error of SQLite.
        source: rusqlite::Error,
    },
    /// The version or a table of the store is missing.
    #[error("{path} is a damaged store: {reason}. {way_out}; or name another store with --store")]
    Incomplete {
        /// The file, or the URL without its password.
        path: PathBuf,
        /// Description of the missing part.
        reason: String,
        /// Way out.
        way_out: String,
    },
    /// Another error of SQLite.
    #[error("{path}: {source}")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// The error.
        source: rusqlite::Error,
    },
    /// PostgreSQL reported an error or is not reachable.
    #[error("{path}: {reason}")]
    Postgres {
        /// URL without its password.
        path: PathBuf,
        /// The error and the way out.
        reason: String,
    },
    /// The feature `postgres` is not part of this build.
    #[error(
        "{path}: this build of assay has no PostgreSQL: use a package, or build it with \
         `cargo build --release --package assay --features postgres`"
    )]
    NotBuilt {
        /// URL without its password.
        path: PathBuf,
    },
    /// A row cannot be decoded. Also returned before writing, if the row could not be decoded later.
    #[error(
        "{path}: {what} cannot be read back ({source}); other runs are not affected, and `assay report runs delete` removes a damaged one"
    )]
    Row {
        /// The file.
        path: PathBuf,
        /// The run or sample.
        what: String,
        /// Reason.
        source: Cause,
    },
    /// The run, trial or study does not exist.
    #[error("there is no {what} `{asked}`; {known}")]
    Missing {
        /// `run`, `trial` or `study`.
        what: &'static str,
        /// Name that the user gave.
        asked: String,
        /// Existing records, as text for the user.
        known: String,
    },
    /// Several records match.
    #[error("`{asked}` fits several: {ids}; give more characters of the uid, or the number")]
    Ambiguous {
        /// Name that the user gave.
        asked: String,
        /// Numbers of the matching records.
        ids: String,
    },
    /// The text does not name a record.
    #[error(
        "`{asked}` does not name one: use its number, `last`, `last~1` for the one before, or at least four characters of its uid"
    )]
    Name {
        /// Text that the user gave.
        asked: String,
    },
    /// The document is not an export.
    #[error("not an export of assay's: {0}")]
    Export(#[source] Cause),
}

impl StoreError {
    /// Maps an SQLite error to one with a way out.
    pub(crate) fn sqlite(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full { path },
            // The index of the write-ahead log did not fit.
            Some(ErrorCode::SystemIoFailure) if extended(&source) == Some(SQLITE_IOERR_SHMSIZE) => {
                Self::Full { path }
            }
            // The file itself was readable, so the files beside it cannot be created.
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

    /// Builds the error for a row that cannot be decoded.
    pub(crate) fn row(path: &Path, what: &str, source: Cause) -> Self {
        Self::Row {
            path: path.to_owned(),
            what: what.to_owned(),
            source,
        }
    }

    /// Maps a kernel error about the file.
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
