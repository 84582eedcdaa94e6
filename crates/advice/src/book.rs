//! Generates the book's pages about advice from the catalogue, and the book's page of example reports.

use crate::Catalogue;
use assay_model::advice::{Advice, RiskLevel, Standing};
use assay_model::finding::Check;
use std::fmt::Write as _;

/// A report of a real run in `docs/examples`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// Name of the report file in `docs/examples`.
    pub file: String,
    /// Short title of the report.
    pub title: String,
    /// Description of the report, which the page shows after a colon.
    pub about: String,
    /// Ids of the advice that the report is about.
    #[serde(default)]
    pub advice: Vec<String>,
}

/// Content of `docs/examples/index.toml`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Examples {
    /// Examples in the order of the page.
    pub example: Vec<Example>,
}

/// Returns the page `docs/src/examples.md`, which lists each report with its advice.
#[must_use]
pub fn examples(catalogue: &Catalogue, all: &[Example]) -> String {
    let mut out = "<!-- Made from docs/examples/index.toml by crates/advice/tests/book.rs. -->\n\
         # Reports of real runs\n\nEach report is one HTML file that assay wrote, without scripts and network requests.\n\n"
        .to_owned();
    for example in all {
        let Example {
            file, title, about, ..
        } = example;
        let _ = write!(out, "- [{title}](../examples/{file}): {about}.");
        let links: Vec<String> = example
            .advice
            .iter()
            .filter_map(|id| catalogue.get(id).ok())
            .map(|advice| format!("[{0}](advice/{1}/{0}.md)", advice.id, advice.domain))
            .collect();
        if !links.is_empty() {
            let _ = write!(out, " Advice: {}.", links.join(", "));
        }
        out.push('\n');
    }
    out
}

/// Returns the pages about advice, as (path below `docs/src/advice`, text). The table of contents is the first page.
/// Each page links to the reports about its advice.
#[must_use]
pub fn pages(catalogue: &Catalogue, examples: &[Example]) -> Vec<(String, String)> {
    let all = catalogue.all();
    let mut pages = vec![("README.md".to_owned(), contents(&all))];
    pages.extend(all.into_iter().map(|advice| {
        (
            format!("{}/{}.md", advice.domain, advice.id),
            page(advice, examples),
        )
    }));
    pages
}

/// Returns the lines for `SUMMARY.md`, with one line for each page.
#[must_use]
pub fn summary(catalogue: &Catalogue) -> Vec<String> {
    let mut lines = vec![
        "- [The catalogue of advice](advice/README.md)".to_owned(),
        "  - [Advice of your own](advice/writing.md)".to_owned(),
    ];
    lines.extend(catalogue.all().into_iter().map(|advice| {
        format!(
            "  - [{}](advice/{}/{}.md)",
            advice.title, advice.domain, advice.id
        )
    }));
    lines
}

const MADE: &str = "<!-- Made from advice/ by crates/advice/tests/book.rs; change it there. -->";

fn contents(all: &[&Advice]) -> String {
    let mut out = format!(
        "{MADE}\n# The catalogue of advice\n\nEach entry is one file below `advice/` in the \
         repository: a rule and its page. `assay advice` shows them with what they mean for the \
         machine at hand. *Standing* is what the literature says today. [Advice of your \
         own](writing.md) lies in a directory of yours.\n"
    );
    let mut domain = "";
    for advice in all {
        if advice.domain != domain {
            domain = &advice.domain;
            let _ = write!(
                out,
                "\n## {domain}\n\n| advice | standing | in a trial | in a check |\n|---|---|---|---|\n"
            );
        }
        let _ = writeln!(
            out,
            "| [`{id}`]({domain}/{id}.md) {} | {} | {} | {} |",
            cell(&advice.title),
            standing(advice.literature.standing),
            match advice.trial {
                Some(_) => "yes",
                None => "no",
            },
            advice
                .check
                .as_ref()
                .map_or("no", |check| check.severity.name()),
            id = advice.id,
        );
    }
    out
}

