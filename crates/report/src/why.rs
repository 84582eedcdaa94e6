//! Reports of what makes a machine slow. The suspects are found in `assay-why`.

mod answer_text;
mod page;
mod terminal;

pub use answer_text::{describe_thing, render_answer_markdown, summarize_answer};
pub use page::render_answer_page;
pub use terminal::render_answer_text;

use assay_model::SCHEMA_VERSION;
use assay_render::text::escape_line;
use assay_why::SlownessAnswer;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

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

/// Reads a stored answer. Its texts are escaped again: a shared store is written by others too.
///
/// # Errors
/// The document has another form.
pub fn read_answer(mut document: Value) -> Result<SlownessAnswer, serde_json::Error> {
    escape_strings(&mut document);
    serde_json::from_value(document)
}

fn escape_strings(value: &mut Value) {
    match value {
        Value::String(text) => *text = escape_line(text),
        Value::Array(all) => all.iter_mut().for_each(escape_strings),
        Value::Object(fields) => fields.values_mut().for_each(escape_strings),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests;
