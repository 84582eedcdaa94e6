//! Reports of the cost of each layer of a stack: text, Markdown, JSON and a page. The costs are
//! estimated in `assay-judge`.

mod html;
mod json;
mod markdown;
mod terminal;
mod waterfall_text;

pub use html::render_waterfall_page;
pub use json::{WaterfallDocument, waterfall_to_json};
pub use markdown::render_waterfall_markdown;
pub use terminal::render_waterfall_text;

use assay_model::ladder::{Ladder, Step, Waterfall};
use assay_model::result::Judged;
use assay_model::target::TargetKind;
use assay_model::{Run, Sample, TargetInfo};

/// A measured stack (`Ladder`) with everything that is derived from it.
#[derive(Clone, Copy, Debug)]
pub struct WaterfallView<'a> {
    /// The run as it is stored.
    pub run: &'a Run,
    /// The measured layers (`Rung`).
    pub ladder: &'a Ladder,
    /// The judged samples of the run.
    pub judged: &'a Judged,
    /// The samples as they are stored.
    pub samples: &'a [Sample],
    /// One waterfall for each workload.
    pub falls: &'a [Waterfall],
}

impl WaterfallView<'_> {
    /// Returns the target that the user specified: the first directory target or, if there is none, the first target.
    pub(crate) fn find_target(&self) -> Option<&TargetInfo> {
        let targets = &self.run.targets;
        let file = |target: &&TargetInfo| target.kind == TargetKind::Directory;
        targets.iter().find(file).or(targets.first())
    }
}

/// A line of a chart: a measured layer (`Rung`), and the step that leads to it.
pub(crate) struct RungLine<'a> {
    pub(crate) rung: usize,
    /// Name of the measured layer.
    pub(crate) label: String,
    pub(crate) depth: usize,
    /// Time per I/O in nanoseconds at the start of the bar, that is without the layer. `to` is the time at the end of
    /// the bar, with the layer.
    pub(crate) from: f64,
    pub(crate) to: Option<f64>,
    pub(crate) step: Option<&'a Step>,
}

/// Lists the measured layers from the bottom up. Repeated measurements have their own lines, and a branch follows the
/// layer below it.
pub(crate) fn list_lines<'a>(ladder: &Ladder, fall: &'a Waterfall) -> Vec<RungLine<'a>> {
    let time = |rung: usize| {
        let level = fall.levels.iter().find(|level| level.rung == rung)?;
        Some(level.latency?.value)
    };
    let line = |rung: usize| {
        let step = fall.steps.iter().find(|step| step.to == rung);
        let layer = assay_render::text::escape_line(&ladder.rungs[rung].layer);
        RungLine {
            rung,
            label: match step {
                Some(_) => format!("+ {layer}"),
                None => layer,
            },
            depth: ladder.path(rung).len().saturating_sub(1),
            from: step.and_then(|step| time(step.from)).unwrap_or(0.0),
            to: time(rung),
            step,
        }
    };
    let rungs = (0..ladder.rungs.len()).filter(|&rung| ladder.rungs[rung].again.is_none());
    rungs.map(line).collect()
}
