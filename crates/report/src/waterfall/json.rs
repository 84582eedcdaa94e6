//! A measured stack as one JSON document: the run and the waterfalls. Reports for people are in the sibling modules.

use super::WaterfallView;
use assay_model::Waterfall;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// A run over the layers of a stack, with the cost of each layer. Times are in nanoseconds. Steps and paths refer to
/// rungs by their index in `run.ladder.rungs`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Document")]
pub struct WaterfallDocument<'a> {
    #[serde(flatten)]
    run: crate::json::RunDocument<'a>,
    waterfalls: &'a [Waterfall],
}

/// Converts a measured stack to JSON.
#[must_use]
pub fn waterfall_to_json(view: &WaterfallView) -> Value {
    json!(WaterfallDocument {
        run: crate::json::build_document(view.run, view.judged, view.samples),
        waterfalls: view.falls,
    })
}
