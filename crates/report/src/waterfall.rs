//! What each layer of a stack costs: as text, Markdown, JSON and a page of its own.

mod html;
mod json;
mod markdown;
mod terminal;
mod words;

pub use html::html;
pub use json::{Document, json};
pub use markdown::markdown;
pub use terminal::terminal;

use assay_model::ladder::{Ladder, Step, Waterfall};
use assay_model::result::Judged;
use assay_model::target::TargetKind;
use assay_model::{Run, Sample, TargetInfo};

/// A measured ladder with all that was derived from it.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// What was stored.
    pub run: &'a Run,
    /// Its rungs.
    pub ladder: &'a Ladder,
    /// Its samples as judged.
    pub judged: &'a Judged,
    /// Its samples.
    pub samples: &'a [Sample],
    /// One for each workload.
    pub falls: &'a [Waterfall],
}

impl View<'_> {
    /// What was named: the target of a rung that is a file there, where volumes lie below it.
    pub(crate) fn target(&self) -> Option<&TargetInfo> {
        let targets = &self.run.targets;
        let file = |target: &&TargetInfo| target.kind == TargetKind::Directory;
        targets.iter().find(file).or(targets.first())
    }
}

/// One line of a drawing: a rung and the step that leads to it.
pub(crate) struct Line<'a> {
    pub(crate) rung: usize,
    /// The layer, below how many others it stands.
    pub(crate) label: String,
    pub(crate) depth: usize,
    /// Time per I/O below and with the layer, ns.
    pub(crate) from: f64,
    pub(crate) to: Option<f64>,
    pub(crate) step: Option<&'a Step>,
}

/// The rungs from the bottom up, second measurements apart; a branch follows what it stands on.
pub(crate) fn lines<'a>(ladder: &Ladder, fall: &'a Waterfall) -> Vec<Line<'a>> {
    let time = |rung: usize| {
        let level = fall.levels.iter().find(|level| level.rung == rung)?;
        Some(level.latency?.value)
    };
    let line = |rung: usize| {
        let step = fall.steps.iter().find(|step| step.to == rung);
        let layer = assay_render::text::clean(&ladder.rungs[rung].layer);
        Line {
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
