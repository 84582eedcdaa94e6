//! Checks before a user's file or device is overwritten. Nothing else may use the target, and the target may contain
//! only data that the user explicitly allowed to overwrite.
//!
//! The path is resolved once. All checks use the resulting descriptor, and the caller must write through the same
//! descriptor. A check that fails counts as a use.
#![allow(
    clippy::disallowed_methods,
    reason = "this crate looks at what is to be overwritten, and at the clock while it does"
)]

mod content;
mod device;
mod file;
mod formats;
mod loops;
mod processes;

pub use device::device;
pub use file::file;

use std::path::{Path, PathBuf};

/// Reasons why a target is not overwritten.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", reasons.join("; "))]
pub struct OverwriteRefused {
    /// Path of the file or device that was checked.
    pub path: PathBuf,
    /// Every reason as text, including each check that failed.
    pub reasons: Vec<String>,
}

/// Reasons against overwriting, collected while the checks run.
struct Against {
    path: PathBuf,
    reasons: Vec<String>,
}

/// Result of one check: reasons against overwriting, or the reason why the check failed.
type Found = Result<Vec<String>, String>;

impl Against {
    fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            reasons: Vec::new(),
        }
    }

    fn add(&mut self, found: Found) {
        match found {
            Ok(reasons) => self.reasons.extend(reasons),
            Err(why) => self.reasons.push(format!("could not be checked: {why}")),
        }
    }

    fn end(self) -> Result<(), OverwriteRefused> {
        match self.reasons.is_empty() {
            true => Ok(()),
            false => Err(OverwriteRefused {
                path: self.path,
                reasons: self.reasons,
            }),
        }
    }
}

fn refused(path: &Path, reason: impl ToString) -> OverwriteRefused {
    OverwriteRefused {
        path: path.to_owned(),
        reasons: vec![reason.to_string()],
    }
}
