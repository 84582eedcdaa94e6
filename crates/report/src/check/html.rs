//! Renders a check as one HTML page.

use super::coverage::describe_outcome;
use super::{
    Group, NOT_ASKED, View, WITHOUT_RULES, counts_of_service, describe_scope, format_result,
    format_subject, list_unknown_sources, not_asked, without_rules,
};
use assay_model::coverage::Service;
use assay_model::finding::{Checked, Finding, Fix, Looked};
use assay_render::html::render_page;
use assay_render::text::escape_line;
use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = "
article.finding { border-left: .3rem solid var(--rule); padding: 0 0 0 1rem; margin: 0 0 1.6rem; max-width: 60rem }
summary, article.finding, section li { overflow-wrap: anywhere }
article.finding h3 { margin: 0 0 .2rem }
article.critical, article.high { border-color: var(--bad) }
article.medium { border-color: var(--warn) }
";

#[derive(Serialize)]
struct GroupView {
    heading: &'static str,
    findings: Vec<FindingView>,
}

#[derive(Serialize)]
struct ServiceView {
    name: String,
    counts: String,
    questions: Vec<QuestionView>,
}

#[derive(Serialize)]
struct QuestionView {
    rule: String,
    statement: String,
    outcome: String,
    source: String,
}

#[derive(Serialize)]
struct FindingView {
    severity: &'static str,
    rule: String,
    about: String,
    title: String,
    text: String,
    places: Vec<String>,
    steps: Vec<String>,
    undo: Vec<String>,
    not_here: Option<String>,
}

/// Renders a check as one self-contained HTML page.
#[must_use]
pub fn html(view: &View<'_>) -> String {
    let checked = view.checked;
    let groups: Vec<GroupView> = Group::ALL
        .into_iter()
        .filter(|group| *group != Group::Unknown)
        .map(|group| GroupView {
            heading: group.heading(),
            findings: group
                .members(checked)
                .into_iter()
                .map(view_finding)
                .collect(),
        })
        .filter(|group| !group.findings.is_empty())
        .collect();
    let unknown: Vec<(String, String)> = list_unknown_sources(checked)
        .into_iter()
        .map(|(what, rules)| (escape_line(what), rules.join(", ")))
        .collect();
    let left_out: Vec<(String, String)> = not_asked(checked)
        .into_iter()
        .map(|(why, rules)| (escape_line(why), rules.join(", ")))
        .collect();
    let accepted: Vec<(String, String, String)> = checked
        .accepted
        .iter()
        .map(|one| {
            let rule = one.finding.rule.clone();
            (
                rule,
                escape_line(&format_subject(&one.finding)),
                escape_line(&one.reason),
            )
        })
        .collect();
    let remarks: Vec<String> = checked
        .remarks
        .iter()
        .map(|text| escape_line(text))
        .collect();
    render_page(
        "Check",
        STYLE,
        TEMPLATE,
        context! {
            found => format_result(checked),
            not_asked_title => NOT_ASKED,
            not_asked => left_out,
            scope => describe_scope(checked),
            services => Serde(list_services(checked)),
            without_rules_title => WITHOUT_RULES,
            without_rules => escape_line(&without_rules(checked)),
            groups => Serde(groups),
            unknown,
            accepted,
            remarks,
        },
    )
}

/// Returns the services that the check read, with their rules.
fn list_services(checked: &Checked) -> Vec<ServiceView> {
    let question = |rule: &Looked| QuestionView {
        rule: rule.rule.clone(),
        statement: escape_line(&rule.statement),
        outcome: escape_line(&describe_outcome(rule)),
        source: escape_line(rule.sources.first().map_or("", String::as_str)),
    };
    let service = |service: &Service| ServiceView {
        name: escape_line(&service.service),
        counts: counts_of_service(service),
        questions: checked
            .rules
            .iter()
            .filter(|rule| rule.service == service.service)
            .map(question)
            .collect(),
    };
    checked.services.iter().map(service).collect()
}

fn view_finding(finding: &Finding) -> FindingView {
    let all = |steps: &[String]| steps.iter().map(|step| escape_line(step)).collect();
    let (steps, undo, not_here) = match &finding.fix {
        Fix::Steps(remedy) => (all(&remedy.steps), all(&remedy.undo), None),
        Fix::NotHere(why) => (Vec::new(), Vec::new(), Some(escape_line(why))),
        Fix::AfterReading => (Vec::new(), Vec::new(), None),
    };
    FindingView {
        severity: finding.severity.name(),
        rule: finding.rule.clone(),
        about: escape_line(&format_subject(finding)),
        title: escape_line(&finding.title),
        text: escape_line(&finding.text),
        places: finding
            .places
            .iter()
            .map(|place| escape_line(&place.to_string()))
            .collect(),
        steps,
        undo,
        not_here,
    }
}
