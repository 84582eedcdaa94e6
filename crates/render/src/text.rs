//! Makes foreign text safe to show, and arranges text in columns. Formatting of figures is in [`crate::units`].

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Returns whether a character is invisible or changes how other characters are shown. These are control characters,
/// direction marks and overrides (Unicode TR 36, section 2.11), zero-width characters and line separators.
pub(crate) fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00ad}' | '\u{061c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Escapes foreign text to one line. Deceptive characters are written as in Rust: a newline becomes `\n`, a
/// right-to-left override becomes `\u{202e}`.
#[must_use]
pub fn escape_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_deceptive(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Escapes foreign text to one line of at most `most` characters. An ellipsis marks that the text was cut.
#[must_use]
pub fn shorten_line(text: &str, most: usize) -> String {
    // Cut first: a megabyte takes long to escape.
    let start: String = text.chars().take(most + 1).collect();
    let line = escape_line(&start);
    match line.chars().count() > most {
        true => {
            let kept = line.chars().take(most.saturating_sub(1));
            kept.chain(['…']).collect()
        }
        false => line,
    }
}

/// Escapes foreign text of several lines. Like [`escape_line`], but keeps newlines.
#[must_use]
pub fn escape_lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(escape_line).collect();
    lines.join("\n")
}

/// Measures how many columns a text takes on a terminal.
#[must_use]
pub fn measure_width(text: &str) -> usize {
    text.width()
}

/// Right-aligns a text: pads it with spaces on the left to `columns`.
#[must_use]
pub fn pad_left(text: &str, columns: usize) -> String {
    format!(
        "{}{text}",
        " ".repeat(columns.saturating_sub(measure_width(text)))
    )
}

/// Left-aligns a text: pads it with spaces on the right to `columns`.
#[must_use]
pub fn pad_right(text: &str, columns: usize) -> String {
    format!(
        "{text}{}",
        " ".repeat(columns.saturating_sub(measure_width(text)))
    )
}

/// Wraps text at spaces and newlines into lines of at most `columns` columns. Breaks a longer word anywhere. A percent
/// sign stays with its number, and words that are joined by a no-break space stay together. Returns at least one line.
#[must_use]
pub fn wrap_lines(text: &str, columns: usize) -> Vec<String> {
    break_lines(text, columns, true)
}

/// Wraps text like [`wrap_lines`] and indents every line. Keeps longer words whole, so that a path can be copied. There
/// is no newline at the end.
#[must_use]
pub fn wrap_indented(text: &str, indent: usize, columns: usize) -> String {
    let lead = " ".repeat(indent);
    let lines = break_lines(text, columns.saturating_sub(indent), false);
    let lines: Vec<String> = lines.iter().map(|line| format!("{lead}{line}")).collect();
    lines.join("\n")
}

/// Formats a paragraph like [`wrap_indented`], with a newline at the end.
#[must_use]
pub fn format_paragraph(text: &str, indent: usize, columns: usize) -> String {
    wrap_indented(text, indent, columns) + "\n"
}

/// Minimum width of a terminal, in columns, in which a value stands beside its name. In a narrower terminal, the value
/// stands below its name.
const BESIDE: usize = 60;

/// Formats a name and its value, with a newline at the end. The value starts `room` columns from the left; in a narrow
/// terminal, it stands below the name.
#[must_use]
pub fn format_named_value(name: &str, value: &str, room: usize, columns: usize) -> String {
    if columns < BESIDE {
        return format!("  {name}\n{}", format_paragraph(value, 4, columns));
    }
    let value = format_paragraph(value, room, columns);
    format!(
        "  {} {}",
        pad_right(name, room.saturating_sub(3)),
        value.trim_start()
    )
}

fn break_lines(text: &str, columns: usize, within_words: bool) -> Vec<String> {
    let columns = columns.max(1);
    let mut words: Vec<String> = Vec::new();
    for word in text.split([' ', '\n']).filter(|word| !word.is_empty()) {
        let number = words
            .last_mut()
            .filter(|last| last.ends_with(|c: char| c.is_ascii_digit()));
        let word = word.replace('\u{a0}', " ");
        match number.filter(|_| word.starts_with('%')) {
            Some(number) => {
                number.push(' ');
                number.push_str(&word);
            }
            None => words.push(word),
        }
    }
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in &words {
        if !line.is_empty() && measure_width(&line) + 1 + measure_width(word) > columns {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        for c in word.chars() {
            if within_words
                && !line.is_empty()
                && measure_width(&line) + c.width().unwrap_or(0) > columns
            {
                lines.push(std::mem::take(&mut line));
            }
            line.push(c);
        }
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn deceptive_characters_become_visible() {
        assert_eq!(
            escape_line("a\x1b[31m\u{202e}b\n"),
            "a\\u{1b}[31m\\u{202e}b\\n"
        );
        assert_eq!(escape_lines("a\nb\x07"), "a\nb\\u{7}");
        assert_eq!(escape_line("Größe 数据 µs"), "Größe 数据 µs");
    }

    #[test]
    fn a_cut_line_is_escaped_and_has_an_ellipsis() {
        assert_eq!(shorten_line("abc", 3), "abc");
        assert_eq!(shorten_line("abcd", 3), "ab…");
        assert_eq!(shorten_line("\u{202e}bc", 3), "\\u…");
    }

    #[test]
    fn a_number_keeps_its_percent_sign() {
        assert_eq!(
            wrap_lines("at most 8.9 % of all", 12),
            ["at most", "8.9 % of all"]
        );
        assert_eq!(wrap_lines("% %", 1), ["%", "%"]);
    }

    #[test]
    fn an_indented_line_is_longer_than_a_terminal_only_for_one_long_word() {
        let path = "/srv/".repeat(20);
        let text = format!("{} {path} 95\u{a0}% of\nall", "word ".repeat(30));
        let lines = wrap_indented(&text, 4, 80);
        let long: Vec<&str> = lines.lines().filter(|line| line.len() > 80).collect();
        assert_eq!(long, [format!("    {path}")]);
        assert_eq!(lines.lines().last().unwrap().trim_start(), "95 % of all");
        assert!(lines.lines().all(|line| line.starts_with("    ")));
    }

    proptest! {
        #[test]
        fn no_line_is_too_long_and_no_word_is_lost(text in "[a-zé数 ]{0,120}", columns in 2usize..40) {
            let lines = wrap_lines(&text, columns);
            prop_assert!(!lines.is_empty());
            for line in &lines {
                prop_assert!(measure_width(line) <= columns, "{line:?}");
            }
            let letters = |text: &str| text.replace(' ', "");
            prop_assert_eq!(letters(&lines.concat()), letters(&text));
        }

        #[test]
        fn nothing_deceptive_survives(text in any::<String>()) {
            prop_assert!(!escape_line(&text).chars().any(is_deceptive));
        }
    }
}
