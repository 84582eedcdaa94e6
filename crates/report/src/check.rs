//! What a check found: for people (text, Markdown, HTML) and for other programs (JSON, SARIF, JUnit,
//! a monitoring plugin's line, Prometheus). One file for each form; the same findings give the same
//! bytes.

mod coverage;
mod diff;
mod html;
mod junit;
mod markdown;
pub(crate) mod numbers;
mod sarif;
mod terminal;
#[cfg(test)]
mod tests;

pub use coverage::coverage;
pub use diff::{Change, CheckState, Difference, Document, diff, diff_text};
pub use html::html;
pub use junit::junit;
pub use markdown::markdown;
pub use numbers::{nagios, prometheus};
pub use sarif::sarif;
pub use terminal::terminal;

use assay_model::coverage::{Service, WithoutRules};
use assay_model::finding::{
    Certainty, Checked, Finding, Fix, Looked, NotAsked, Seen, Severity, Tried,
};
use assay_model::trial::Verdict;
use assay_model::{FactPlace, SCHEMA_VERSION};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// What is shown, and with what.
pub struct View<'a> {
    /// What was found.
    pub checked: &'a Checked,
    /// From which severity on a finding fails the check.
    pub fail_on: Severity,
    /// The line of a file, where it can be read.
    pub line: &'a dyn Fn(&str, usize) -> Option<String>,
}

/// What a check found.
#[derive(Serialize, JsonSchema)]
pub struct Findings<'a> {
    schema: u32,
    /// From which severity on a finding fails the check.
    fail_on: Severity,
    /// The worst severity among what is violated.
    worst: Option<Severity>,
    /// What counts, the most urgent first.
    findings: Vec<Named<'a>>,
    /// What the user accepted.
    accepted: Vec<AcceptedNamed<'a>>,
    /// What a reader must know of the whole check.
    remarks: &'a [String],
    /// All rules that were asked.
    rules: &'a [Looked],
    /// Rules among them that could not be asked from elsewhere, and why; left out where all were.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    not_asked: &'a [NotAsked],
    /// Services that were found and read, each with the number of its rules.
    services: &'a [Service],
    /// Programs that run here, and of which no rule speaks.
    without_rules: &'a [WithoutRules],
    /// Whether no service was found that any rule speaks of.
    nothing_read: bool,
}

/// A finding under the name by which it is known again.
#[derive(Serialize, JsonSchema)]
struct Named<'a> {
    /// Id of the page.
    rule: &'a str,
    domain: &'a str,
    /// What it is about, as its facts begin; empty for the machine as a whole.
    subject: String,
    severity: Severity,
    certainty: Certainty,
    title: &'a str,
    text: &'a str,
    /// Where what it rests on was read.
    places: &'a [FactPlace],
    evidence: &'a [Seen],
    fix: &'a Fix,
    /// Id of the advice whose trial would tell.
    trial: Option<&'a str>,
    /// What the newest trial of it on this machine said; left out while there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'a Tried>,
    /// The same in every check as long as it is the same finding.
    fingerprint: String,
}

/// What the user accepted, and why.
#[derive(Serialize, JsonSchema)]
struct AcceptedNamed<'a> {
    finding: Named<'a>,
    reason: &'a str,
    owner: Option<&'a str>,
    /// Until when: YYYY-MM-DD.
    expires: Option<&'a str>,
}

impl<'a> Named<'a> {
    fn of(finding: &'a Finding) -> Self {
        Self {
            rule: &finding.rule,
            domain: &finding.domain,
            subject: finding.subject.to_string(),
            severity: finding.severity,
            certainty: finding.certainty,
            title: &finding.title,
            text: &finding.text,
            places: &finding.places,
            evidence: &finding.evidence,
            fix: &finding.fix,
            trial: finding.trial.as_deref(),
            verdict: finding.verdict.as_ref(),
            fingerprint: finding.fingerprint(),
        }
    }
}

/// The document for programs.
#[must_use]
pub fn json(view: &View<'_>) -> Value {
    let accepted = view.checked.accepted.iter().map(|accepted| AcceptedNamed {
        finding: Named::of(&accepted.finding),
        reason: &accepted.reason,
        owner: accepted.owner.as_deref(),
        expires: accepted.expires.as_deref(),
    });
    json!(Findings {
        schema: SCHEMA_VERSION,
        fail_on: view.fail_on,
        worst: view.checked.worst(),
        findings: view.checked.findings.iter().map(Named::of).collect(),
        accepted: accepted.collect(),
        remarks: &view.checked.remarks,
        rules: &view.checked.rules,
        not_asked: &view.checked.not_asked,
        services: &view.checked.services,
        without_rules: &view.checked.without_rules,
        nothing_read: view.checked.nothing_read,
    })
}

/// Groups of findings in the order in which somebody should look at them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    First,
    Next,
    Later,
    NotHere,
    Unknown,
}

impl Group {
    pub(crate) const ALL: [Self; 5] = [
        Self::First,
        Self::Next,
        Self::Later,
        Self::NotHere,
        Self::Unknown,
    ];

