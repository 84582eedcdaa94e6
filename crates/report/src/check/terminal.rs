//! Renders a check for a terminal, grouped by urgency.

use super::{
    Group, NOT_ASKED, View, WITHOUT_RULES, counts_of_service, describe_scope, describe_verdict,
    format_result, format_subject, line_place, list_unknown_sources, not_asked, without_rules,
};
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use assay_model::coverage::Service;
use assay_model::finding::{Accepted, Checked, Finding, Fix, Remedy, Severity};
use assay_model::{FactPlace, Span};
use assay_render::Style;
use assay_render::text::{escape_line, wrap_lines};
use std::fmt::Write as _;

/// Maximum width of a line in columns, because longer lines are hard to read.
const WIDEST: usize = 100;
/// Maximum number of lines for one finding at 80 columns. A finding with a long title or text may need more.
const MOST_LINES: usize = 12;
/// Number of columns by which the title and the text of a finding are indented.
const INDENT: usize = 2;
/// Maximum number of characters of a value in a list of evidence.
const LONGEST_VALUE: usize = 60;

/// Renders the whole report of a check for a terminal.
#[must_use]
pub fn terminal(view: &View<'_>, style: Style) -> String {
    let style = Style {
        width: style.columns().min(WIDEST),
        ..style
    };
    let checked = view.checked;
    let mut out = String::new();
    let unknown = list_unknown_sources(checked);
    let found = format_result(checked);
    let mut head = format!("{found}. {}.", describe_scope(checked));
    if !unknown.is_empty() {
        let _ = write!(
            head,
            " {} could not be read.",
            count_findings(unknown.len())
        );
    }
    style.write_paragraph(&mut out, "", 0, &head);
    write_services(&mut out, style, checked);
    for group in Group::ALL {
        let members = group.members(checked);
        if members.is_empty() {
            continue;
        }
        let _ = writeln!(out, "\n{}", style.bold(group.heading()));
        match group {
            Group::Unknown => {
                for (what, rules) in &unknown {
                    style.write_paragraph(&mut out, "  - ", 4, &escape_line(what));
                    let rules = format!("asked by {}", rules.join(", "));
                    style.write_paragraph(&mut out, "", 4, &rules);
                }
            }
            _ => members
                .into_iter()
                .for_each(|finding| write_finding(&mut out, view, style, finding)),
        }
    }
    if !checked.not_asked.is_empty() {
        let _ = writeln!(out, "\n{}", style.bold(NOT_ASKED));
        for (why, rules) in not_asked(checked) {
            let text = format!("{}: {}", escape_line(why), rules.join(", "));
            style.write_paragraph(&mut out, "  - ", 4, &text);
        }
    }
    write_accepted(&mut out, style, &checked.accepted);
    if !checked.remarks.is_empty() {
        let _ = writeln!(
            out,
            "\n{}",
            style.bold("What is accepted, and is not in order")
        );
        for remark in &checked.remarks {
            style.write_paragraph(&mut out, "  - ", 4, &escape_line(remark));
        }
    }
    out
}

/// Writes the checked services, and running programs without rules.
fn write_services(out: &mut String, style: Style, checked: &Checked) {
    let words = |one: &&Service| format!("{}: {}", one.service, counts_of_service(one));
    let (with, without): (Vec<&Service>, Vec<&Service>) =
        checked.services.iter().partition(|one| one.found > 0);
    // Each service with findings has a line; the others follow in one paragraph.
    for one in &with {
        style.write_paragraph(out, "  ", 2, &escape_line(&words(one)));
    }
    if !without.is_empty() {
        let counts = |one: &&Service| counts_of_service(one).replacen(", 0 found", "", 1);
        let all: Vec<String> = without
            .iter()
            .map(|one| format!("{} ({})", one.service, counts(one)))
            .collect();
        let text = format!("Nothing found: {}.", all.join(", "));
        style.write_paragraph(out, "  ", 2, &escape_line(&text));
    }
    if !checked.without_rules.is_empty() {
        let text = format!("{WITHOUT_RULES}: {}.", without_rules(checked));
        style.write_paragraph(out, "", 0, &escape_line(&text));
    }
}

