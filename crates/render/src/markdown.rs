//! GitHub-flavoured Markdown: escaped text and tables. The Markdown of each report is in
//! `assay-report`.

use crate::text::escape_line;

/// Escapes foreign text so that Markdown, and HTML within Markdown, shows it literally.
#[must_use]
pub fn escape_markdown(text: &str) -> String {
    let mut out = String::new();
    for c in escape_line(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '!' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// Renders a table. `sides` contains a letter for the alignment of each column: `l` for left, `r` for right. The cells
/// must already be Markdown.
#[must_use]
pub fn render_table<C: AsRef<str>>(
    head: &[&str],
    sides: &str,
    rows: impl IntoIterator<Item = impl IntoIterator<Item = C>>,
) -> String {
    let mut out = format!("| {} |\n|", head.join(" | "));
    out.extend(sides.chars().map(|side| match side {
        'r' => "--:|",
        _ => "---|",
    }));
    out.push('\n');
    for row in rows {
        out.push('|');
        for cell in row {
            out.push(' ');
            out.push_str(cell.as_ref());
            out.push_str(" |");
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_rule_for_every_column_and_no_cell_ends_it() {
        let text = render_table(
            &["a", "b"],
            "lr",
            [[escape_markdown("x|y"), "1".to_owned()]],
        );
        assert_eq!(text, "| a | b |\n|---|--:|\n| x\\|y | 1 |\n");
    }
}
