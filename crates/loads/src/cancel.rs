//! A flag that asks whatever is running to stop soon and clean up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Shared between a signal handler and the work it interrupts.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Wraps a flag that somebody else sets, such as a signal handler.
    #[must_use]
    pub fn from_flag(flag: Arc<AtomicBool>) -> Self {
        Self(flag)
    }

    /// Asks to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether somebody asked.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
