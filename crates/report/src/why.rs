//! Reports of what makes a machine slow. The suspects are found in `assay-why`.

mod answer_text;
mod page;
mod terminal;

pub use answer_text::{render_answer_markdown, summarize_answer};
pub use page::render_answer_page;
pub use terminal::render_answer_text;

use assay_model::SCHEMA_VERSION;
use assay_why::SlownessAnswer;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

/// What makes a machine, or a part of it, slow.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Document")]
pub struct WhyDocument<'a> {
    schema: u32,
    #[serde(flatten)]
    answer: &'a SlownessAnswer,
}

/// Converts an answer to one JSON document.
#[must_use]
pub fn answer_to_json(answer: &SlownessAnswer) -> String {
    let document = json!(WhyDocument {
        schema: SCHEMA_VERSION,
        answer,
    });
    format!("{document:#}\n")
}

#[cfg(test)]
mod tests;
