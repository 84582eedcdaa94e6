//! The studies there are, and those that were carried out.

use super::{View, words};
use assay_model::study::{Study, Support};
use assay_render::Style;
use assay_render::text::{clean, left};
use assay_render::units::{count, time};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// The studies there are.
#[derive(Serialize, JsonSchema)]
pub struct Catalogue<'a> {
    schema: u32,
    studies: &'a [Study],
}

/// Studies that were carried out.
#[derive(Serialize, JsonSchema)]
pub struct Runs<'a> {
    schema: u32,
    /// The newest first.
    runs: Vec<Ran<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct Ran<'a> {
    id: Option<i64>,
    uid: &'a str,
    name: &'a str,
    /// `quick` or `full`.
    form: &'a str,
    started: jiff::Timestamp,
    ended: Option<jiff::Timestamp>,
    /// False when it was cut off.
    complete: bool,
    findings: Vec<Said<'a>>,
}

/// A conclusion of the published study, and what came out here.
#[derive(Serialize, JsonSchema)]
struct Said<'a> {
    says: &'a str,
    finding: Support,
}

/// Every study with what it asks.
#[must_use]
pub fn catalogue(studies: &[Study], style: Style) -> String {
    let mut out = String::new();
    for study in studies {
        out.push_str(&format!("{}\n", style.bold(&clean(&study.name))));
        style.paragraph(&mut out, "", 4, &clean(&study.title));
        style.paragraph(&mut out, "", 4, &clean(&study.question));
    }
    out.push('\n');
    let how = "`assay study NAME --dry-run` says what one would do, `assay study NAME` does it.";
    style.paragraph(&mut out, "", 0, how);
    out
}

/// The same for programs.
#[must_use]
pub fn catalogue_json(studies: &[Study]) -> Value {
    json!(Catalogue { schema: 1, studies })
}

/// `3 supported, 1 contradicted`.
fn findings(view: &View<'_>) -> String {
    let kinds = [
        Support::Supported,
        Support::Contradicted,
        Support::Unresolved,
        Support::NotTried,
    ];
    let of = |kind: Support| {
        let all = view.result.conclusions.iter();
        let n = all.filter(|one| one.finding == kind).count();
        (n > 0).then(|| format!("{n} {}", words::finding(kind)))
    };
    let told: Vec<String> = kinds.into_iter().filter_map(of).collect();
    told.join(", ")
}

/// Studies that were carried out, newest first.
#[must_use]
pub fn runs(views: &[View<'_>], style: Style) -> String {
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
            left(&id, 4),
            time(run.started),
            style.bold(&clean(&run.study.name)),
            clean(&run.form),
        ));
        let told = format!(
            "{} ({})",
            findings(view),
            count(run.observations.len(), "figure")
        );
        style.paragraph(&mut out, "", 6, &told);
    }
    out
}

/// The same for programs.
#[must_use]
pub fn runs_json(views: &[View<'_>]) -> Value {
    let runs = views.iter().map(|view| Ran {
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
            .map(|one| Said {
                says: &one.says,
                finding: one.finding,
            })
            .collect(),
    });
    json!(Runs {
        schema: 1,
        runs: runs.collect(),
    })
}
