//! What whoever measures tells while it goes on.

use assay_model::{Bytes, Nanos, Sample};

/// What happens.
#[derive(Debug)]
pub enum Event<'a> {
    /// Something is being made: an image, a guest, a file system, a layer in it.
    Making(&'a str),
    /// A test file is being laid out.
    Layout {
        /// Where it lies.
        target: &'a str,
        /// Bytes on the device.
        written: Bytes,
        /// Bytes in all.
        size: Bytes,
    },
    /// Something to know about all figures.
    Remark(&'a str),
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
        /// Target, or rung.
        target: &'a str,
        /// Round.
        round: u32,
    },
    /// A sample is stored.
    Stored(&'a Sample),
}

/// Who is told.
pub type Tell<'a> = dyn FnMut(Event<'_>) + 'a;
