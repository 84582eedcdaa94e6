//! A study as one JSON document: raw and judged.

use super::View;
use assay_model::study::{StudyResult, StudyRun};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// A study: raw and judged.
#[derive(Serialize, JsonSchema)]
pub struct Document<'a> {
    schema: u32,
    /// Its number in the store; null when it is in none.
    id: Option<i64>,
    /// As it was carried out.
    run: &'a StudyRun,
    /// What that means.
    result: &'a StudyResult,
}

/// The document.
#[must_use]
pub fn json(view: &View<'_>) -> Value {
    json!(Document {
        schema: 1,
        id: view.id,
        run: view.run,
        result: view.result,
    })
}
