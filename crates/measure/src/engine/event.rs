//! Events of a running measurement.

use assay_loads::scratch::Astray;
use assay_model::study::{NotTried, Observation};
use assay_model::trial::{DurabilityProof, Judgement, PairOutcome, Side};
use assay_model::{Bytes, Nanos, Sample};

/// An event of a measurement.
#[derive(Debug)]
pub enum MeasureEvent<'a> {
    /// An object is being created: an image, a guest, a file system, a layer in it.
    Making(&'a str),
    /// A test file is being laid out.
    Layout {
        /// Name of the target.
        target: &'a str,
        /// Bytes written so far.
        written: Bytes,
        /// Total bytes.
        size: Bytes,
    },
    /// A remark on all figures.
    Remark(&'a str),
    /// A new estimate of the remaining time.
    Left(Nanos),
    /// A sample begins, or a step of a study.
    Begin {
        /// Number of finished samples or steps.
        done: usize,
        /// Total number.
        of: usize,
        /// Workload; for a study its figures, for people.
        workload: &'a str,
        /// Target, rung or disk; for a study the configuration, for people.
        target: &'a str,
        /// Round.
        round: u32,
    },
    /// A sample is stored.
    Stored(&'a Sample),
    /// All objects of a study are ready; its first step follows.
    Ready {
        /// Description of the machine.
        machine: &'a [(String, String)],
        /// Whether it is an emulated guest.
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
        /// Standard deviation of the log ratio of neighbouring slots.
        pair_sd: f64,
        /// Number of pairs of neighbours.
        pairs: u32,
        /// Chosen slot length, if any.
        slot: Option<assay_model::Nanos>,
    },
    /// Start of one side of a pair.
    Side {
        /// 1-based pair; 0 for the measurement of noise.
        pair: u32,
        /// Side.
        side: Side,
    },
    /// A pair is complete and was judged.
    Judged {
        /// 1-based pair.
        pair: u32,
        /// The side that was measured first.
        first: Side,
        /// The deciding figure of A and of B, in base units.
        figures: [Option<f64>; 2],
        /// Outcome of the pair.
        outcome: &'a PairOutcome,
        /// Current judgement of the trial.
        judgement: &'a Judgement,
    },
    /// Another program moved a scratch file.
    Astray(&'a Astray),
    /// The change is being reverted and created objects are being removed.
    SettingBack,
}

/// Receives events.
pub type Tell<'a> = dyn FnMut(MeasureEvent<'_>) + 'a;
