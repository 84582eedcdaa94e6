//! A study as one JSON document: raw and judged.

use super::View;
use serde_json::{Value, json};

/// The document.
#[must_use]
pub fn json(view: &View<'_>) -> Value {
    json!({
        "schema": 1,
        "id": view.id,
        "run": view.run,
        "result": view.result,
    })
}
