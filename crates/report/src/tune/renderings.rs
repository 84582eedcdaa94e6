//! A notebook as text, Markdown and HTML, and the list of sessions.

use super::TuneView;
use super::notebook::{Notebook, NotebookSection, write_notebook};
use assay_render::html::render_page;
use assay_render::markdown::{self, escape_markdown};
use assay_render::table::render_table;
use assay_render::text::{escape_line, format_paragraph};
use assay_render::units::format_timestamp;
use assay_render::{Style, text};
use minijinja::context;

/// Renders the notebook for a terminal.
#[must_use]
pub fn render_tune_text(view: &TuneView<'_>, style: Style) -> String {
    let notebook = write_notebook(view);
    let columns = style.columns();
    let mut out = format!("{}\n", style.bold(&escape_line(&notebook.title)));
    for line in &notebook.lead {
        out.push_str(&format_paragraph(&escape_line(line), 0, columns));
    }
    for section in &notebook.sections {
        out.push('\n');
        out.push_str(&style.bold(&section.heading));
        out.push('\n');
        for paragraph in &section.paragraphs {
            out.push_str(&format_paragraph(&escape_line(paragraph), 2, columns));
        }
        out.push_str(&render_rows(section, columns));
        for (name, contents) in &section.files {
            if name != "command" {
                out.push_str(&format!("  {name}:\n"));
            }
            for line in contents.lines() {
                out.push_str(&format!("    {}\n", escape_line(line)));
            }
        }
    }
    out
}

/// Renders a table. A table of names and sentences becomes wrapped lines.
fn render_rows(section: &NotebookSection, columns: usize) -> String {
    if section.rows.is_empty() {
        return String::new();
    }
    let escape = |row: &Vec<String>| row.iter().map(|cell| escape_line(cell)).collect();
    let rows: Vec<Vec<String>> = section.rows.iter().map(escape).collect();
    if section.head.len() == 2 {
        let line = |row: &Vec<String>| text::format_named_value(&row[0], &row[1], 30, columns);
        return rows.iter().map(line).collect();
    }
    let sides = "l".repeat(section.head.len());
    render_table(2, &sides, &section.head, &rows)
}

/// Renders the notebook as Markdown, for a wiki.
#[must_use]
pub fn render_tune_markdown(view: &TuneView<'_>) -> String {
    let notebook = write_notebook(view);
    let mut out = format!("# {}\n\n", escape_markdown(&notebook.title));
    for line in &notebook.lead {
        out.push_str(&format!("{}\n\n", mark_code(line)));
    }
    for section in &notebook.sections {
        out.push_str(&format!("## {}\n\n", section.heading));
        for paragraph in &section.paragraphs {
            out.push_str(&format!("{}\n\n", mark_code(paragraph)));
        }
        if !section.rows.is_empty() {
            let cells = |row: &Vec<String>| -> Vec<String> {
                row.iter().map(|cell| escape_markdown(cell)).collect()
            };
            let rows: Vec<Vec<String>> = section.rows.iter().map(cells).collect();
            let sides = "l".repeat(section.head.len());
            out.push_str(&markdown::render_table(&section.head, &sides, rows));
            out.push('\n');
        }
        for (name, contents) in &section.files {
            if name != "command" {
                out.push_str(&format!("`{name}`:\n\n"));
            }
            out.push_str(&format!("```\n{contents}```\n\n"));
        }
    }
    out
}

/// Escapes a sentence as Markdown, and keeps text between backticks as code.
fn mark_code(sentence: &str) -> String {
    let parts = sentence.split('`').enumerate();
    let part = |(at, part): (usize, &str)| match at % 2 {
        0 => escape_markdown(part),
        _ => format!("`{}`", escape_line(part)),
    };
    parts.map(part).collect()
}

/// Renders the notebook as one self-contained page.
#[must_use]
pub fn render_tune_page(view: &TuneView<'_>) -> String {
    let Notebook {
        title,
        lead,
        sections,
    } = write_notebook(view);
    let section = |one: &NotebookSection| {
        let files = one.files.iter().map(|(name, text)| {
            let name = if name == "command" { "" } else { name };
            context! { name => name, text => text }
        });
        context! {
            heading => &one.heading,
            paragraphs => &one.paragraphs,
            head => &one.head,
            rows => &one.rows,
            files => files.collect::<Vec<_>>(),
        }
    };
    let sections: Vec<_> = sections.iter().map(section).collect();
    let values = context! { title => &title, lead => lead, sections => sections };
    render_page(&title, "", include_str!("notebook.html"), values)
}

/// Renders the list of sessions, newest first.
#[must_use]
pub fn render_tune_list(views: &[TuneView<'_>]) -> String {
    if views.is_empty() {
        return "nothing was tuned yet: `assay tune DIRECTORY --want GOAL` does\n".to_owned();
    }
    let row = |view: &TuneView<'_>| {
        let wants: Vec<String> = (view.record.plan.goal.wants.iter())
            .map(ToString::to_string)
            .collect();
        vec![
            view.id.to_string(),
            format_timestamp(view.record.started),
            escape_line(&view.subject()),
            escape_line(&wants.join(", ")),
            escape_line(&view.outcome()),
        ]
    };
    let rows: Vec<Vec<String>> = views.iter().map(row).collect();
    render_table(
        0,
        "rllll",
        &["session", "begun", "target", "wanted", "outcome"],
        &rows,
    )
}
