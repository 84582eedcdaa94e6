//! A check in numbers: one line for a monitoring plugin, and text for Prometheus.

use super::{View, counts, unknowns};
use assay_model::finding::Severity;
use std::fmt::Write as _;

/// One line as Nagios and Icinga read it (Monitoring Plugins Development Guidelines), and its exit
/// status: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.
#[must_use]
pub fn nagios(view: &View<'_>) -> (String, u8) {
    let checked = view.checked;
    let unknown = unknowns(checked).len();
    let (word, status) = match checked.worst().filter(|worst| *worst >= view.fail_on) {
        Some(Severity::Critical | Severity::High) => ("CRITICAL", 2),
        Some(_) => ("WARNING", 1),
        None if checked.has_unknown() => ("UNKNOWN", 3),
        None => ("OK", 0),
    };
    let data: Vec<String> = Severity::ALL
        .into_iter()
        .map(|severity| format!("{}={};;;0", severity.name(), checked.count(severity)))
        .chain([format!("unknown={unknown};;;0")])
        .collect();
    let first = checked.findings.first().filter(|_| status != 0);
    // A pipe begins the performance data, wherever it stands.
    let first = first.map_or_else(String::new, |finding| {
        let title = assay_render::text::escape_line(&finding.title).replace('|', "/");
        format!("; {}: {title}", finding.rule)
    });
    let not_asked = match checked.not_asked.len() {
        0 => String::new(),
        1 => "; 1 rule not asked".to_owned(),
        many => format!("; {many} rules not asked"),
    };
    let line = format!(
        "ASSAY {word} - {} found{first}{not_asked} | {}\n",
        counts(checked),
        data.join(" ")
    );
    (line, status)
}

/// Gauges in the text format of Prometheus, for the node exporter's directory of text files.
#[must_use]
pub fn prometheus(view: &View<'_>) -> String {
    let checked = view.checked;
    let mut out = String::from(
        "# HELP assay_check_findings Findings that are violated, by severity.\n\
         # TYPE assay_check_findings gauge\n",
    );
    for severity in Severity::ALL {
        let _ = writeln!(
            out,
            "assay_check_findings{{severity=\"{}\"}} {}",
            severity.name(),
            checked.count(severity)
        );
    }
    let gauges = [
        (
            "assay_check_not_asked",
            "Rules that were not asked, because the machine was looked at from elsewhere.",
            checked.not_asked.len(),
        ),
        (
            "assay_check_unknown",
            "Things that could not be read.",
            unknowns(checked).len(),
        ),
        (
            "assay_check_accepted",
            "Findings that somebody accepted.",
            checked.accepted.len(),
        ),
        (
            "assay_check_rules",
            "Rules that had something to look at.",
            checked.rules.iter().filter(|rule| rule.applied > 0).count(),
        ),
    ];
    for (name, help, value) in gauges {
        let _ = writeln!(
            out,
            "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}"
        );
    }
    out
}
