//! A study as one JSON document: as measured and as judged. Reports for people are in the sibling
//! modules.

use super::StudyView;
use assay_model::study::{StudyResult, StudyRun};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// A study as measured and as judged.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Document")]
pub struct StudyDocument<'a> {
    schema: u32,
    /// Number in the store; null if it is not stored.
    id: Option<i64>,
    /// The study as measured.
    run: &'a StudyRun,
    /// The study as judged.
    result: &'a StudyResult,
}

/// Converts a study to JSON.
#[must_use]
pub fn study_to_json(view: &StudyView<'_>) -> Value {
    json!(StudyDocument {
        schema: 1,
        id: view.id,
        run: view.run,
        result: view.result,
    })
}
