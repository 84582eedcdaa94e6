//! Reports of a trial: the plan before the first pair, a line for each pair, the verdict with its evidence, and lists
//! of trials.
//!
//! Every percentage describes the change of the figure itself, from A (baseline) to B (with the change): a latency that
//! fell from 10 ms to 9 ms changed by −10 %, which is good.

mod change_text;
mod html;
mod json;
mod live_lines;
mod markdown;
mod terminal;
mod trial_lists;
mod trial_plan;
pub(crate) mod trial_tables;
mod trial_text;

pub use html::{render_campaign_page, render_trial_page};
pub use json::{TrialListDocument, TrialReport, trial_to_json, trials_to_json};
pub use live_lines::{LivePair, format_live_heading, format_live_line};
pub use markdown::render_trial_markdown;
pub use terminal::render_trial_text;
pub use trial_lists::{render_campaign, render_trial_list};
pub use trial_plan::{TrialPreview, render_brief_plan, render_plan};
pub use trial_tables::format_figure_line;
pub use trial_text::{convert_improvement, format_verdict_line, verdict_word};
pub(crate) use trial_text::{format_signed_ratio, format_span};

use assay_model::result::JudgedSample;
use assay_model::trial::{Judgement, PairOutcome, Slot};
use assay_model::{Histogram, Trial};

/// A trial with everything that is derived from it.
#[derive(Clone, Copy, Debug)]
pub struct TrialView<'a> {
    /// The trial as it is stored.
    pub trial: &'a Trial,
    /// Slots in the order in which they were measured.
    pub slots: &'a [Slot],
    /// The judged sample of each slot, in the order of the slots: its figures and doubts.
    pub samples: &'a [JudgedSample],
    /// The outcome of each pair, in the order of the pairs.
    pub pairs: &'a [PairOutcome],
    /// The judgement over all pairs.
    pub judgement: &'a Judgement,
    /// Latencies of all operations of A and of B, over the pairs that count for the verdict; may be empty.
    pub latency: &'a [Histogram; 2],
    /// For several numbers of pairs, the smallest effect that this many pairs would detect at the measured noise: `(30,
    /// 0.04)` is 4 % with 30 pairs. May be empty.
    pub smallest: &'a [(u32, f64)],
}
