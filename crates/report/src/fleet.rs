//! Reports of many machines: findings grouped by rule, and changes of each machine.
//!
//! Names and texts of machines are untrusted: see [`assay_render::text::escape_line`].

mod figures;
mod html;
mod page;

pub use crate::check::numbers::{nagios_of, prometheus_of};
pub use figures::figures;
pub use html::html;
pub use page::checks_html;

use assay_model::drift::{Change, FigureChange, Kind};
use assay_model::finding::{Certainty, Checked, Finding, NotAsked, Severity};
use assay_model::{FactPlace, SCHEMA_VERSION};
use assay_render::Style;
use assay_render::text::escape_line;
use assay_render::units::format_plural;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Maximum number of names in one list. Additional names are only counted.
const NAMES: usize = 24;

/// A machine of a fleet check.
pub struct AskedMachine<'a> {
    /// Name of the machine in the inventory.
    pub name: &'a str,
    /// Result of checking the machine.
    pub answer: MachineAnswer<'a>,
}

/// What the check of one machine returned.
pub enum MachineAnswer<'a> {
    /// The machine was checked, with this result.
    Checked(&'a Checked),
    /// The machine was already checked under another name of the list, which is given.
    Same(&'a str),
    /// The check failed, with the kind of the error and its text.
    Failed(&'a str, &'a str),
}

/// A rule with the machines that violate it.
struct Row<'a> {
    severity: Severity,
    title: &'a str,
    machines: Vec<(&'a str, usize)>,
}

/// Renders the report of several machines for a terminal.
#[must_use]
pub fn terminal(all: &[AskedMachine<'_>], style: Style) -> String {
    let checked = list_checked(all);
    let mut out = String::new();
    let mut rules: BTreeMap<&str, Row<'_>> = BTreeMap::new();
    let mut unknown: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, found) in &checked {
        for finding in &found.findings {
            if finding.certainty == Certainty::Unknown {
                let names = unknown.entry(&finding.text).or_default();
                if names.last() != Some(name) {
                    names.push(name);
                }
                continue;
            }
            let row = rules.entry(&finding.rule).or_insert_with(|| Row {
                severity: finding.severity,
                title: &finding.title,
                machines: Vec::new(),
            });
            row.severity = row.severity.max(finding.severity);
            match row.machines.last_mut() {
                Some((last, count)) if last == name => *count += 1,
                _ => row.machines.push((name, 1)),
            }
        }
    }
    let mut rows: Vec<(&str, Row<'_>)> = rules.into_iter().collect();
    rows.sort_by_key(|(rule, row)| (std::cmp::Reverse((row.severity, row.machines.len())), *rule));
    let _ = writeln!(out, "{}", summarize_fleet(all, rows.len()));
    for severity in Severity::ALL {
        let mut of_it = rows
            .iter()
            .filter(|(_, row)| row.severity == severity)
            .peekable();
        if of_it.peek().is_some() {
            let _ = writeln!(out, "\n{}", style.bold(&capitalize(severity.name())));
        }
        for (rule, row) in of_it {
            let text = format!("{} ({rule})", escape_line(row.title));
            style.write_paragraph(&mut out, "", 2, &text);
            let names = row.machines.iter().map(|(name, count)| match count {
                1 => escape_line(name),
                many => format!("{} ({many} times)", escape_line(name)),
            });
            let many = count_machines(row.machines.len());
            style.write_paragraph(&mut out, "", 6, &format!("{many}: {}", list_names(names)));
        }
    }
    if !unknown.is_empty() {
        let _ = writeln!(out, "\n{}", style.bold("Not known"));
        let mut rows: Vec<_> = unknown.into_iter().collect();
        rows.sort_by_key(|(text, names)| (std::cmp::Reverse(names.len()), *text));
        for (text, names) in rows {
            style.write_paragraph(&mut out, "", 2, &escape_line(text));
            let many = count_machines(names.len());
            let names = names.into_iter().map(escape_line);
            style.write_paragraph(&mut out, "", 6, &format!("{many}: {}", list_names(names)));
        }
    }
    let accepted: Vec<String> = checked
        .iter()
        .filter(|(_, found)| !found.accepted.is_empty())
        .map(|(name, found)| format!("{} ({})", escape_line(name), found.accepted.len()))
        .collect();
    if !accepted.is_empty() {
        let _ = writeln!(out, "\n{}", style.bold("Accepted findings, by accept.toml"));
        style.write_paragraph(&mut out, "", 2, &list_names(accepted.into_iter()));
    }
    let remarks: std::collections::BTreeSet<&String> = checked
        .iter()
        .flat_map(|(_, found)| &found.remarks)
        .collect();
    for remark in remarks {
        style.write_paragraph(&mut out, "Note: ", 6, &escape_line(remark));
    }
    let mut not_asked: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for one in checked.iter().flat_map(|(_, found)| &found.not_asked) {
        *not_asked.entry((&one.why, &one.rule)).or_default() += 1;
    }
    if !not_asked.is_empty() {
        let _ = writeln!(out, "\n{}", style.bold(crate::check::NOT_ASKED));
        let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for ((why, rule), count) in not_asked {
            let rule = format!("{rule} ({})", count_machines(count));
            reasons.entry(why).or_default().push(rule);
        }
        for (why, rules) in reasons {
            let text = format!("{}: {}", escape_line(why), rules.join(", "));
            style.write_paragraph(&mut out, "", 2, &text);
        }
    }
    let failed: Vec<(&str, &str)> = all
        .iter()
        .filter_map(|one| match one.answer {
            MachineAnswer::Failed(_, why) => Some((one.name, why)),
            _ => None,
        })
        .collect();
    if !failed.is_empty() {
        let _ = writeln!(out, "\n{}", style.bold("Could not be asked"));
        for (name, why) in failed {
            // The error begins with the name that was passed to ssh.
            let (name, why) = (escape_line(name), escape_line(why));
            let text = match why.starts_with(&format!("{name}:")) {
                true => why,
                false => format!("{name}: {why}"),
            };
            style.write_paragraph(&mut out, "", 2, &text);
        }
    }
    let twice = all.iter().filter_map(|one| match one.answer {
        MachineAnswer::Same(other) => Some(format!(
            "{} is {}",
            escape_line(one.name),
            escape_line(other)
        )),
        _ => None,
    });
    let twice: Vec<String> = twice.collect();
    if !twice.is_empty() {
        let _ = writeln!(out, "\n{}", style.bold("Named twice, asked once"));
        style.write_paragraph(&mut out, "", 2, &twice.join(", "));
    }
    out
}

/// Formats the line that is printed as soon as a machine is checked: the number of findings, and the worst rules.
#[must_use]
pub fn line(one: &AskedMachine<'_>, style: Style) -> String {
    const RULES: usize = 3;
    let name = escape_line(one.name);
    let text = match one.answer {
        MachineAnswer::Checked(found) => {
            let mut rules: Vec<&str> = Vec::new();
            for finding in &found.findings {
                let is_violated = finding.certainty == Certainty::Violated;
                if is_violated && !rules.contains(&finding.rule.as_str()) {
                    rules.push(&finding.rule);
                }
            }
            let more = rules.len().saturating_sub(RULES);
            rules.truncate(RULES);
            let rules = match (rules.is_empty(), more) {
                (true, _) => String::new(),
                (false, 0) => format!(": {}", rules.join(", ")),
                (false, more) => format!(": {} and {more} more", rules.join(", ")),
            };
            format!("{}{rules}", crate::check::format_counts(found))
        }
        MachineAnswer::Same(other) => format!("is {}", escape_line(other)),
        // The text follows at the end, with the way out.
        MachineAnswer::Failed(kind, _) => format!("could not be asked ({kind})"),
    };
    let mut out = String::new();
    style.write_paragraph(&mut out, "", 4, &format!("{name}  {text}"));
    // Only continuation lines are indented.
    out.trim_start().to_owned()
}

fn list_checked<'a>(all: &'a [AskedMachine<'a>]) -> Vec<(&'a str, &'a Checked)> {
    all.iter()
        .filter_map(|one| match one.answer {
            MachineAnswer::Checked(found) => Some((one.name, found)),
            _ => None,
        })
        .collect()
}

fn summarize_fleet(all: &[AskedMachine<'_>], rules: usize) -> String {
    let count =
        |is: fn(&MachineAnswer<'_>) -> bool| all.iter().filter(|one| is(&one.answer)).count();
    let done = count(|answer| matches!(answer, MachineAnswer::Checked(_)));
    let failed = count(|answer| matches!(answer, MachineAnswer::Failed(..)));
    let mut text = format!("{}: {done} checked", count_machines(all.len()));
    if failed > 0 {
        let _ = write!(text, ", {failed} could not be asked");
    }
    let left_out = list_checked(all)
        .iter()
        .any(|(_, found)| !found.not_asked.is_empty());
    let found = match rules {
        // No machine was checked.
        0 if done == 0 => return format!("{text}."),
        0 if left_out => "Nothing was found among what can be asked from here.".to_owned(),
        0 => "Nothing was found.".to_owned(),
        1 => "1 rule is not followed.".to_owned(),
        many => format!("{many} rules are not followed."),
    };
    format!("{text}. {found}")
}

fn count_machines(count: usize) -> String {
    format_plural(count as u64, "machine", "machines")
}

fn capitalize(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

fn list_names(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.collect();
    match names.len().checked_sub(NAMES) {
        Some(more) if more > 0 => format!("{} and {more} more", names[..NAMES].join(", ")),
        _ => names.join(", "),
    }
}

/// Results of checking several machines.
#[derive(Serialize, schemars::JsonSchema)]
pub struct Document<'a> {
    schema: u32,
    /// Machines in the order in which the user listed them.
    machines: Vec<Entry<'a>>,
}

/// A machine with its findings, with the name of an equal machine, or with an error.
#[derive(Serialize, schemars::JsonSchema)]
struct Entry<'a> {
    /// Name of the machine in the inventory.
    name: &'a str,
    /// The worst severity among violations; null without violations.
    #[serde(skip_serializing_if = "Option::is_none")]
    worst: Option<Option<Severity>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    findings: Option<Vec<Line<'a>>>,
    /// Number of accepted findings, which are not in the list of findings; absent if zero.
    #[serde(skip_serializing_if = "is_zero")]
    accepted: usize,
    /// Rules that could not be evaluated remotely, with reasons; absent if there are none.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    not_asked: &'a [NotAsked],
    /// Name of another entry that is the same machine; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    same_as: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<MachineFault<'a>>,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Why a machine could not be checked.
#[derive(Serialize, schemars::JsonSchema)]
#[schemars(rename = "Fault")]
pub struct MachineFault<'a> {
    /// Kind of the error, as one word.
    pub kind: &'a str,
    /// Message of the error.
    pub reason: &'a str,
}

#[derive(Serialize, schemars::JsonSchema)]
struct Line<'a> {
    /// Identity of the finding. The same finding has the same fingerprint in all checks.
    fingerprint: String,
    /// Id of the advice page with the rule.
    rule: &'a str,
    subject: String,
    severity: Severity,
    certainty: Certainty,
    title: &'a str,
    text: &'a str,
    places: &'a [FactPlace],
}

/// Returns the results of several machines as a JSON document.
#[must_use]
pub fn json(all: &[AskedMachine<'_>]) -> Value {
    json!(Document {
        schema: SCHEMA_VERSION,
        machines: all.iter().map(build_entry).collect(),
    })
}

fn build_entry<'a>(one: &AskedMachine<'a>) -> Entry<'a> {
    let mut entry = Entry {
        name: one.name,
        worst: None,
        findings: None,
        accepted: 0,
        not_asked: &[],
        same_as: None,
        failed: None,
    };
    match one.answer {
        MachineAnswer::Checked(found) => {
            entry.worst = Some(found.worst());
            entry.findings = Some(found.findings.iter().map(line_of).collect());
            entry.accepted = found.accepted.len();
            entry.not_asked = &found.not_asked;
        }
        MachineAnswer::Same(other) => entry.same_as = Some(other),
        MachineAnswer::Failed(kind, reason) => entry.failed = Some(MachineFault { kind, reason }),
    }
    entry
}

fn line_of(finding: &Finding) -> Line<'_> {
    Line {
        fingerprint: finding.fingerprint(),
        rule: &finding.rule,
        subject: finding.subject.to_string(),
        severity: finding.severity,
        certainty: finding.certainty,
        title: &finding.title,
        text: &finding.text,
        places: &finding.places,
    }
}

