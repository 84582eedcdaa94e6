//! Markdown as GitHub reads it.

use crate::text::clean;

/// Text from outside, so that Markdown and the HTML within it show it as it is.
#[must_use]
pub fn plain(text: &str) -> String {
    let mut out = String::new();
    for c in clean(text).chars() {
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

/// A table. `sides` has a letter for each column, `l` or `r`; the cells are Markdown already.
#[must_use]
pub fn table<C: AsRef<str>>(
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
        let text = table(&["a", "b"], "lr", [[plain("x|y"), "1".to_owned()]]);
        assert_eq!(text, "| a | b |\n|---|--:|\n| x\\|y | 1 |\n");
    }
}