fn page(advice: &Advice, examples: &[Example]) -> String {
    let mut out = format!("{MADE}\n# {}\n\n{}\n\n", advice.title, advice.statement);
    let figure = advice.source.figure.as_ref();
    let figure = figure.map_or_else(String::new, |figure| format!(" Figure: {figure}."));
    let rows = [
        ("id", format!("`{}`", advice.id)),
        (
            "standing",
            format!(
                "**{}**. {}",
                standing(advice.literature.standing),
                advice.literature.text
            ),
        ),
        (
            "claimed",
            format!("{} ({}){figure}", advice.source.claimed, advice.source.who),
        ),
        ("predicted", advice.predicts.clone()),
        (
            "risk",
            format!("**{}**. {}", risk(advice.risk.level), advice.risk.text),
        ),
    ];
    let _ = writeln!(out, "| | |\n|---|---|");
    for (name, text) in rows {
        let _ = writeln!(out, "| {name} | {} |", cell(&text));
    }
    if !advice.when.is_empty() {
        let _ = writeln!(out, "\n## When assay says that it applies\n");
        for condition in &advice.when {
            let _ = writeln!(
                out,
                "- `{}`; otherwise: {}.",
                condition.cel, condition.otherwise
            );
        }
    }
    if !advice.parameters.is_empty() {
        let _ = writeln!(out, "\n## Settings of the trial\n");
        for (name, parameter) in &advice.parameters {
            let default = parameter.default.as_ref();
            let default = default.map_or_else(
                || "must be given".to_owned(),
                |default| format!("`{default}` unless given"),
            );
            let _ = writeln!(out, "- `--set {name}=…`: {}; {default}.", parameter.about);
        }
    }
    if let Some(acts) = &advice.acts {
        let _ = writeln!(out, "\n## What the change acts on\n");
        for (label, text) in acts.describe() {
            let _ = writeln!(out, "- {label}: {text}");
        }
    }
    if let Some(check) = &advice.check {
        found(&mut out, check);
    }
    let _ = write!(out, "\n{}\n", advice.page);
    let about = |example: &&Example| example.advice.contains(&advice.id);
    let about: Vec<&Example> = examples.iter().filter(about).collect();
    if !about.is_empty() {
        out.push_str("\n## Measured\n\n");
    }
    for Example {
        file, title, about, ..
    } in about
    {
        let _ = writeln!(out, "- [{title}](../../../examples/{file}): {about}.");
    }
    out
}

fn found(out: &mut String, rule: &Check) {
    let _ = writeln!(out, "\n## When `assay check` finds it\n");
    let about: Vec<String> = rule
        .about
        .iter()
        .map(|about| format!("`{}`", String::from(about.clone())))
        .collect();
    if !about.is_empty() {
        let _ = writeln!(out, "- about each of {}", about.join(", "));
    }
    if let Some(applies) = &rule.applies {
        let _ = writeln!(out, "- where `{applies}`");
    }
    let severity = rule.severity.name();
    let _ = writeln!(out, "- when `{}`: severity {severity}", rule.violated);
    for flip in &rule.flips {
        let _ = writeln!(out, "- it depends on the version: {flip}");
    }
    let _ = writeln!(out, "\n{}\n", rule.say.text);
    if let Some(why) = &rule.not_actionable {
        let _ = writeln!(out, "Nothing can be done on the machine: {why}");
    }
    for step in rule.remedy.iter().flat_map(|remedy| &remedy.steps) {
        let _ = writeln!(out, "- {step}");
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn standing(standing: Standing) -> &'static str {
    match standing {
        Standing::Confirmed => "confirmed",
        Standing::Conditional => "conditional",
        Standing::Obsolete => "obsolete",
        Standing::Wrong => "wrong",
        Standing::Dangerous => "dangerous",
    }
}

fn risk(level: RiskLevel) -> &'static str {
    match level {
        RiskLevel::None => "none",
        RiskLevel::Low => "low",
        RiskLevel::Service => "a service may stop",
        RiskLevel::Lockout => "lock-out",
        RiskLevel::DataLoss => "data loss",
    }
}