fn count_findings(count: usize) -> String {
    match count {
        1 => "1 thing".to_owned(),
        count => format!("{count} things"),
    }
}

fn write_finding(out: &mut String, view: &View<'_>, style: Style, finding: &Finding) {
    let colour = match finding.severity {
        Severity::Critical | Severity::High => "1;31",
        Severity::Medium => "1;33",
        Severity::Low | Severity::Info => "1;36",
    };
    let about = match format_subject(finding) {
        about if about.is_empty() => String::new(),
        about => format!("  {}", escape_line(&about)),
    };
    let name = style.paint(colour, finding.severity.name());
    let begin = out.len();
    let _ = writeln!(out, "\n{name}  {}{about}", style.dim(&finding.rule));
    let mut title = String::new();
    style.write_paragraph(&mut title, "", INDENT, &escape_line(&finding.title));
    for line in title.lines() {
        let _ = writeln!(out, "{}", style.bold(line));
    }
    write_place(out, view, style, finding);
    style.write_paragraph(out, "", INDENT, &escape_line(&finding.text));
    let mut test = String::new();
    if let Some(id) = &finding.trial {
        let words = match &finding.verdict {
            None => format!("assay trial {id} (untested here: the page says what it measures)"),
            Some(tried) => escape_line(&describe_verdict(tried)),
        };
        style.write_paragraph(&mut test, "  Test: ", 8, &words);
    }
    // The line before the finding is empty.
    let used = out[begin..].lines().count() - 1 + test.lines().count();
    match &finding.fix {
        Fix::Steps(remedy) => {
            write_fix(out, style, finding, remedy, MOST_LINES.saturating_sub(used))
        }
        Fix::NotHere(why) => style.write_paragraph(out, "  Here: ", 8, &escape_line(why)),
        Fix::AfterReading => {}
    }
    out.push_str(&test);
}

/// Writes how to fix a finding, in about `room` lines. If not all steps fit, the command that shows all steps replaces
/// the others.
fn write_fix(out: &mut String, style: Style, finding: &Finding, remedy: &Remedy, room: usize) {
    let (mut todo, mut undo, mut by_assay) = (String::new(), String::new(), String::new());
    write_steps(&mut todo, style, "  Do:   ", &remedy.steps);
    write_steps(&mut undo, style, "  Undo: ", &remedy.undo);
    // All others are to be done by hand.
    if !remedy.edits.is_empty() {
        let words = format!("assay check --fix {} (shows the lines first)", finding.rule);
        style.write_paragraph(&mut by_assay, "  Fix:  ", 8, &words);
    }
    let of_assay = by_assay.lines().count();
    if todo.lines().count() + undo.lines().count() + of_assay > room {
        // A fix by assay is undone by assay.
        let short = remedy.undo.first().map(|first| vec![first.clone()]);
        undo.clear();
        if remedy.edits.is_empty() {
            write_steps(&mut undo, style, "  Undo: ", &short.unwrap_or_default());
        }
        if undo.lines().count() > 2 {
            undo.clear();
        }
    }
    let left = room.saturating_sub(undo.lines().count() + of_assay).max(3);
    let rows: Vec<&str> = todo.lines().collect();
    if rows.len() <= left {
        out.push_str(&todo);
    } else {
        // A step that does not fit is left out whole, so that no command is cut; the first one always stays.
        let starts = |row: &&str| row.get(8..10) == Some("- ");
        let ends = (1..rows.len())
            .filter(|at| starts(&rows[*at]))
            .chain([rows.len()]);
        let fits = ends
            .clone()
            .take_while(|end| *end < left)
            .last()
            .or_else(|| ends.clone().next());
        let shown = fits.unwrap_or(rows.len());
        for row in &rows[..shown] {
            let _ = writeln!(out, "{row}");
        }
        if shown < rows.len() {
            let words = format!("more: assay check --markdown --only {}", finding.rule);
            style.write_paragraph(out, "        ", 8, &words);
        }
    }
    out.push_str(&undo);
    out.push_str(&by_assay);
}

