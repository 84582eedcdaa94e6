//! Lists of the available studies, and of the studies that were carried out. The reports of a single study are in the
//! sibling modules.

use super::{StudyView, study_text};
use assay_model::study::{Study, Support};
use assay_render::Style;
use assay_render::text::{escape_line, pad_right};
use assay_render::units::{format_count, format_timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// JSON document of the available studies.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Catalogue")]
pub struct CatalogueDocument<'a> {
    schema: u32,
    studies: &'a [Study],
}

/// JSON document of the studies that were carried out.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Runs")]
pub struct StudyRunsDocument<'a> {
    schema: u32,
    /// Entries, the newest first.
    runs: Vec<StudyRunEntry<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Ran")]
struct StudyRunEntry<'a> {
    id: Option<i64>,
    uid: &'a str,
    name: &'a str,
    /// Size of the study: `quick` or `full`.
    form: &'a str,
    started: jiff::Timestamp,
    ended: Option<jiff::Timestamp>,
    /// False if the study ended before its last step.
    complete: bool,
    findings: Vec<ConclusionEntry<'a>>,
}

/// A conclusion of the published study, and the finding on this machine.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Said")]
struct ConclusionEntry<'a> {
    says: &'a str,
    finding: Support,
}

/// Renders every study with its question.
#[must_use]
pub fn render_catalogue(studies: &[Study], style: Style) -> String {
    let mut out = String::new();
    for study in studies {
        out.push_str(&format!("{}\n", style.bold(&escape_line(&study.name))));
        style.write_paragraph(&mut out, "", 4, &escape_line(&study.title));
        style.write_paragraph(&mut out, "", 4, &escape_line(&study.question));
    }
    out.push('\n');
    let how = "`assay study NAME --dry-run` says what one would do, `assay study NAME` does it.";
    style.write_paragraph(&mut out, "", 0, how);
    out
}

/// Converts the available studies to JSON.
#[must_use]
pub fn catalogue_to_json(studies: &[Study]) -> Value {
    json!(CatalogueDocument { schema: 1, studies })
}

/// Counts the findings, such as `3 supported, 1 contradicted`.
fn count_findings(view: &StudyView<'_>) -> String {
    let kinds = [
        Support::Supported,
        Support::Contradicted,
        Support::Unresolved,
        Support::NotTried,
    ];
    let of = |kind: Support| {
        let all = view.result.conclusions.iter();
        let n = all.filter(|one| one.finding == kind).count();
        (n > 0).then(|| format!("{n} {}", study_text::finding_word(kind)))
    };
    let parts: Vec<String> = kinds.into_iter().filter_map(of).collect();
    parts.join(", ")
}

/// Renders the studies that were carried out, newest first.
#[must_use]
pub fn render_study_runs(views: &[StudyView<'_>], style: Style) -> String {
    if views.is_empty() {
        return "no study was carried out yet: `assay study` lists what there is\n".to_owned();
    }
    let mut out = String::new();
    for view in views {
        let run = view.run;
        let id = view.id.map_or(String::new(), |id| id.to_string());
        let state = if run.complete { "" } else { ", cut off" };
        out.push_str(&format!(
            "{}  {}  {} {}{state}\n",
            pad_right(&id, 4),
            format_timestamp(run.started),
            style.bold(&escape_line(&run.study.name)),
            escape_line(&run.form),
        ));
        let parts = format!(
            "{} ({})",
            count_findings(view),
            format_count(run.observations.len(), "figure")
        );
        style.write_paragraph(&mut out, "", 6, &parts);
    }
    out
}

/// Converts the studies that were carried out to JSON.
#[must_use]
pub fn study_runs_to_json(views: &[StudyView<'_>]) -> Value {
    let runs = views.iter().map(|view| StudyRunEntry {
        id: view.id,
        uid: &view.run.uid,
        name: &view.run.study.name,
        form: &view.run.form,
        started: view.run.started,
        ended: view.run.ended,
        complete: view.run.complete,
        findings: view
            .result
            .conclusions
            .iter()
            .map(|one| ConclusionEntry {
                says: &one.says,
                finding: one.finding,
            })
            .collect(),
    });
    json!(StudyRunsDocument {
        schema: 1,
        runs: runs.collect(),
    })
}
