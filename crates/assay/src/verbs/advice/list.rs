//! Formats the catalogue as a list with one page of advice per line.

use super::{Entry, colour, standing};
use assay_advice::Applicability;
use assay_render::Style;
use assay_render::text::{escape_line, measure_width, pad_right, wrap_lines};
use std::fmt::Write as _;

/// Maximum width of the column of ids. A longer id shifts the rest of its line.
const WIDEST: usize = 24;

/// Minimum width of a title, in columns.
const LEAST_TITLE: usize = 16;

/// Formats the list in the given order, with a heading for each domain.
pub(super) fn list(entries: &[Entry<'_>], target: &str, style: Style) -> String {
    if entries.is_empty() {
        return "nothing in the catalogue says that: `assay advice` lists all\n".to_owned();
    }
    let columns = style.width.max(30);
    let ids = entries.iter().map(|entry| measure_width(&entry.advice.id));
    let id_width = ids.max().unwrap_or(0).min(WIDEST) + 2;
    let mut out = String::new();
    let mut domain = "";
    for entry in entries {
        let advice = entry.advice;
        if advice.domain != domain {
            let gap = if domain.is_empty() { "" } else { "\n" };
            domain = &advice.domain;
            let _ = writeln!(out, "{gap}{}", style.paint("1", domain));
        }
        let said = standing(advice);
        let here = here(entry);
        let lead = 2 + id_width + 12 + 6;
        if columns < lead + LEAST_TITLE {
            out.push_str(&narrow(entry, said, here, columns, style));
            continue;
        }
        let title = wrap_lines(&escape_line(&advice.title), columns.saturating_sub(lead));
        let mut id = escape_line(&advice.id);
        if measure_width(&id) + 2 > id_width {
            // A longer id gets a separate line.
            let _ = writeln!(out, "  {id}");
            id.clear();
        }
        for (number, line) in title.iter().enumerate() {
            if number == 0 {
                let _ = writeln!(
                    out,
                    "  {}{}{}{line}",
                    pad_right(&id, id_width),
                    style.paint(colour(said), &pad_right(said, 12)),
                    pad_right(here, 6)
                );
            } else {
                let _ = writeln!(out, "{}{line}", " ".repeat(lead));
            }
        }
    }
    let note = format!(
        "The third column says whether it applies to {}: yes, no, ? (a fact is missing), or – (it is checked or \
         explained, not tried: `assay check`). `assay advice ID` says why and how it is tested.",
        escape_line(target)
    );
    let _ = writeln!(out);
    for line in wrap_lines(&note, columns) {
        let _ = writeln!(out, "{}", style.paint("2", &line));
    }
    out
}

/// Maximum number of lines in the result of a search, including the note.
const SEARCH_LINES: usize = 20;

/// Formats the matches of a search in the given order, one per line.
pub(super) fn matches(entries: &[Entry<'_>], style: Style) -> String {
    if entries.is_empty() {
        return "no advice contains these words: `assay advice` lists all\n".to_owned();
    }
    let columns = style.width.max(30);
    let note_lines = 2;
    let shown = &entries[..entries.len().min(SEARCH_LINES - note_lines)];
    let ids = shown.iter().map(|entry| measure_width(&entry.advice.id));
    let id_width = ids.max().unwrap_or(0).min(columns / 2) + 2;
    let mut out = String::new();
    for entry in shown {
        let said = standing(entry.advice);
        let id = pad_right(&escape_line(&entry.advice.id), id_width);
        let lead = measure_width(&id) + 12;
        let room = columns.saturating_sub(lead);
        let title = wrap_lines(&escape_line(&entry.advice.title), room.max(LEAST_TITLE));
        let title = match title.as_slice() {
            _ if room < LEAST_TITLE => String::new(),
            [] => String::new(),
            [line] => line.clone(),
            [line, ..] => format!("{}…", line.chars().take(room - 1).collect::<String>()),
        };
        let line = format!(
            "{id}{}{title}",
            style.paint(colour(said), &pad_right(said, 12))
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
    let note = match entries.len() - shown.len() {
        0 => "One page: assay advice ID".to_owned(),
        more => format!("{more} more: add a word. One page: assay advice ID"),
    };
    let _ = writeln!(out, "\n{}", style.paint("2", &note));
    out
}

/// Formats an entry for a narrow terminal: the id on one line, then its standing and whether it applies, then the
/// title.
fn narrow(entry: &Entry<'_>, said: &str, here: &str, columns: usize, style: Style) -> String {
    let advice = entry.advice;
    let mut out = format!("  {}\n", escape_line(&advice.id));
    let _ = writeln!(out, "    {}, {here}", style.paint(colour(said), said));
    for line in wrap_lines(&escape_line(&advice.title), columns.saturating_sub(4)) {
        let _ = writeln!(out, "    {line}");
    }
    out
}

fn here(entry: &Entry<'_>) -> &'static str {
    match (&entry.here, &entry.advice.trial) {
        (Applicability::Not { .. }, _) => "no",
        (_, None) => "–",
        (Applicability::Applies { .. }, _) => "yes",
        (Applicability::Unknown { .. }, _) => "?",
    }
}