    pub(crate) fn heading(self) -> &'static str {
        match self {
            Self::First => "Do this first",
            Self::Next => "Do this next",
            Self::Later => "When there is time",
            Self::NotHere => "Nothing can be done here",
            Self::Unknown => "Not known",
        }
    }

    fn of(finding: &Finding) -> Self {
        match (finding.certainty, &finding.fix, finding.severity) {
            (Certainty::Unknown, ..) => Self::Unknown,
            (_, Fix::NotHere(_), _) => Self::NotHere,
            (_, _, Severity::Critical | Severity::High) => Self::First,
            (_, _, Severity::Medium) => Self::Next,
            (_, _, Severity::Low | Severity::Info) => Self::Later,
        }
    }

    pub(crate) fn members(self, checked: &Checked) -> Vec<&Finding> {
        let all = checked.findings.iter();
        all.filter(|finding| Self::of(finding) == self).collect()
    }
}

/// What could not be read, each with the rules that would have to know it.
pub(crate) fn unknowns(checked: &Checked) -> Vec<(&str, Vec<&str>)> {
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    for finding in Group::Unknown.members(checked) {
        match found.iter_mut().find(|(text, _)| *text == finding.text) {
            Some((_, rules)) if rules.contains(&finding.rule.as_str()) => {}
            Some((_, rules)) => rules.push(&finding.rule),
            None => found.push((&finding.text, vec![&finding.rule])),
        }
    }
    found
}

/// Rules that were not asked, by the reason.
pub(crate) fn not_asked(checked: &Checked) -> Vec<(&str, Vec<&str>)> {
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    for one in &checked.not_asked {
        match found.iter_mut().find(|(why, _)| *why == one.why) {
            Some((_, rules)) => rules.push(&one.rule),
            None => found.push((&one.why, vec![&one.rule])),
        }
    }
    found
}

/// Stands above them.
pub(crate) const NOT_ASKED: &str = "Not asked from here: run assay check on the machine itself";

/// What a trial here said of the change: `tried here: no practical difference on /srv (2026-11-23; …)`.
pub(crate) fn verdict(tried: &Tried) -> String {
    let word = match tried.verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::NoPracticalDifference => "no practical difference",
        Verdict::Undecided => "undecided",
        Verdict::Unsafe => "unsafe",
    };
    let Tried {
        trial, day, target, ..
    } = tried;
    format!("tried here: {word} on {target} ({day}; `assay trial --show {trial}`)")
}

/// `2 high, 1 low`; `nothing` when nothing is violated.
pub(crate) fn counts(checked: &Checked) -> String {
    let counts: Vec<String> = Severity::ALL
        .into_iter()
        .map(|severity| (severity, checked.count(severity)))
        .filter(|(_, count)| *count > 0)
        .map(|(severity, count)| format!("{count} {}", severity.name()))
        .collect();
    match counts.is_empty() {
        true => "nothing".to_owned(),
        false => counts.join(", "),
    }
}

/// [`counts`], and that there are rules that were not asked: silence about them is not fine.
pub(crate) fn found(checked: &Checked) -> String {
    let found = match checked.nothing_read {
        true => NOTHING_READ.to_owned(),
        false => format!("Found: {}", counts(checked)),
    };
    match checked.not_asked.len() {
        0 => found,
        1 => format!("{found}; 1 rule was not asked"),
        many => format!("{found}; {many} rules were not asked"),
    }
}

/// How much was asked: `nothing found` means nothing in these questions.
pub(crate) fn scope(checked: &Checked) -> String {
    let asked: usize = checked.services.iter().map(|service| service.asked).sum();
    let services = match checked.services.len() {
        1 => "1 service".to_owned(),
        many => format!("{many} services"),
    };
    format!(
        "Asked: {asked} of {} questions, about {services}",
        checked.rules.len()
    )
}

/// `4 asked, 2 found, 1 unknown` of a service.
pub(crate) fn counts_of_service(service: &Service) -> String {
    let mut out = format!("{} asked, {} found", service.asked, service.found);
    for (count, what) in [
        (service.unknown, "unknown"),
        (service.not_asked, "not asked from here"),
    ] {
        if count > 0 {
            let _ = write!(out, ", {count} {what}");
        }
    }
    out
}

/// `named (DNS server)` for each program that runs here without rules.
pub(crate) fn without_rules(checked: &Checked) -> String {
    let programs = checked.without_rules.iter();
    let programs = programs.map(|one| format!("{} ({})", one.program, one.what));
    programs.collect::<Vec<_>>().join(", ")
}

/// Stands before them.
pub(crate) const WITHOUT_RULES: &str = "Running here, and assay has no rules for it";

/// Stands in place of "nothing found".
pub(crate) const NOTHING_READ: &str = "Nothing was asked: no service was found that assay has rules for, or its files could not be read";

/// What a finding is about, for people; the machine needs no name.
pub(crate) fn subject(finding: &Finding) -> String {
    match finding.subject.is_machine() {
        true => String::new(),
        false => finding.subject.label(),
    }
}

/// The first place that is a line of a file.
pub(crate) fn line_place(finding: &Finding) -> Option<(&str, usize, Option<assay_model::Span>)> {
    finding.places.iter().find_map(|place| match place {
        FactPlace::File {
            path,
            line: Some(line),
            span,
        } => Some((path.as_str(), *line, *span)),
        _ => None,
    })
}
