//! Duplicate files: found fast, remembered in an index, removed safely.
//!
//! A scan runs in stages, one module each: [`walk`] (the tree) → [`group`] (equal sizes, hard links
//! counted once) → [`compare`](mod@compare) or, on rotating disks, [`rotational`](mod@rotational)
//! (probes, then the bytes) → [`index`] (what is remembered) → [`report`] and [`format`](mod@format)
//! (what is told). Acting is [`act`]: a plan as data, printed by a dry run and executed as the same
//! value, with a journal. Where many machines have more than one table holds, there is [`across`].
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

/// The wall clock in nanoseconds since 1970, for the ages in filters and reports.
pub fn unix_nanos() -> i64 {
    sys::coarse_unix_nanos()
}

/// An absolute path without `.`, `..` and a slash at its end, and without following links, which is how the index names
/// everything.
///
/// # Errors
/// When the working folder is unknown or the path is empty.
pub fn make_absolute(path: &std::path::Path) -> Result<std::path::PathBuf, Error> {
    use std::path::Component;
    let whole = std::path::absolute(path).map_err(error::io_error(path, "cannot make absolute"))?;
    if whole.components().any(|part| part == Component::ParentDir) {
        // `..` after a link means the link's target's parent, so the links have to be resolved.
        return std::fs::canonicalize(path).map_err(error::io_error(path, "cannot resolve"));
    }
    // Put together anew, because a slash at the end would make it another name.
    Ok(whole.components().collect())
}
