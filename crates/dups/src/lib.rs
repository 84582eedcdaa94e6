//! Finds duplicate files, stores the results in an index, and removes duplicates safely.
//!
//! A scan has stages with one module each: [`walk`] (directory tree) → [`group`] (equal sizes, hard links
//! counted once) → [`compare`](mod@compare) or, on rotating disks, [`rotational`](mod@rotational) (probes,
//! then all bytes) → [`index`] (storage) → [`report`] and [`format`](mod@format) (output). [`act`] acts on
//! duplicates: a dry run prints a plan, and the same plan is executed with a journal. [`across`] compares
//! machines whose files do not fit into one table.
#![allow(
    clippy::disallowed_methods,
    reason = "this crate reads the files that the user names and keeps an index"
)]

pub mod across;
pub mod act;
mod blob;
mod cancel_and_progress;
mod compare;
mod contents;
pub mod earlier_roots;
mod error;
pub mod filter;
pub mod folders;
pub mod format;
mod fsinfo;
pub mod group;
pub mod hash;
mod identity;
pub mod index;
pub mod memory;
mod mount_identity;
pub mod name;
mod name_json;
mod open_folders;
mod pool;
mod protected_files;
pub mod read;
mod remembered_folder;
pub mod report;
pub mod roots;
mod rotational;
pub mod scan;
mod scan_options;
mod sharing;
pub mod skip;
pub mod store;
mod sys;
pub mod table;
pub mod tree;
pub mod walk;
mod worker;

pub use cancel_and_progress::{Control, ScanProgress};
pub use error::Error;
pub use filter::Filter;
pub use group::{DuplicateGroup, Groups};
pub use index::Index;
pub use scan::{Scan, ScanOptions, scan};
pub use scan_options::{RootScanOptions, WalkOptions};
pub use skip::{Reason, Skip, Skipped};
pub use table::{FileId, Files, Identity};

/// Returns the wall clock in nanoseconds since 1970, for ages in filters and reports.
pub fn unix_nanos() -> i64 {
    sys::coarse_unix_nanos()
}

/// Makes a path absolute without following links, and removes `.`, `..` and a final slash. The index uses such
/// paths.
///
/// # Errors
/// The working directory is unknown or the path is empty.
pub fn make_absolute(path: &std::path::Path) -> Result<std::path::PathBuf, Error> {
    use std::path::Component;
    let whole = std::path::absolute(path).map_err(error::io_error(path, "cannot make absolute"))?;
    if whole.components().any(|part| part == Component::ParentDir) {
        // `..` after a link means the parent of the link's target, so links must be resolved.
        return std::fs::canonicalize(path).map_err(error::io_error(path, "cannot resolve"));
    }
    // Rebuild the path, because a final slash would make it a different name.
    Ok(whole.components().collect())
}
