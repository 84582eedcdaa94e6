//! The notebook of a tuning session: its goal, the candidates that were tried, left out and kept, and how to undo the
//! session. The same content is rendered as text, Markdown, HTML and JSON.

mod document;
mod hold_section;
mod limit_section;
mod live_lines;
mod notebook;
mod preview;
mod renderings;
mod repeat_section;
mod snippets;
mod tried_section;

pub use document::{TuneDocument, TuneListDocument, tune_document, tune_list_document};
pub use live_lines::format_progress;
pub use preview::render_tune_preview;
pub use renderings::{render_tune_list, render_tune_markdown, render_tune_page, render_tune_text};

use assay_tune::{Ending, TuneId, TuneRecord, TuneSession};

/// A tuning session with the state of the planner.
#[derive(Clone, Copy, Debug)]
pub struct TuneView<'a> {
    /// Number of the session in the store.
    pub id: TuneId,
    /// The session as it is stored.
    pub record: &'a TuneRecord,
    /// State of the planner, derived from the observations.
    pub session: &'a TuneSession,
}

impl TuneView<'_> {
    /// Returns what is tuned: the target or, if the load has none, the load.
    #[must_use]
    pub fn subject(&self) -> String {
        match self.record.target.is_empty() {
            true => self.record.load.describe(),
            false => self.record.target.clone(),
        }
    }

    /// Describes how the session ended.
    #[must_use]
    pub fn outcome(&self) -> String {
        match (self.session.ending(), &self.record.error) {
            (_, Some(error)) => format!("stopped: {error}"),
            (Some(Ending::Kept { row }), _) => {
                let n = assay_render::units::format_plural(row.len() as u64, "change", "changes");
                match &self.record.kept {
                    assay_tune::KeptState::Undone { .. } => format!("{n} kept, and undone since"),
                    _ => format!("{n} kept"),
                }
            }
            (Some(ending), _) => ending.to_string(),
            (None, _) => "not ended".to_owned(),
        }
    }
}
