//! Cancellation and progress of a long operation.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Progress of a scan. The counters only increase.
#[derive(Default, Debug)]
pub struct ScanProgress {
    /// Number of files found by the walk.
    pub files_seen: AtomicU64,
    /// Total size of the files found, in bytes.
    pub bytes_seen: AtomicU64,
    /// Upper bound of the bytes to read; 0 until the walk has ended.
    pub bytes_planned: AtomicU64,
    /// Number of bytes read.
    pub bytes_read: AtomicU64,
}

impl ScanProgress {
    pub(crate) fn plan(&self, bytes: u64) {
        self.bytes_planned.store(bytes, Ordering::Relaxed);
    }
}

/// Callbacks and limits for a long operation.
#[derive(Clone, Copy)]
pub struct Control<'a> {
    /// Set to stop the operation at the next file. The results up to this file are kept.
    pub stop: &'a AtomicBool,
    /// Counters that another thread can watch.
    pub progress: &'a ScanProgress,
    /// Called about every 10 ms and at least once per file, on the calling thread.
    pub tick: &'a (dyn Fn() + Sync),
    /// Maximum number of threads; `None` selects the number automatically.
    pub threads: Option<usize>,
}

impl Control<'_> {
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn tick(&self) {
        (self.tick)();
    }
}
