//! Errors that stop a whole operation. A problem with a single file does not stop the operation and is reported as a
//! [`crate::skip::Skip`].

use std::path::PathBuf;

/// Errors that stop a scan, query or action.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A root that the user named, or a file of assay, cannot be used.
    #[error("{}: {doing}: {source}{}", show(path), describe_unsupported(source))]
    Io {
        /// The file or folder that cannot be used.
        path: PathBuf,
        /// The operation that failed, such as `cannot open`.
        doing: &'static str,
        /// Error that the kernel returned.
        source: std::io::Error,
    },
    /// The index cannot be read or written, because SQLite reported an error.
    #[error("index {}: {cause}; {}", show(path), way_out(cause))]
    Index {
        /// Path of the index file.
        path: PathBuf,
        /// Error that SQLite returned.
        #[source]
        cause: rusqlite::Error,
    },
    /// The file is not an index of assay, or comes from a newer version.
    #[error("index {}: {what}", show(path))]
    Foreign {
        /// Path of the file.
        path: PathBuf,
        /// What the file is, what was expected, and the remedy.
        what: String,
    },
    /// A table that was written for or by another machine cannot be used.
    #[error("{}: {source}", show(path))]
    Table {
        /// Path of the table's file.
        path: PathBuf,
        /// What is wrong with the table.
        source: assay_columns::Error,
    },
    /// Another process is updating the same index.
    #[error(
        "index {}: another scan or action is using it; wait for it, or name another file with --index",
        show(path)
    )]
    Busy {
        /// Path of the index file.
        path: PathBuf,
    },
    /// A filter of the user is invalid.
    #[error("{0}")]
    Filter(String),
    /// Arguments contradict each other or do not fit the index.
    #[error("{0}")]
    Usage(String),
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] std::io::Error),
}

/// Returns an explanation if an error means that the kernel or a sandbox does not support a call.
fn describe_unsupported(source: &std::io::Error) -> &'static str {
    match source.raw_os_error() == Some(rustix::io::Errno::NOSYS.raw_os_error()) {
        true => {
            "; duplicates are told from names of one file by statx(2), which Linux has had since 4.11: this sandbox leaves it out"
        }
        false => "",
    }
}

impl Error {
    /// Builds an error for a table that assay did not write.
    pub(crate) fn strange(path: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Self::table(path, assay_columns::Error::Foreign(what.into()))
    }

    pub(crate) fn table(path: impl Into<PathBuf>, source: assay_columns::Error) -> Self {
        Self::Table {
            path: path.into(),
            source,
        }
    }
}

/// Returns the remedy for an SQLite error.
fn way_out(cause: &rusqlite::Error) -> &'static str {
    use rusqlite::ErrorCode::{CannotOpen, DatabaseBusy, DiskFull, PermissionDenied, ReadOnly};
    match cause.sqlite_error_code() {
        Some(DiskFull) => "make room there, or name another file with --index",
        Some(DatabaseBusy) => "another program has it open",
        Some(CannotOpen | PermissionDenied | ReadOnly) => {
            "allow writing there, or name another file with --index"
        }
        _ => "if the file is damaged, move it away and scan again",
    }
}

/// Formats a path with escaped control characters.
fn show(path: &std::path::Path) -> String {
    use std::os::unix::ffi::OsStrExt as _;
    crate::name::format_readable(path.as_os_str().as_bytes())
}

/// Adds a path and the failed operation to an I/O error.
pub(crate) fn io_error(
    path: impl Into<PathBuf>,
    doing: &'static str,
) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.into();
    move |source| Error::Io {
        path,
        doing,
        source,
    }
}
