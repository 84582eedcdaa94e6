//! A study as one JSON document, with its measured figures and its judged conclusions. Reports for people are in the
//! sibling modules.

use super::StudyView;
use assay_model::study::{StudyResult, StudyRun};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// A study with its measured figures and its judged conclusions.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Document")]
pub struct StudyDocument<'a> {
    schema: u32,
    /// Number of the study run in the store; null if it is not stored.
    id: Option<i64>,
    /// The study run with its measured figures.
    run: &'a StudyRun,
    /// Estimates and findings of the study.
    result: &'a StudyResult,
}

/// Converts a study and its results to JSON.
#[must_use]
pub fn study_to_json(view: &StudyView<'_>) -> Value {
    json!(StudyDocument {
        schema: 1,
        id: view.id,
        run: view.run,
        result: view.result,
    })
}
