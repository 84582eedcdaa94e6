//! What a trial tells while it goes on.

use assay_instruments::scratch::Astray;
use assay_model::trial::{DurabilityProof, Judgement, PairOutcome, Side, Slot};
use assay_model::{Bytes, Nanos};

/// Something happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// Something is made that takes time: an image, a file system, a test file.
    Making {
        /// What, for people.
        what: &'a str,
    },
    /// Bytes of a test file written so far.
    Layout {
        /// So far.
        written: Bytes,
        /// In all.
        size: Bytes,
    },
    /// A flush test ended.
    Durability(&'a DurabilityProof),
    /// Noise of the side as it is now, before anything is changed.
    Noise {
        /// Standard deviation of the log ratio of neighbours.
        pair_sd: f64,
        /// How many neighbours.
        pairs: u32,
    },
    /// A slot begins.
    Begin {
        /// 1-based pair; 0 while the noise is measured.
        pair: u32,
        /// Side.
        side: Side,
        /// Time the slot takes.
        lasts: Nanos,
    },
    /// A slot is stored.
    Stored(&'a Slot),
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
    /// Somebody moved the scratch file meanwhile.
    Astray(&'a Astray),
    /// Settings are set back and what was made is removed.
    SettingBack,
}