/// Changes of one machine between two surveys.
pub struct Changed<'a> {
    /// Name of the machine.
    pub name: &'a str,
    /// Time of the first survey.
    pub from: Timestamp,
    /// Time of the second survey.
    pub to: Timestamp,
    /// Changes between the two surveys.
    pub changes: Vec<Change>,
    /// More precise times of changes, from surveys between the two. The key is the name of a change. The value is the
    /// last time with the old value and the first time with the new value.
    pub when: BTreeMap<String, [Timestamp; 2]>,
}

/// Formats the changes of the machines that have any; empty without changes.
#[must_use]
pub fn changes(all: &[Changed<'_>], style: Style) -> String {
    let mut out = String::new();
    for one in all.iter().filter(|one| !one.changes.is_empty()) {
        if !out.is_empty() {
            out.push('\n');
        }
        let name = style.bold(&escape_line(one.name));
        let _ = writeln!(
            out,
            "{name}  {} to {} UTC",
            format_minute(one.from),
            format_minute(one.to)
        );
        for change in &one.changes {
            let (sign, text) = describe_change(change);
            style.write_paragraph(&mut out, &format!("  {sign} "), 4, &escape_line(&text));
            let cause = change.cause.as_deref().unwrap_or("the cause is not known");
            style.write_paragraph(&mut out, "", 6, &escape_line(cause));
            if let Some(when) = one.when.get(&change.what) {
                style.write_paragraph(&mut out, "", 6, &format_interval(*when));
            }
        }
    }
    out
}

fn format_minute(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M").to_string()
}

fn format_interval([after, since]: [Timestamp; 2]) -> String {
    format!(
        "between {} and {} UTC",
        format_minute(after),
        format_minute(since)
    )
}

fn describe_change(change: &Change) -> (char, String) {
    let severity = change.severity.map_or("", Severity::name);
    let title = change.title.as_deref();
    let title = title.map_or_else(String::new, |title| format!(": {title}"));
    match (change.kind, &change.before, &change.after) {
        (Kind::FindingCame, ..) => ('!', format!("{severity} {}{title}", change.what)),
        (Kind::FindingGone, ..) => ('-', format!("gone: {severity} {}{title}", change.what)),
        (Kind::Fact, Some(before), Some(after)) => (
            '~',
            format!(
                "{}: {} → {}",
                change.what,
                shorten_text(before),
                shorten_text(after)
            ),
        ),
        (Kind::Fact, None, Some(after)) => {
            ('+', format!("{}: {}", change.what, shorten_text(after)))
        }
        (Kind::Fact, before, None) => {
            let before = before.as_deref().unwrap_or_default();
            ('-', format!("{}: {}", change.what, shorten_text(before)))
        }
    }
}

fn shorten_text(text: &str) -> String {
    const LONGEST: usize = 120;
    match text.chars().count() > LONGEST {
        true => text.chars().take(LONGEST).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// JSON document of changes.
#[derive(Serialize, schemars::JsonSchema)]
pub struct Changes<'a> {
    schema: u32,
    machines: Vec<Between<'a>>,
    /// Results of repeated plans that have a change point, from the stored runs.
    figures: &'a [FigureChange],
}

/// Changes of a machine between two times.
#[derive(Serialize, schemars::JsonSchema)]
struct Between<'a> {
    name: &'a str,
    from: Timestamp,
    to: Timestamp,
    changes: &'a [Change],
    /// More precise times of changes. The key is the name of a change. The value is the last time with the old value
    /// and the first time with the new value. Absent if `from` and `to` are as precise.
    when: &'a BTreeMap<String, [Timestamp; 2]>,
}

/// Returns the changes as a JSON document.
#[must_use]
pub fn changes_json(all: &[Changed<'_>], figures: &[FigureChange]) -> Value {
    let machines = all.iter().map(|one| Between {
        name: one.name,
        from: one.from,
        to: one.to,
        changes: &one.changes,
        when: &one.when,
    });
    json!(Changes {
        schema: SCHEMA_VERSION,
        machines: machines.collect(),
        figures,
    })
}

#[cfg(test)]
mod tests;
