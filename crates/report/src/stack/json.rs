//! A stack as JSON. Reports for people are in the sibling modules.

use super::StackView;
use assay_model::SCHEMA_VERSION;
use assay_model::stack::{Hint, Layer};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

/// The storage layers under a target.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Document")]
pub struct StackDocument<'a> {
    schema: u32,
    target: &'a str,
    /// All layers. `below` contains indices into this list.
    layers: &'a [Layer],
    /// Hints about the settings of layers.
    hints: &'a [Hint],
}

/// Converts a stack to one JSON document with the layers, their indices, and the hints.
#[must_use]
pub fn stack_to_json(view: &StackView<'_>) -> String {
    let document = json!(StackDocument {
        schema: SCHEMA_VERSION,
        target: &view.stack.target,
        layers: &view.stack.layers,
        hints: view.hints,
    });
    format!("{document:#}\n")
}
