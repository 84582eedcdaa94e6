//! Formats a check as numbers: one line for a monitoring plugin, and text for Prometheus.

use super::{View, format_counts, list_unknown_sources};
use crate::fleet::{AskedMachine, MachineAnswer};
use assay_model::finding::{Checked, Finding, Severity};
use assay_render::units::format_plural;
use std::fmt::Write as _;

/// Returns one line for Nagios and Icinga (Monitoring Plugins Development Guidelines), and the exit status: 0 OK, 1
/// WARNING, 2 CRITICAL, 3 UNKNOWN.
#[must_use]
pub fn nagios(view: &View<'_>) -> (String, u8) {
    let checked = view.checked;
    let unknown = list_unknown_sources(checked).len();
    let (word, status) = choose_status(checked.worst(), view.fail_on, checked.has_unknown());
    let first = checked.findings.first().filter(|_| status != 0);
    let first = first.map_or_else(String::new, |finding| name_finding(finding, None));
    let not_asked = match checked.not_asked.len() {
        0 => String::new(),
        1 => "; 1 rule not asked".to_owned(),
        many => format!("; {many} rules not asked"),
    };
    let line = format!(
        "ASSAY {word} - {} found{first}{not_asked} | {}\n",
        format_counts(checked),
        format_performance_data(|severity| checked.count(severity), &[("unknown", unknown)])
    );
    (line, status)
}

