//! Reports of a study: conclusions and findings, measured figures next to the published figures, and a list of what
//! could not be tried. Studies are judged in `assay-judge` and carried out in `assay-studies`.

mod curve_tables;
mod html;
mod json;
mod markdown;
mod study_lists;
mod study_plan;
mod study_text;
mod terminal;

pub use html::render_study_page;
pub use json::{StudyDocument, study_to_json};
pub use markdown::render_study_markdown;
pub use study_lists::{
    CatalogueDocument, StudyRunsDocument, catalogue_to_json, render_catalogue, render_study_runs,
    study_runs_to_json,
};
pub use study_plan::{StudyPreview, render_study_plan};
pub use terminal::render_study_text;

use assay_model::study::{StudyResult, StudyRun};

/// A study that was carried out, with its results.
#[derive(Clone, Copy)]
pub struct StudyView<'a> {
    /// The study run with its measured figures.
    pub run: &'a StudyRun,
    /// Estimates and findings of the study.
    pub result: &'a StudyResult,
    /// Number of the study run in the store; `None` if it is not stored.
    pub id: Option<i64>,
}
