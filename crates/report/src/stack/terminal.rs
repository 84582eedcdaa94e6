//! A stack for a terminal: a tree on the left, settings on the right, or below where it is narrow.

use super::View;
use super::rows::rows;
use super::words::{from, heading, marks, settings_text, title, unknown};
use assay_render::Style;
use assay_render::text::{clean, left, width, wrap};

/// The left column is not wider than this part of the terminal.
const LEFT: usize = 2;
/// Settings need this many columns beside the tree.
const RIGHT: usize = 36;

/// The layers, the remarks on them, what is not known, and what to do next.
#[must_use]
pub fn terminal(view: &View<'_>, style: Style) -> String {
    let mut out = format!("{}\n\n", style.bold(&heading(view)));
    tree(view, &mut out, style);
    if !view.hints.is_empty() {
        out.push_str(&format!("\n{}\n", style.bold("Worth a look")));
        for (number, hint) in view.hints.iter().enumerate() {
            let layer = view.stack.layers.get(hint.layer);
            let name = layer.map(title).unwrap_or_default();
            let text = format!("{name}: {} ({}).", hint.text, hint.because);
            let mark = format!("{:>2} ", number + 1);
            style.paragraph(&mut out, &mark, 3, &clean(&text));
            let source = from(hint);
            for line in wrap(&clean(&source), style.columns().saturating_sub(3)) {
                out.push_str(&format!("   {}\n", style.dim(&line)));
            }
        }
    }
    let unknown = unknown(view);
    if !unknown.is_empty() {
        out.push_str(&format!("\n{}\n", style.bold("Not known")));
        for (layers, what) in unknown {
            style.paragraph(&mut out, " - ", 3, &format!("{layers}: {what}"));
        }
    }
    if !view.next.is_empty() {
        out.push_str(&format!("\n{}\n", style.bold("Next")));
        let column = view.next.iter().map(|(command, _)| width(command)).max();
        let column = column.unwrap_or(0) + 4;
        for (command, what) in view.next {
            match column + RIGHT <= style.columns() {
                true => {
                    let label = format!("  {command}");
                    style.paragraph(&mut out, &label, column, what);
                }
                false => {
                    out.push_str(&format!("  {command}\n"));
                    style.paragraph(&mut out, "", 6, what);
                }
            }
        }
    }
    out
}

fn tree(view: &View<'_>, out: &mut String, style: Style) {
    let rows = rows(view.stack);
    let names: Vec<String> = rows
        .iter()
        .map(|row| {
            let numbers = marks(view, row.at);
            let numbers: Vec<String> = numbers.iter().map(|n| format!("[{n}]")).collect();
            let layer = &view.stack.layers[row.at];
            let mut name = title(layer);
            for part in numbers {
                name.push(' ');
                name.push_str(&part);
            }
            name
        })
        .collect();
    let widest = rows
        .iter()
        .zip(&names)
        .map(|(row, name)| width(&row.lead()) + width(name))
        .max()
        .unwrap_or(0);
    let columns = style.columns();
    let beside = (widest + 2).min(columns / LEFT);
    let side_by_side = beside + RIGHT <= columns;
    for (row, name) in rows.iter().zip(&names) {
        let layer = &view.stack.layers[row.at];
        let settings = match row.again {
            true => "as above".to_owned(),
            false => settings_text(layer),
        };
        let (lead, margin) = (row.lead(), row.margin());
        let room = columns.saturating_sub(width(&lead)).max(20);
        let mut lines = wrap(name, room).into_iter();
        let first = lines.next().unwrap_or_default();
        let used = width(&lead) + width(&first);
        let bold = style.bold(&first);
        let mut texts: Vec<String> = Vec::new();
        let fits = side_by_side && used + 2 <= beside.max(columns - RIGHT);
        let column = beside.max(used + 2);
        if fits && !settings.is_empty() {
            texts = wrap(&settings, columns.saturating_sub(column).max(20));
        }
        out.push_str(&format!("{lead}{bold}"));
        let mut texts = texts.into_iter();
        if let Some(text) = texts.next() {
            out.push_str(&" ".repeat(column - used));
            out.push_str(&text);
        }
        out.push('\n');
        for line in lines {
            out.push_str(&format!("{margin}  {line}\n"));
        }
        for text in texts {
            out.push_str(&left(&margin, column));
            out.push_str(&text);
            out.push('\n');
        }
        if !fits && !settings.is_empty() {
            let indent = format!("{margin}   ");
            for text in wrap(&settings, columns.saturating_sub(width(&indent)).max(20)) {
                out.push_str(&format!("{indent}{text}\n"));
            }
        }
    }
}
