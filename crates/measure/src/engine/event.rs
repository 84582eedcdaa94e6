//! Events of a running measurement, for progress displays.

use assay_loads::scratch::MovedFile;
use assay_model::study::{NotTried, Observation};
use assay_model::trial::{DurabilityProof, Judgement, PairOutcome, Side};
use assay_model::{Bytes, Nanos, Sample};

/// An event of a running measurement, for progress displays.
#[derive(Debug)]
pub enum MeasureEvent<'a> {
    /// An object is being created: a disk image, a guest, a file system, or a layer of a stack.
    Making(&'a str),
    /// A test file is being laid out.
    Layout {
        /// Name of the target to which the file belongs.
        target: &'a str,
        /// Number of bytes written until now.
        written: Bytes,
        /// Size of the complete file in bytes.
        size: Bytes,
    },
    /// A remark that concerns all results of the measurement.
    Remark(&'a str),
    /// A new estimate of the remaining time.
    Left(Nanos),
    /// A sample begins. In a study, a step begins.
    Begin {
        /// Number of finished samples or steps.
        done: usize,
        /// Number of all samples or steps.
        of: usize,
        /// Name of the workload. In a study: the figures to measure, as text for users.
        workload: &'a str,
        /// Name of the target, layer or disk. In a study: the configuration, as text for users.
        target: &'a str,
        /// Number of the round, from 1.
        round: u32,
    },
    /// A sample was stored.
    Stored(&'a Sample),
    /// All objects of a study exist; the first step follows.
    Ready {
        /// Description of the machine, as names and values.
        machine: &'a [(String, String)],
        /// Whether the machine is an emulated guest.
        emulated: bool,
        /// Measurements of the study that are not possible on this machine.
        not_tried: &'a [NotTried],
    },
    /// Results of a step of a study.
    Observed(&'a [Observation]),
    /// A step of a study failed; the study continues.
    Failed(&'a [NotTried]),
    /// A flush test ended with this result.
    Durability(&'a DurabilityProof),
    /// The noise of the baseline was measured, before any change.
    Noise {
        /// Standard deviation of the natural logarithm of the ratio between two neighbouring slots.
        pair_sd: f64,
        /// Number of neighbouring pairs of slots from which the noise was estimated.
        pairs: u32,
        /// Slot length that was chosen from the noise; `None` if the plan fixes it.
        slot: Option<assay_model::Nanos>,
    },
    /// One side of a pair begins.
    Side {
        /// Number of the pair, from 1; 0 during the measurement of noise.
        pair: u32,
        /// Side that is measured now.
        side: Side,
    },
    /// A pair is complete and was judged.
    Judged {
        /// Number of the pair, from 1.
        pair: u32,
        /// Side that was measured first in this pair.
        first: Side,
        /// Deciding figure of A and of B, in base units; `None` without a figure.
        figures: [Option<f64>; 2],
        /// Whether the pair counts, and what it showed.
        outcome: &'a PairOutcome,
        /// Judgement of all pairs until now.
        judgement: &'a Judgement,
    },
    /// Another program moved a scratch file.
    MovedFile(&'a MovedFile),
    /// Changes are being reverted, and created objects are being removed.
    SettingBack,
}

/// Callback that receives the events of a measurement.
pub type Tell<'a> = dyn FnMut(MeasureEvent<'_>) + 'a;
