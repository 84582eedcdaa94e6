//! Reports of what makes a machine slow. The suspects (possible causes) are found in `assay-why`.

mod answer_text;
mod page;
mod terminal;

pub use answer_text::{describe_thing, render_answer_markdown, summarize_answer};
pub use page::render_answer_page;
pub use terminal::render_answer_text;

use crate::stored_text::{bound_texts, escape_texts};
use assay_model::SCHEMA_VERSION;
use assay_why::SlownessAnswer;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// Answer to the question what makes a machine, or a part of it, slow.
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

/// Reads a stored answer. Its texts are bounded and escaped again, because other users also write to a shared store.
///
/// # Errors
/// The document has another form.
pub fn read_answer(mut document: Value) -> Result<SlownessAnswer, serde_json::Error> {
    bound_texts(&mut document);
    escape_texts(&mut document);
    // An escaped character is longer.
    bound_texts(&mut document);
    serde_json::from_value(document)
}

/// Bounds and escapes the texts of an answer. Needed for an answer from a recording that other users made.
#[must_use]
pub fn bound_answer(answer: SlownessAnswer) -> SlownessAnswer {
    // A figure that JSON does not have leaves the answer as it is.
    let document = serde_json::to_value(&answer);
    document.and_then(read_answer).unwrap_or(answer)
}

#[cfg(test)]
mod tests;
