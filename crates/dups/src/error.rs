//! What can stop a whole operation. Trouble with one file never does: it is a [`crate::skip::Skip`].

use std::path::PathBuf;

/// What stops a scan, a query or an action.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A root named by the user, or a file that assay itself keeps, could not be used.
    #[error("{}: {doing}: {source}{}", show(path), describe_unsupported(source))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was tried, e.g. `cannot open`.
        doing: &'static str,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// SQLite refused.
    #[error("index {}: {cause}; {}", show(path), way_out(cause))]
    Index {
        /// The index file.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        cause: rusqlite::Error,
    },
    /// The file is no index of assay, or of a newer assay.
    #[error("index {}: {what}", show(path))]
    Foreign {
        /// The index file.
        path: PathBuf,
        /// What was found, what was expected, and the way out.
        what: String,
    },
    /// A table of another machine, or one that is to be written.
    #[error("{}: {source}", show(path))]
    Table {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: assay_columns::Error,
    },
    /// Another process updates the same index.
    #[error(
        "index {}: another scan or action is using it; wait for it, or name another file with --index",
        show(path)
    )]
    Busy {
        /// The index file.
        path: PathBuf,
    },
    /// A filter cannot be understood.
    #[error("{0}")]
    Filter(String),
    /// An argument contradicts another or the index.
    #[error("{0}")]
    Usage(String),
    /// Output could not be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] std::io::Error),
}

/// What to say of an answer that means that the kernel, or a sandbox, does not know a call.
fn describe_unsupported(source: &std::io::Error) -> &'static str {
    match source.raw_os_error() == Some(rustix::io::Errno::NOSYS.raw_os_error()) {
        true => {
            "; duplicates are told from names of one file by statx(2), which Linux has had since 4.11: this sandbox leaves it out"
        }
        false => "",
    }
}

impl Error {
    /// Of a table that is none of ours, or not as we write them.
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

/// What to do about what SQLite said.
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

/// A path with control characters escaped, for messages.
fn show(path: &std::path::Path) -> String {
    use std::os::unix::ffi::OsStrExt as _;
    crate::name::format_readable(path.as_os_str().as_bytes())
}

/// Attaches a path and what was tried to an I/O error.
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
