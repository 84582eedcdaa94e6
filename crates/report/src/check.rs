//! Reports of a check: for people (text, Markdown, HTML) and for programs (JSON, SARIF, JUnit, a monitoring plugin's
//! line, Prometheus). One module for each format; the same findings give the same bytes.

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

/// Content of a report, with its options.
pub struct View<'a> {
    /// Result of the check.
    pub checked: &'a Checked,
    /// Least severity of a finding that fails the check.
    pub fail_on: Severity,
    /// Returns a line of a file, if it can be read.
    pub line: &'a dyn Fn(&str, usize) -> Option<String>,
}

/// Result of a check as JSON.
#[derive(Serialize, JsonSchema)]
pub struct Findings<'a> {
    schema: u32,
    /// Least severity of a finding that fails the check.
    fail_on: Severity,
    /// The worst severity among violations.
    worst: Option<Severity>,
    /// Findings that the user did not accept, the most urgent first.
    findings: Vec<Named<'a>>,
    /// Findings that the user accepted.
    accepted: Vec<AcceptedNamed<'a>>,
    /// Remarks on the whole check.
    remarks: &'a [String],
    /// All evaluated rules.
    rules: &'a [Looked],
    /// Rules that could not be evaluated remotely, with reasons; absent if there are none.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    not_asked: &'a [NotAsked],
    /// Services that were found and read, with the number of their rules.
    services: &'a [Service],
    /// Running programs without any rule.
    without_rules: &'a [WithoutRules],
    /// Whether no service with rules was found.
    nothing_read: bool,
}

/// A finding with its identity.
#[derive(Serialize, JsonSchema)]
struct Named<'a> {
    /// Id of the rule, also of its page in the catalogue.
    rule: &'a str,
    domain: &'a str,
    /// Subject as the prefix of its facts; empty for the machine as a whole.
    subject: String,
    severity: Severity,
    certainty: Certainty,
    title: &'a str,
    text: &'a str,
    /// Sources of the supporting facts.
    places: &'a [FactPlace],
    evidence: &'a [Seen],
    fix: &'a Fix,
    /// Id of the advice that `assay trial` can test here; `None` if a measurement cannot decide it.
    trial: Option<&'a str>,
    /// Result of the newest trial on this machine; absent without a trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'a Tried>,
    /// Identity of the finding, equal in all checks.
    fingerprint: String,
}

/// An accepted finding with the reason.
#[derive(Serialize, JsonSchema)]
struct AcceptedNamed<'a> {
    finding: Named<'a>,
    reason: &'a str,
    owner: Option<&'a str>,
    /// Last day of the acceptance: YYYY-MM-DD.
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

/// Returns the JSON document.
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

/// Groups of findings in the order in which the user should read them.
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

/// Returns the unreadable sources, each with the rules that need it.
pub(crate) fn list_unknown_sources(checked: &Checked) -> Vec<(&str, Vec<&str>)> {
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

/// Returns the rules that were not evaluated, grouped by reason.
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

/// Heading of the list that [`not_asked`] returns.
pub(crate) const NOT_ASKED: &str = "Not asked from here: run assay check on the machine itself";

/// Describes the result of a trial on this machine: `tried here: no practical difference on /srv
/// (2026-11-23; …)`.
pub(crate) fn describe_verdict(tried: &Tried) -> String {
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

/// Formats the number of violations: `2 high, 1 low`; `nothing` without violations.
pub(crate) fn format_counts(checked: &Checked) -> String {
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

/// Formats the counts of [`format_counts`], followed by the number of rules that were not evaluated.
pub(crate) fn format_result(checked: &Checked) -> String {
    let found = match checked.nothing_read {
        true => NOTHING_READ.to_owned(),
        false => format!("Found: {}", format_counts(checked)),
    };
    match checked.not_asked.len() {
        0 => found,
        1 => format!("{found}; 1 rule was not asked"),
        many => format!("{found}; {many} rules were not asked"),
    }
}

/// Describes the extent of the check, to which `nothing found` refers.
pub(crate) fn describe_scope(checked: &Checked) -> String {
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

/// Formats the counts of a service: `4 asked, 2 found, 1 unknown`.
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

/// Formats each running program without rules: `named (DNS server)`.
pub(crate) fn without_rules(checked: &Checked) -> String {
    let programs = checked.without_rules.iter();
    let programs = programs.map(|one| format!("{} ({})", one.program, one.what));
    programs.collect::<Vec<_>>().join(", ")
}

/// Heading of the list that [`without_rules`] returns.
pub(crate) const WITHOUT_RULES: &str = "Running here, and assay has no rules for it";

/// Replaces "nothing found" if no service was read.
pub(crate) const NOTHING_READ: &str = "Nothing was asked: no service was found that assay has rules for, or its files could not be read";

/// Returns the subject of a finding for people; empty for the machine.
pub(crate) fn format_subject(finding: &Finding) -> String {
    match finding.subject.is_machine() {
        true => String::new(),
        false => finding.subject.label(),
    }
}

/// Returns the first place that is a line of a file.
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
