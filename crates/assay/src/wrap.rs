//! Text broken into lines, for what verbs say themselves.

/// Columns of a line.
const WIDTH: usize = 80;

/// Lines of at most 80 columns, each indented. Longer words stay whole, so that a path can be copied,
/// and so do words joined by a no-break space.
pub fn wrap(text: &str, indent: usize) -> String {
    let lead = " ".repeat(indent);
    let mut out = lead.clone();
    let mut column = indent;
    for word in text.split([' ', '\n']).filter(|word| !word.is_empty()) {
        let length = word.chars().count();
        if column > indent && column + 1 + length > WIDTH {
            out.push('\n');
            out.push_str(&lead);
            column = indent;
        } else if column > indent {
            out.push(' ');
            column += 1;
        }
        out.push_str(&word.replace('\u{a0}', " "));
        column += length;
    }
    out
}

/// The same with the end of the last line.
pub fn paragraph(text: &str, indent: usize) -> String {
    wrap(text, indent) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_longer_than_a_terminal_but_one_long_word() {
        let path = "/srv/".repeat(20);
        let text = format!("{} {path} 95\u{a0}% of\nall", "word ".repeat(30));
        let wrapped = paragraph(&text, 4);
        let long: Vec<&str> = wrapped.lines().filter(|line| line.len() > WIDTH).collect();
        assert_eq!(long, [format!("    {path}")]);
        assert!(wrapped.ends_with("95 % of all\n"), "{wrapped}");
        assert!(wrapped.lines().all(|line| line.starts_with("    ")));
    }
}
