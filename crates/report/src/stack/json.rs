//! A stack for programs.

use super::View;
use assay_model::SCHEMA_VERSION;
use serde_json::json;

/// One JSON document: the layers with their indices, and the remarks on them.
#[must_use]
pub fn json(view: &View<'_>) -> String {
    let document = json!({
        "schema": SCHEMA_VERSION,
        "target": view.stack.target,
        "layers": view.stack.layers,
        "hints": view.hints,
    });
    format!("{document:#}\n")
}
