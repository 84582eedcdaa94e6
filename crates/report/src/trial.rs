//! A trial as people read it: the plan before anything is done, a line for each pair, the verdict
//! with its evidence, and several trials together.
//!
//! All changes are those of the figure itself, from A (as it is) to B (with the change): a latency
//! that went from 10 ms to 9 ms changed by −10 %, which is good.

mod change;
pub(crate) mod evidence;
mod html;
mod json;
mod list;
mod live;
mod markdown;
mod plan;
mod terminal;
mod words;

pub use evidence::figure_line;
pub use html::{campaign as campaign_html, html};
pub use json::{Document, List, json, list as list_json};
pub use list::{campaign, list};
pub use live::{Live, live_head, live_line};
pub use markdown::markdown;
pub use plan::{Before, plan_brief, plan_text};
pub use terminal::terminal;
pub use words::{change_of, verdict_line, verdict_word};
pub(crate) use words::{signed, span};

use assay_model::result::JudgedSample;
use assay_model::trial::{Judgement, PairOutcome, Slot};
use assay_model::{Histogram, Trial};

/// A trial with all that was derived from it.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// What was stored.
    pub trial: &'a Trial,
    /// What was measured, in the order in which it was.
    pub slots: &'a [Slot],
    /// The sample of each slot as judged, in the same order: its figures and doubts.
    pub samples: &'a [JudgedSample],
    /// What each pair says, in order.
    pub pairs: &'a [PairOutcome],
    /// What they amount to.
    pub judgement: &'a Judgement,
    /// Latencies of all operations of A and of B, over the pairs that count; may be empty.
    pub latency: &'a [Histogram; 2],
    /// Smallest share that this many pairs would tell from nothing, at the noise that was seen:
    /// `(30, 0.04)` for 4 % in 30 pairs. May be empty.
    pub smallest: &'a [(u32, f64)],
}
