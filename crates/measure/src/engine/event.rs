//! Events of a running measurement.

use assay_loads::scratch::MovedFile;
use assay_model::study::{NotTried, Observation};
use assay_model::trial::{DurabilityProof, Judgement, PairOutcome, Side};
use assay_model::{Bytes, Nanos, Sample};

/// An event of a measurement.
#[derive(Debug)]
pub enum MeasureEvent<'a> {
    /// An object is being created: a disk image, a guest, a file system, or a layer of a stack.
    Making(&'a str),
    /// A test file is being laid out.
    Layout {
        /// Name of the target to which the file belongs.
        target: &'a str,
        /// Bytes written so far.
        written: Bytes,
        /// Total bytes.
        size: Bytes,
    },
    /// A remark that concerns all results.
    Remark(&'a str),
    /// A new estimate of the remaining time.
    Left(Nanos),
    /// A sample begins; in a study, a step begins.
    Begin {
        /// Number of finished samples or steps.
        done: usize,
        /// Total number.
        of: usize,
        /// Name of the workload. In a study: the figures to measure, as text for users.
        workload: &'a str,
        /// Name of the target, rung or disk. In a study: the configuration, as text for users.
        target: &'a str,
        /// Round.
        round: u32,
    },
    /// A sample is stored.
    Stored(&'a Sample),
    /// All objects of a study are ready; the first step follows.
    Ready {
        /// Description of the machine, as names and values.
        machine: &'a [(String, String)],
        /// Whether the machine is an emulated guest.
        emulated: bool,
        /// Measurements that are not possible here.
        not_tried: &'a [NotTried],
    },
    /// Results of a step of a study.
    Observed(&'a [Observation]),
    /// A step of a study failed, and the study continues.
    Failed(&'a [NotTried]),
    /// A flush test ended.
    Durability(&'a DurabilityProof),
    /// Noise of the baseline before any change.
    Noise {
        /// Standard deviation of the natural logarithm of the ratio between two neighbouring slots.
        pair_sd: f64,
        /// Number of neighbouring pairs of slots in the estimate.
        pairs: u32,
        /// Chosen slot length, if any.
        slot: Option<assay_model::Nanos>,
    },
    /// One side of a pair begins.
    Side {
        /// Number of the pair, from 1; 0 during the measurement of noise.
        pair: u32,
        /// The side that begins.
        side: Side,
    },
    /// A pair is complete and was judged.
    Judged {
        /// Number of the pair, from 1.
        pair: u32,
        /// The side that was measured first.
        first: Side,
        /// The deciding figure of A and of B, in base units.
        figures: [Option<f64>; 2],
        /// Outcome of the pair.
        outcome: &'a PairOutcome,
        /// Judgement of the trial so far.
        judgement: &'a Judgement,
    },
    /// Another program moved a scratch file.
    MovedFile(&'a MovedFile),
    /// The change is being reverted and created objects are being removed.
    SettingBack,
}

/// Callback that receives the events of a measurement.
pub type Tell<'a> = dyn FnMut(MeasureEvent<'_>) + 'a;
