//! Why the store refused, and the way out.

use std::path::PathBuf;

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
    /// SQLite said no.
    #[error("{path}: {source}")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What it said: locked, full, read-only, corrupt.
        source: rusqlite::Error,
    },
    /// A row that does not read back.
    #[error("{path}: {what} cannot be read back: {reason}")]
    Row {
        /// The file.
        path: PathBuf,
        /// Which run or sample.
        what: String,
        /// Why.
        reason: String,
    },
    /// No such run.
    #[error("there is no run `{asked}`; {known}")]
    NoRun {
        /// As asked for.
        asked: String,
        /// What there is.
        known: String,
    },
    /// A document that is no export.
    #[error("not an export of assay's: {0}")]
    Export(String),
}
