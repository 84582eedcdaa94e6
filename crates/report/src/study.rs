//! Studies as people read them: what was concluded and what became of it, ours beside the published
//! figures, what could not be tried.

mod curves;
mod html;
mod json;
mod list;
mod markdown;
mod plan;
mod terminal;
mod words;

pub use html::html;
pub use json::{Document, json};
pub use list::{Catalogue, Runs, catalogue, catalogue_json, runs, runs_json};
pub use markdown::markdown;
pub use plan::{Before, plan};
pub use terminal::terminal;

use assay_model::study::{StudyResult, StudyRun};

/// A study that was carried out, with all that is derived from it.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// Raw.
    pub run: &'a StudyRun,
    /// Judged.
    pub result: &'a StudyResult,
    /// Its number in the store; none when it is in none.
    pub id: Option<i64>,
}
