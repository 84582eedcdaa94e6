//! The terminal report of a stack: a tree on the left, and settings on the right, or below the tree in a narrow
//! terminal. Shared text is in `layer_text`.

use super::StackView;
use super::layer_text::{
    format_heading, format_hint_source, format_settings, layer_title, list_hint_numbers,
    list_unknown,
};
use super::tree_rows::build_rows;
use assay_render::Style;
use assay_render::text::{escape_line, measure_width, pad_right, wrap_lines};

/// The tree takes at most the terminal's width divided by this number.
const LEFT: usize = 2;
/// Number of columns that settings need to the right of the tree.
const RIGHT: usize = 36;

/// Renders the layers, the hints, the unknown facts, and the next steps.
#[must_use]
pub fn render_stack_text(view: &StackView<'_>, style: Style) -> String {
    let mut out = format!("{}\n\n", style.bold(&format_heading(view)));
    write_tree(view, &mut out, style);
    if !view.hints.is_empty() {
        out.push_str(&format!("\n{}\n", style.bold("Worth a look")));
        for (number, hint) in view.hints.iter().enumerate() {
            let layer = view.stack.layers.get(hint.layer);
            let name = layer.map(layer_title).unwrap_or_default();
            let text = format!("{name}: {} ({}).", hint.text, hint.because);
            let mark = format!("{:>2} ", number + 1);
            style.write_paragraph(&mut out, &mark, 3, &escape_line(&text));
            let source = format_hint_source(hint);
            for line in wrap_lines(&escape_line(&source), style.columns().saturating_sub(3)) {
                out.push_str(&format!("   {}\n", style.dim(&line)));
            }
        }
    }
    let unknown = list_unknown(view);
    if !unknown.is_empty() {
        out.push_str(&format!("\n{}\n", style.bold("Not known")));
        for (layers, what) in unknown {
            style.write_paragraph(&mut out, " - ", 3, &format!("{layers}: {what}"));
        }
    }
    if !view.next.is_empty() {
        out.push_str(&format!("\n{}\n", style.bold("Next")));
        let column = view
            .next
            .iter()
            .map(|(command, _)| measure_width(command))
            .max();
        let column = column.unwrap_or(0) + 4;
        for (command, what) in view.next {
            match column + RIGHT <= style.columns() {
                true => {
                    let label = format!("  {command}");
                    style.write_paragraph(&mut out, &label, column, what);
                }
                false => {
                    out.push_str(&format!("  {command}\n"));
                    style.write_paragraph(&mut out, "", 6, what);
                }
            }
        }
    }
    out
}

fn write_tree(view: &StackView<'_>, out: &mut String, style: Style) {
    let rows = build_rows(view.stack);
    let names: Vec<String> = rows
        .iter()
        .map(|row| {
            let numbers = list_hint_numbers(view, row.at);
            let numbers: Vec<String> = numbers.iter().map(|n| format!("[{n}]")).collect();
            let layer = &view.stack.layers[row.at];
            let mut name = layer_title(layer);
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
        .map(|(row, name)| measure_width(&row.name_prefix()) + measure_width(name))
        .max()
        .unwrap_or(0);
    let columns = style.columns();
    let beside = (widest + 2).min(columns / LEFT);
    let side_by_side = beside + RIGHT <= columns;
    for (row, name) in rows.iter().zip(&names) {
        let layer = &view.stack.layers[row.at];
        let settings = match row.again {
            true => "as above".to_owned(),
            false => format_settings(layer),
        };
        let (lead, margin) = (row.name_prefix(), row.line_prefix());
        let room = columns.saturating_sub(measure_width(&lead)).max(20);
        let mut lines = wrap_lines(name, room).into_iter();
        let first = lines.next().unwrap_or_default();
        let used = measure_width(&lead) + measure_width(&first);
        let bold = style.bold(&first);
        let mut texts: Vec<String> = Vec::new();
        let fits = side_by_side && used + 2 <= beside.max(columns - RIGHT);
        let column = beside.max(used + 2);
        if fits && !settings.is_empty() {
            texts = wrap_lines(&settings, columns.saturating_sub(column).max(20));
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
            out.push_str(&pad_right(&margin, column));
            out.push_str(&text);
            out.push('\n');
        }
        if !fits && !settings.is_empty() {
            let indent = format!("{margin}   ");
            for text in wrap_lines(
                &settings,
                columns.saturating_sub(measure_width(&indent)).max(20),
            ) {
                out.push_str(&format!("{indent}{text}\n"));
            }
        }
    }
}
