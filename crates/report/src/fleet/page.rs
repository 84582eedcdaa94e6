//! Renders a check of many machines as one page: machines with their counts, then findings by rule.

use super::{AskedMachine, MachineAnswer, count_machines, list_checked, summarize_fleet};
use crate::check::{format_subject, list_unknown_sources};
use assay_model::finding::{Certainty, Severity};
use assay_render::html::render_page;
use assay_render::text::escape_line;
use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = "
article.finding { border-left: .3rem solid var(--rule); padding: 0 0 0 1rem; margin: 0 0 1.6rem; max-width: 60rem }
article.finding h3 { margin: 0 0 .2rem }
article.critical, article.high { border-color: var(--bad) }
article.medium { border-color: var(--warn) }
article.finding li, td { overflow-wrap: anywhere }
";

#[derive(Serialize)]
struct MachineRow {
    name: String,
    /// Number of findings by severity, followed by the number of unknown and of accepted findings; empty if the machine
    /// was not checked.
    counts: Vec<String>,
    note: String,
}

#[derive(Serialize)]
struct Rule {
    rule: String,
    severity: &'static str,
    title: String,
    on: String,
    findings: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    machine: String,
    about: String,
    text: String,
    places: String,
}

/// Data about a rule: its worst severity, its title, the machines that violate it, and their findings.
type Gathered<'a> = (Severity, String, BTreeSet<&'a str>, Vec<Line>);

/// Renders the page of a check of several machines.
#[must_use]
pub fn checks_html(all: &[AskedMachine<'_>]) -> String {
    let severities = Severity::ALL;
    let mut rules: BTreeMap<&str, Gathered<'_>> = BTreeMap::new();
    let mut unknown = Vec::new();
    for (name, found) in list_checked(all) {
        let line = |about: String, text: &str, places: String| Line {
            machine: escape_line(name),
            about,
            text: escape_line(text),
            places,
        };
        for finding in &found.findings {
            if finding.certainty == Certainty::Unknown {
                continue;
            }
            let places: Vec<String> = finding
                .places
                .iter()
                .map(|place| escape_line(&place.to_string()))
                .collect();
            let entry = rules.entry(&finding.rule).or_insert_with(|| {
                let title = escape_line(&finding.title);
                (finding.severity, title, BTreeSet::new(), Vec::new())
            });
            entry.0 = entry.0.max(finding.severity);
            entry.2.insert(name);
            let about = escape_line(&format_subject(finding));
            entry.3.push(line(about, &finding.text, places.join(", ")));
        }
        let texts = list_unknown_sources(found).into_iter();
        unknown.extend(texts.map(|(text, _)| line(String::new(), text, String::new())));
    }
    let mut rules: Vec<_> = rules.into_iter().collect();
    rules.sort_by_key(|(rule, row)| (Reverse((row.0, row.2.len())), *rule));
    let summary = summarize_fleet(all, rules.len());
    let rules: Vec<Rule> = rules
        .into_iter()
        .map(|(rule, (severity, title, on, findings))| Rule {
            rule: rule.to_owned(),
            severity: severity.name(),
            title,
            on: count_machines(on.len()),
            findings,
        })
        .collect();
    let rows: Vec<MachineRow> = all.iter().map(|one| build_row(one, &severities)).collect();
    render_page(
        "Check of machines",
        STYLE,
        TEMPLATE,
        context! {
            count => count_machines(all.len()),
            summary,
            severities => severities.map(Severity::name),
            machines => Serde(rows),
            rules => Serde(rules),
            unknown => Serde(unknown),
        },
    )
}

fn build_row(one: &AskedMachine<'_>, severities: &[Severity]) -> MachineRow {
    let nothing = vec![String::new(); severities.len() + 2];
    let (counts, note) = match one.answer {
        MachineAnswer::Checked(found) => {
            let counts = severities.iter().map(|severity| found.count(*severity));
            let more = [list_unknown_sources(found).len(), found.accepted.len()];
            let counts = counts.chain(more).map(|count| count.to_string());
            (counts.collect(), String::new())
        }
        MachineAnswer::Same(other) => (nothing, format!("is {}", escape_line(other))),
        MachineAnswer::Failed(_, why) => (nothing, escape_line(why)),
    };
    MachineRow {
        name: escape_line(one.name),
        counts,
        note,
    }
}
