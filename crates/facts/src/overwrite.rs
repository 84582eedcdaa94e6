//! What must be shown before a file or device of the user's is overwritten: that nobody uses it, and
//! that there is nothing on it that the user did not give up in so many words.
//!
//! The name is looked up once. What is checked is what the descriptor stands for, and whoever
//! overwrites uses that descriptor to the end. What could not be checked counts as used.
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

/// Why something is not overwritten.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", reasons.join("; "))]
pub struct OverwriteRefused {
    /// What was to be overwritten.
    pub path: PathBuf,
    /// Every reason, in words; what could not be checked is one and says so.
    pub reasons: Vec<String>,
}

/// What was found against it, so far.
struct Against {
    path: PathBuf,
    reasons: Vec<String>,
}

/// What a look found: reasons, or why it could not look.
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
