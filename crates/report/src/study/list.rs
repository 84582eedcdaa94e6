//! The studies there are, and those that were carried out.

use super::{View, words};
use assay_model::study::{Study, Support};
use assay_page::Style;
use assay_page::text::{clean, left};
use assay_page::units::{count, time};
use serde_json::{Value, json};

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
    json!({ "schema": 1, "studies": studies })
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
    let all: Vec<Value> = views
        .iter()
        .map(|view| {
            json!({
                "id": view.id, "uid": view.run.uid, "name": view.run.study.name,
                "form": view.run.form, "started": view.run.started, "ended": view.run.ended,
                "complete": view.run.complete,
                "findings": view.result.conclusions.iter()
                    .map(|one| json!({ "says": one.says, "finding": one.finding }))
                    .collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({ "schema": 1, "runs": all })
}
