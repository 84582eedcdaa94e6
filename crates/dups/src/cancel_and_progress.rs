//! What a long operation is given from outside, and how far it has come.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How far a scan has come; counters only ever grow.
#[derive(Default, Debug)]
pub struct ScanProgress {
    /// Files found by the walk.
    pub files_seen: AtomicU64,
    /// Their sizes added up, bytes.
    pub bytes_seen: AtomicU64,
    /// Bytes that must be read at most; 0 until the walk has ended.
    pub bytes_planned: AtomicU64,
    /// Bytes read.
    pub bytes_read: AtomicU64,
}

impl ScanProgress {
    pub(crate) fn plan(&self, bytes: u64) {
        self.bytes_planned.store(bytes, Ordering::Relaxed);
    }
}

/// What a long operation is given from outside.
#[derive(Clone, Copy)]
pub struct Control<'a> {
    /// Set to stop at the next file; what is known by then is kept.
    pub stop: &'a AtomicBool,
    /// Counters to watch.
    pub progress: &'a ScanProgress,
    /// Called about every 10 ms, and at least once a file, from the thread that called.
    pub tick: &'a (dyn Fn() + Sync),
    /// At most this many threads; None = as many as pay.
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
