//! A measured ladder as one JSON document: that of the run, and the waterfalls.

use super::View;
use assay_model::Waterfall;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// A run over the layers of a stack, and what each of them costs. Times are in nanoseconds; steps and
/// paths name rungs by their place in `run.ladder.rungs`.
#[derive(Serialize, JsonSchema)]
pub struct Document<'a> {
    #[serde(flatten)]
    run: crate::json::Document<'a>,
    waterfalls: &'a [Waterfall],
}

/// The document.
#[must_use]
pub fn json(view: &View) -> Value {
    json!(Document {
        run: crate::json::document(view.run, view.judged, view.samples),
        waterfalls: view.falls,
    })
}
