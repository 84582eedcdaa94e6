//! Errors of the store. Each message contains a way to proceed.

use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
use std::error::Error;
use std::path::{Path, PathBuf};

/// An error of a library, or a description of the cause.
pub(crate) type Cause = Box<dyn Error + Send + Sync>;

/// Reason why the store could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The directory of the store cannot be created.
    #[error("{path}: {source}: say with --store where runs are kept")]
    Directory {
        /// Path of the directory.
        path: PathBuf,
        /// Error of the kernel.
        source: std::io::Error,
    },
    /// The file is not a database, or belongs to another program.
    #[error(
        "{path} is not a store of assay's: {reason}; name another file with --store, or move this one away"
    )]
    Foreign {
        /// Path of the file.
        path: PathBuf,
        /// Description of the file's content.
        reason: String,
    },
    /// A newer version of assay wrote the store.
    #[error(
        "{path} was written by a newer assay (store version {found}, this one knows {known}); it is left as it is: use that assay, or name another file with --store"
    )]
    Newer {
        /// Path of the file.
        path: PathBuf,
        /// Version of the store in the file.
        found: i64,
        /// Newest version that this build supports.
        known: i64,
    },
    /// Another program removed or replaced the file while this process used it.
    #[error(
        "{path}: another program removed or replaced the store while it was in use: begin again"
    )]
    Removed {
        /// Path of the store.
        path: PathBuf,
    },
    /// The file system is full.
    #[error(
        "{path}: the file system is full; what was stored before is intact: free some space, or name a store elsewhere with --store"
    )]
    Full {
        /// Path of the store.
        path: PathBuf,
    },
    /// The file, its directory or its file system is read-only.
    #[error(
        "{path}: the store, its directory or its file system is read-only, and SQLite writes beside the file even to read it: copy it to a writable place and name the copy with --store"
    )]
    ReadOnly {
        /// Path of the file.
        path: PathBuf,
    },
    /// Another process locked the file for too long.
    #[error("{path}: another process kept the store locked for {seconds} s: try again")]
    Busy {
        /// Path of the file.
        path: PathBuf,
        /// Time that this process waited, in seconds.
        seconds: u64,
    },
    /// The store is damaged.
    #[error(
        "{path} is damaged ({source}): move it away and begin a new one; `sqlite3 FILE .recover` may save what it holds"
    )]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Error of SQLite.
        source: rusqlite::Error,
    },
    /// The version or a table of the store is missing.
    #[error("{path} is a damaged store: {reason}. {way_out}; or name another store with --store")]
    Incomplete {
        /// Path of the file, or the URL without its password.
        path: PathBuf,
        /// Description of what is missing.
        reason: String,
        /// What the user can do.
        way_out: String,
    },
    /// SQLite reported another error.
    #[error("{path}: {source}")]
    Sqlite {
        /// Path of the file.
        path: PathBuf,
        /// Error of SQLite.
        source: rusqlite::Error,
    },
    /// PostgreSQL reported an error or is not reachable.
    #[error("{path}: {reason}")]
    Postgres {
        /// URL without its password.
        path: PathBuf,
        /// Error, and what the user can do.
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
    /// A row cannot be decoded. This error also occurs before writing, if the row could not be decoded later.
    #[error(
        "{path}: {what} cannot be read back ({source}); other runs are not affected, and `assay report runs delete` removes a damaged one"
    )]
    Row {
        /// Path of the store.
        path: PathBuf,
        /// Description of the run or sample.
        what: String,
        /// Reason why the row cannot be decoded.
        source: Cause,
    },
    /// The run, trial or study does not exist.
    #[error("there is no {what} `{asked}`; {known}")]
    Missing {
        /// Kind of the record: `run`, `trial` or `study`.
        what: &'static str,
        /// Name that the user gave.
        asked: String,
        /// Description of the existing records, for the user.
        known: String,
    },
    /// Several records match the name.
    #[error("`{asked}` fits several: {ids}; give more characters of the uid, or the number")]
    Ambiguous {
        /// Name that the user gave.
        asked: String,
        /// Numbers of the matching records, as text.
        ids: String,
    },
    /// The text is not a valid name of a record.
    #[error(
        "`{asked}` does not name one: use its number, `last`, `last~1` for the one before, or at least four characters of its uid"
    )]
    Name {
        /// Text that the user gave.
        asked: String,
    },
    /// The document is not an export of assay.
    #[error("not an export of assay's: {0}")]
    Export(#[source] Cause),
}

impl StoreError {
    /// Converts an SQLite error to an error that contains a way to proceed.
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

    /// Converts an error of the kernel about the file.
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