/// Returns the line and the exit status for several machines. The worst machine decides the status. A machine that
/// could not be checked counts as UNKNOWN.
#[must_use]
pub fn nagios_of(all: &[AskedMachine<'_>], fail_on: Severity) -> (String, u8) {
    let checked: Vec<(&str, &Checked)> = checked_of(all).collect();
    let failed = failed_of(all).count();
    let worst = checked.iter().filter_map(|(_, found)| found.worst()).max();
    let has_unknown = failed > 0 || checked.iter().any(|(_, found)| found.has_unknown());
    let (word, status) = choose_status(worst, fail_on, has_unknown);
    let count = |severity| {
        checked
            .iter()
            .map(|(_, found)| found.count(severity))
            .sum::<usize>()
    };
    let found: Vec<String> = Severity::ALL
        .into_iter()
        .filter(|severity| count(*severity) > 0)
        .map(|severity| format!("{} {}", count(severity), severity.name()))
        .collect();
    let found = match found.is_empty() {
        true => "nothing".to_owned(),
        false => found.join(", "),
    };
    let worst_finding = checked
        .iter()
        .filter(|(_, found)| found.worst() == worst && worst.is_some())
        .find_map(|(name, found)| Some((name, found.findings.first()?)));
    let first = match (status, worst_finding, failed_of(all).next()) {
        (1 | 2, Some((name, finding)), _) => name_finding(finding, Some(name)),
        (3, _, Some((name, why))) => format!("; {}: {}", replace_pipes(name), replace_pipes(why)),
        _ => String::new(),
    };
    let not_reached = match failed {
        0 => String::new(),
        some => format!(", {some} could not be asked"),
    };
    let unknown = checked
        .iter()
        .map(|(_, found)| list_unknown_sources(found).len())
        .sum();
    let line = format!(
        "ASSAY {word} - {} checked{not_reached}: {found} found{first} | {}\n",
        format_plural(checked.len() as u64, "machine", "machines"),
        format_performance_data(
            count,
            &[
                ("unknown", unknown),
                ("machines", checked.len()),
                ("failed", failed)
            ]
        )
    );
    (line, status)
}

fn choose_status(
    worst: Option<Severity>,
    fail_on: Severity,
    has_unknown: bool,
) -> (&'static str, u8) {
    match worst.filter(|worst| *worst >= fail_on) {
        Some(Severity::Critical | Severity::High) => ("CRITICAL", 2),
        Some(_) => ("WARNING", 1),
        None if has_unknown => ("UNKNOWN", 3),
        None => ("OK", 0),
    }
}

/// Replaces pipe characters, because a pipe begins the performance data.
fn replace_pipes(text: &str) -> String {
    assay_render::text::escape_line(text).replace('|', "/")
}

fn name_finding(finding: &Finding, machine: Option<&str>) -> String {
    let machine = machine.map_or_else(String::new, |name| format!("{}: ", replace_pipes(name)));
    format!(
        "; {machine}{}: {}",
        finding.rule,
        replace_pipes(&finding.title)
    )
}

/// Formats the performance data at the end of a plugin's line.
fn format_performance_data(count: impl Fn(Severity) -> usize, more: &[(&str, usize)]) -> String {
    let counts = Severity::ALL
        .into_iter()
        .map(|severity| (severity.name(), count(severity)));
    let all = counts.chain(more.iter().copied());
    let all: Vec<String> = all
        .map(|(name, count)| format!("{name}={count};;;0"))
        .collect();
    all.join(" ")
}

/// Formats a check as gauges in the text format of Prometheus, for the textfile directory of the node exporter.
#[must_use]
pub fn prometheus(view: &View<'_>) -> String {
    format_gauges(&[(String::new(), view.checked)])
}

/// Formats the gauges of several machines. Each gauge has the machine's name as a label. Another gauge shows whether a
/// machine could be checked.
#[must_use]
pub fn prometheus_of(all: &[AskedMachine<'_>]) -> String {
    let label = |name: &str| {
        let name = assay_render::text::escape_line(name);
        format!(
            "machine=\"{}\"",
            name.replace('\\', "\\\\").replace('"', "\\\"")
        )
    };
    let checked: Vec<(String, &Checked)> = checked_of(all)
        .map(|(name, found)| (label(name), found))
        .collect();
    let mut out = format_gauge_head("assay_check_up", "Whether the machine could be asked.");
    let mut up: Vec<(&str, u8)> = checked_of(all).map(|(name, _)| (name, 1)).collect();
    up.extend(failed_of(all).map(|(name, _)| (name, 0)));
    for (name, value) in up {
        let _ = writeln!(out, "assay_check_up{{{}}} {value}", label(name));
    }
    out + &format_gauges(&checked)
}

fn format_gauge_head(name: &str, help: &str) -> String {
    format!("# HELP {name} {help}\n# TYPE {name} gauge\n")
}

/// Formats the gauges of checks with their labels.
fn format_gauges(all: &[(String, &Checked)]) -> String {
    type Count = fn(&Checked) -> usize;
    let mut out = format_gauge_head(
        "assay_check_findings",
        "Findings that are violated, by severity.",
    );
    for (label, checked) in all {
        let comma = if label.is_empty() { "" } else { "," };
        for severity in Severity::ALL {
            let _ = writeln!(
                out,
                "assay_check_findings{{{label}{comma}severity=\"{}\"}} {}",
                severity.name(),
                checked.count(severity)
            );
        }
    }
    let gauges: [(&str, &str, Count); 4] = [
        (
            "assay_check_not_asked",
            "Rules that were not asked, because the machine was looked at from elsewhere.",
            |checked| checked.not_asked.len(),
        ),
        (
            "assay_check_unknown",
            "Things that could not be read.",
            |checked| list_unknown_sources(checked).len(),
        ),
        (
            "assay_check_accepted",
            "Findings that somebody accepted.",
            |checked| checked.accepted.len(),
        ),
        (
            "assay_check_rules",
            "Rules that had something to look at.",
            |checked| checked.rules.iter().filter(|rule| rule.applied > 0).count(),
        ),
    ];
    for (name, help, count) in gauges {
        out += &format_gauge_head(name, help);
        for (label, checked) in all {
            let label = match label.is_empty() {
                true => String::new(),
                false => format!("{{{label}}}"),
            };
            let _ = writeln!(out, "{name}{label} {}", count(checked));
        }
    }
    out
}

fn checked_of<'a>(all: &'a [AskedMachine<'a>]) -> impl Iterator<Item = (&'a str, &'a Checked)> {
    all.iter().filter_map(|one| match one.answer {
        MachineAnswer::Checked(found) => Some((one.name, found)),
        _ => None,
    })
}

fn failed_of<'a>(all: &'a [AskedMachine<'a>]) -> impl Iterator<Item = (&'a str, &'a str)> {
    all.iter().filter_map(|one| match one.answer {
        MachineAnswer::Failed(_, why) => Some((one.name, why)),
        _ => None,
    })
}