fn write_steps(out: &mut String, style: Style, label: &str, steps: &[String]) {
    for (at, step) in steps.iter().enumerate() {
        let label = if at == 0 { label } else { "" };
        // Commands must stay copyable: they are broken between words only.
        let lines = wrap_lines(&escape_line(step), style.columns().saturating_sub(10));
        for (row, line) in lines.iter().enumerate() {
            let lead = match (row, label.is_empty()) {
                (0, false) => format!("{label}- "),
                (0, true) => "        - ".to_owned(),
                _ => " ".repeat(10),
            };
            let _ = writeln!(out, "{lead}{line}");
        }
    }
}

/// Writes the guilty line, with the statement marked that causes the finding. Without a line, writes the source and its
/// value.
fn write_place(out: &mut String, view: &View<'_>, style: Style, finding: &Finding) {
    let marked = line_place(finding).and_then(|(path, number, span)| {
        let line = (view.line)(path, number)?;
        write_snippet(style, path, number, &line, span)
    });
    match marked {
        Some(text) => out.push_str(&text),
        None => {
            for seen in finding.evidence.iter().take(3) {
                let value = match &seen.value {
                    serde_json::Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                let mut value = escape_line(&value);
                if value.chars().count() > LONGEST_VALUE {
                    value = value.chars().take(LONGEST_VALUE).collect::<String>() + "…";
                }
                let name = seen
                    .key
                    .rsplit('.')
                    .next()
                    .unwrap_or(&seen.key)
                    .replace('_', " ");
                let words = format!("{}: {name} = {value}", shorten_place(&seen.place));
                style.write_paragraph(out, "  --> ", 6, &escape_line(&words));
            }
        }
    }
}

/// Shortens a long command to its first words.
fn shorten_place(place: &FactPlace) -> String {
    match place {
        FactPlace::Command { argv, how } if argv.len() > 3 => {
            let how = how
                .as_ref()
                .map_or_else(String::new, |how| format!(" ({how})"));
            format!("{} …{how}", argv[..2].join(" "))
        }
        place => place.to_string(),
    }
}

fn write_snippet(
    style: Style,
    path: &str,
    number: usize,
    line: &str,
    span: Option<Span>,
) -> Option<String> {
    let line = escape_line(&line.replace('\t', " "));
    if line.trim().is_empty() {
        return None;
    }
    let begin = span.map_or(0, |span| span.column.saturating_sub(1));
    let end = span
        .map_or(line.len(), |span| begin + span.length)
        .min(line.len());
    let marked = match line.get(begin..end) {
        Some(text) if !text.trim().is_empty() => begin..begin + text.trim_end().len(),
        _ => 0..line.len(),
    };
    let path = escape_line(path);
    let snippet = Snippet::source(line.as_str())
        .line_start(number)
        .path(path.as_str())
        .annotation(AnnotationKind::Primary.span(marked));
    let renderer = match style.color {
        true => Renderer::styled(),
        false => Renderer::plain(),
    };
    let group = annotate_snippets::Group::with_level(Level::WARNING).element(snippet);
    let text = renderer
        .term_width(style.columns().saturating_sub(INDENT))
        .render(&[group]);
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    Some(lines.map(|line| format!("  {line}\n")).collect())
}

fn write_accepted(out: &mut String, style: Style, accepted: &[Accepted]) {
    if accepted.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{}", style.bold("Accepted"));
    for one in accepted {
        let finding = &one.finding;
        let mut words = format!("{} {}", finding.severity.name(), finding.rule);
        let about = format_subject(finding);
        if !about.is_empty() {
            let _ = write!(words, " {about}");
        }
        let _ = write!(words, ": {}", one.reason);
        if let Some(owner) = &one.owner {
            let _ = write!(words, " ({owner})");
        }
        if let Some(day) = &one.expires {
            let _ = write!(words, ", until {day}");
        }
        style.write_paragraph(out, "  - ", 4, &escape_line(&words));
    }
}
