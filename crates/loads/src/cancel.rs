//! A flag that makes running work stop soon and clean up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Flag that a signal handler sets, and that the work checks.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Wraps an existing flag, for example the flag of a signal handler.
    #[must_use]
    pub fn from_flag(flag: Arc<AtomicBool>) -> Self {
        Self(flag)
    }

    /// Requests that the work stops soon.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Returns whether a stop was requested.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
