//! The terminal report of what makes a machine slow, which fits on one screen.

use super::answer_text::{
    SHOWN, format_heading, format_part, format_suspect_share, name_class, summarize_answer,
};
use assay_render::Style;
use assay_render::table::TableColumns;
use assay_render::text::escape_line;
use assay_why::{RankedSuspect, SlownessAnswer};

/// Renders the answer, the ranked suspects with their evidence, the classes of waiting, and the next commands.
#[must_use]
pub fn render_answer_text(answer: &SlownessAnswer, style: Style) -> String {
    let mut out = String::new();
    let head = format!(
        "{}: {:.0} s, {} samples",
        format_heading(answer),
        answer.seconds,
        answer.looks
    );
    style.write_paragraph(&mut out, "", 0, &style.bold(&escape_line(&head)));
    out.push('\n');
    for line in summarize_answer(answer) {
        style.write_paragraph(&mut out, "", 0, &line);
    }
    for (number, suspect) in answer.suspects.iter().take(SHOWN).enumerate() {
        out.push('\n');
        write_suspect(&mut out, number + 1, suspect, style);
    }
    let more = answer.suspects.len().saturating_sub(SHOWN);
    if more > 0 {
        out.push('\n');
        let titles: Vec<&str> = answer.suspects[SHOWN..]
            .iter()
            .map(|one| one.title.as_str())
            .collect();
        style.write_paragraph(
            &mut out,
            "",
            0,
            &format!("{more} more: {}.", titles.join("; ")),
        );
    }
    write_waiting(&mut out, answer, style);
    out.push_str(&format!("\n{}\n", style.bold("Figures")));
    for (name, text) in &answer.figures {
        style.write_paragraph(&mut out, &format!("  {name}"), 12, text);
    }
    if let Some(share) = answer.own_cpu {
        let text = format!("{:.1} % of one CPU for watching", share * 100.0);
        style.write_paragraph(&mut out, "  assay", 12, &text);
    }
    write_next(&mut out, answer, style);
    if !answer.missing.is_empty() {
        out.push_str(&format!("\n{}\n", style.bold("Not read")));
        for missing in answer.missing.iter().take(6) {
            style.write_paragraph(&mut out, " - ", 3, missing);
        }
        if answer.missing.len() > 6 {
            out.push_str(&format!("   and {} more\n", answer.missing.len() - 6));
        }
    }
    out
}

fn write_suspect(out: &mut String, number: usize, suspect: &RankedSuspect, style: Style) {
    let title = format!("{} ({})", suspect.title, format_suspect_share(suspect));
    style.write_paragraph(out, &format!("{number}. "), 3, &title);
    for evidence in &suspect.evidence {
        style.write_paragraph(out, "   - ", 5, evidence);
    }
    for against in &suspect.against {
        style.write_paragraph(out, "   - ", 5, &format!("against it: {against}"));
    }
}

fn write_waiting(out: &mut String, answer: &SlownessAnswer, style: Style) {
    let rows: Vec<[String; 4]> = answer
        .classes
        .iter()
        .take(6)
        .map(|class| {
            [
                format!("  {}", name_class(&class.class)),
                format!("{:.2}", class.tasks),
                format_part(class.tasks / answer.waiting.max(f64::MIN_POSITIVE)),
                format_part(class.explained),
            ]
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    let head = ["  Waiting for", "tasks", "share", "explained"].map(str::to_owned);
    let columns = TableColumns::fit("lrrr", std::iter::once(&head).chain(&rows));
    out.push_str(&format!("\n{}\n", style.bold(&columns.format_row(&head))));
    for row in &rows {
        out.push_str(&columns.format_row(row));
        out.push('\n');
    }
}

fn write_next(out: &mut String, answer: &SlownessAnswer, style: Style) {
    let mut commands: Vec<&str> = Vec::new();
    for suspect in answer.suspects.iter().take(SHOWN) {
        for command in suspect.next.iter().take(2) {
            if !commands.contains(&command.as_str()) {
                commands.push(command);
            }
        }
    }
    let quiet = ["assay check", "assay why --for 5m"];
    if commands.is_empty() {
        commands.extend(quiet);
    }
    out.push_str(&format!("\n{}\n", style.bold("Next")));
    for command in commands.iter().take(8) {
        out.push_str(&format!("  {command}\n"));
    }
}
