//! Prints the answer of a subcommand as JSON, or writes it as a page.

use crate::context::{print, write_file};
use assay_model::SCHEMA_VERSION;
use assay_report::plan::{PlanSection, render_planner_page};
use std::path::Path;

/// JSON document of `assay plan`: the answer of one subcommand.
#[derive(serde::Serialize, schemars::JsonSchema)]
#[schemars(rename = "{T}Document")]
pub(super) struct Document<'a, T> {
    schema: u32,
    question: &'a str,
    #[serde(flatten)]
    answer: &'a T,
}

/// Prints an answer as JSON. The document has the schema version and the name of the subcommand, then the fields of the
/// answer.
pub(super) fn print_json(question: &str, answer: &impl serde::Serialize) -> anyhow::Result<()> {
    let document = serde_json::to_value(Document {
        schema: SCHEMA_VERSION,
        question,
        answer,
    })?;
    print(&format!("{document:#}\n"))
}

/// Writes the HTML page of an answer, if the user requested it.
pub(super) fn write_page(
    path: Option<&Path>,
    title: &str,
    intro: &[String],
    sections: &[PlanSection],
) -> anyhow::Result<()> {
    match path {
        Some(path) => write_file(path, &render_planner_page(title, intro, sections)),
        None => Ok(()),
    }
}
