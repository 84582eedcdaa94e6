//! What a run tells while it goes on.

use assay_model::{Bytes, Nanos, Sample};

/// What happens.
#[derive(Debug)]
pub enum Event<'a> {
    /// A test file is being laid out.
    Layout {
        /// Target.
        target: &'a str,
        /// Bytes on the device.
        written: Bytes,
        /// Bytes in all.
        size: Bytes,
    },
    /// A new estimate of what is left, from now.
    Left(Nanos),
    /// A sample begins.
    Begin {
        /// How many are done.
        done: usize,
        /// How many there are.
        of: usize,
        /// Workload.
        workload: &'a str,
        /// Target.
        target: &'a str,
        /// Round.
        round: u32,
    },
    /// A sample is stored.
    Stored(&'a Sample),
}
