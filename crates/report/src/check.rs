//! Reports of a check: for people as text, Markdown and HTML; for programs as JSON, SARIF, JUnit, Prometheus text and
//! the output line of a monitoring plugin. Each format has its own module. The same findings give the same bytes.

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

/// What a report of a check is made from.
pub struct View<'a> {
    /// Result of the check: the findings, the rules and the services.
    pub checked: &'a Checked,
    /// Lowest severity of a finding that makes the check fail.
    pub fail_on: Severity,
    /// Returns a line of a file by path and line number; `None` if the file cannot be read.
    pub line: &'a dyn Fn(&str, usize) -> Option<String>,
}

/// Result of a check as JSON.
#[derive(Serialize, JsonSchema)]
pub struct Findings<'a> {
    schema: u32,
    /// Lowest severity of a finding that makes the check fail.
    fail_on: Severity,
    /// The worst severity among the violations; null without violations.
    worst: Option<Severity>,
    /// Findings that the user did not accept, the most urgent first.
    findings: Vec<Named<'a>>,
    /// Findings that the user accepted.
    accepted: Vec<AcceptedNamed<'a>>,
    /// Remarks on the whole check.
    remarks: &'a [String],
    /// All rules that were evaluated, with the number of objects that each applied to.
    rules: &'a [Looked],
    /// Rules that could not be evaluated remotely, with reasons; absent if there are none.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    not_asked: &'a [NotAsked],
    /// Services that were found and read, with the number of their rules.
    services: &'a [Service],
    /// Programs that run but for which assay has no rule.
    without_rules: &'a [WithoutRules],
    /// Whether no service with rules was found.
    nothing_read: bool,
}

/// A finding with the values by which it is identified.
#[derive(Serialize, JsonSchema)]
struct Named<'a> {
    /// Id of the rule, which is also the id of its advice page.
    rule: &'a str,
    domain: &'a str,
    /// Prefix of the facts of the object that the finding is about; empty for the machine as a whole.
    subject: String,
    severity: Severity,
    certainty: Certainty,
    title: &'a str,
    text: &'a str,
    /// Where the facts that support the finding come from.
    places: &'a [FactPlace],
    evidence: &'a [Seen],
    fix: &'a Fix,
    /// Id of the advice that `assay trial` can test on this machine; `None` if a measurement cannot decide the
    /// question.
    trial: Option<&'a str>,
    /// Result of the newest trial on this machine; absent without a trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'a Tried>,
    /// Identity of the finding. The same finding has the same fingerprint in all checks.
    fingerprint: String,
}

/// A finding that the user accepted, with the reason.
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

/// Returns the result of the check as a JSON document.
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

/// Groups of findings, in the order in which a report shows them: the most urgent first.
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

/// Returns the sources that could not be read, each with the rules that need it.
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

/// Describes the result of a trial on this machine, such as `tried here: no practical difference on /srv (2026-11-23;
/// …)`.
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

/// Formats the number of violations, such as `2 high, 1 low`; `nothing` without violations.
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

/// Describes what the check covered, so that a reader knows what `nothing found` refers to.
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

/// Formats the counts of a service, such as `4 asked, 2 found, 1 unknown`.
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

/// Formats each running program without rules, such as `named (DNS server)`.
pub(crate) fn without_rules(checked: &Checked) -> String {
    let programs = checked.without_rules.iter();
    let programs = programs.map(|one| format!("{} ({})", one.program, one.what));
    programs.collect::<Vec<_>>().join(", ")
}

/// Heading of the list that [`without_rules`] returns.
pub(crate) const WITHOUT_RULES: &str = "Running here, and assay has no rules for it";

/// Text that replaces "nothing found" if no service was read.
pub(crate) const NOTHING_READ: &str = "Nothing was asked: no service was found that assay has rules for, or its files could not be read";

/// Returns the object that a finding is about, for people; empty for the machine as a whole.
pub(crate) fn format_subject(finding: &Finding) -> String {
    match finding.subject.is_machine() {
        true => String::new(),
        false => finding.subject.label(),
    }
}

/// Returns the first source of the finding that is a line of a file.
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
