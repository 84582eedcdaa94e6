//! The answer to a question: as JSON, or as a page.

use crate::context::{print, write_file};
use assay_model::SCHEMA_VERSION;
use assay_report::plan::{Section, sheet};
use serde_json::{Map, Value};
use std::path::Path;

/// Prints an answer as JSON: the schema version and the question before its own fields.
pub(super) fn print_json(question: &str, answer: &impl serde::Serialize) -> anyhow::Result<()> {
    let mut object = Map::new();
    object.insert("schema".into(), SCHEMA_VERSION.into());
    object.insert("question".into(), question.into());
    match serde_json::to_value(answer)? {
        Value::Object(fields) => object.extend(fields),
        other => {
            object.insert("answer".into(), other);
        }
    }
    print(&format!("{:#}\n", Value::Object(object)))
}

/// Writes the page of an answer, when one was asked for.
pub(super) fn write_page(
    path: Option<&Path>,
    title: &str,
    intro: &[String],
    sections: &[Section],
) -> anyhow::Result<()> {
    match path {
        Some(path) => write_file(path, &sheet(title, intro, sections)),
        None => Ok(()),
    }
}
