//! What a measurement tells while it goes on.

use assay_loads::scratch::Astray;
use assay_model::study::{NotTried, Observation};
use assay_model::trial::{DurabilityProof, Judgement, PairOutcome, Side};
use assay_model::{Bytes, Nanos, Sample};

/// What happens.
#[derive(Debug)]
pub enum MeasureEvent<'a> {
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
    /// A sample begins, or a step of a study.
    Begin {
        /// How many are done.
        done: usize,
        /// How many there are.
        of: usize,
        /// Workload; of a study the figures, for people.
        workload: &'a str,
        /// Target, rung or disk; of a study the configuration, for people.
        target: &'a str,
        /// Round.
        round: u32,
    },
    /// A sample is stored.
    Stored(&'a Sample),
    /// All that a study needs is there; its first step comes next.
    Ready {
        /// What it runs on.
        machine: &'a [(String, String)],
        /// Whether that is an emulated guest.
        emulated: bool,
        /// What cannot be tried here.
        not_tried: &'a [NotTried],
    },
    /// What a step of a study has given.
    Observed(&'a [Observation]),
    /// A step of a study failed, and the others go on.
    Failed(&'a [NotTried]),
    /// A flush test ended.
    Durability(&'a DurabilityProof),
    /// Noise of the side as it is now, before anything is changed.
    Noise {
        /// Standard deviation of the log ratio of neighbours.
        pair_sd: f64,
        /// How many neighbours.
        pairs: u32,
        /// The length of slots that was chosen from it.
        slot: Option<assay_model::Nanos>,
    },
    /// A side of a pair is measured next.
    Side {
        /// 1-based pair; 0 while the noise is measured.
        pair: u32,
        /// Side.
        side: Side,
    },
    /// A pair is complete and was judged.
    Judged {
        /// 1-based pair.
        pair: u32,
        /// Which side was measured first.
        first: Side,
        /// The deciding figure of A and of B, in base units.
        figures: [Option<f64>; 2],
        /// What the judge makes of this pair.
        outcome: &'a PairOutcome,
        /// Where the trial stands.
        judgement: &'a Judgement,
    },
    /// Somebody moved a scratch file meanwhile.
    Astray(&'a Astray),
    /// Settings are set back and what was made is removed.
    SettingBack,
}

/// Who is told.
pub type Tell<'a> = dyn FnMut(MeasureEvent<'_>) + 'a;
