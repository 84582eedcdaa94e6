//! A stack for programs.

use super::View;
use assay_model::SCHEMA_VERSION;
use assay_model::stack::{Hint, Layer};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

/// The layers under a target.
#[derive(Serialize, JsonSchema)]
pub struct Document<'a> {
    schema: u32,
    target: &'a str,
    /// `below` names others by their place in this list.
    layers: &'a [Layer],
    /// What is known of their settings.
    hints: &'a [Hint],
}

/// One JSON document: the layers with their indices, and the remarks on them.
#[must_use]
pub fn json(view: &View<'_>) -> String {
    let document = json!(Document {
        schema: SCHEMA_VERSION,
        target: &view.stack.target,
        layers: &view.stack.layers,
        hints: view.hints,
    });
    format!("{document:#}\n")
}
