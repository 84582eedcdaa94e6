//! Text from outside made safe to show, and text laid out in columns.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Whether a character is invisible or changes how others are shown: control characters, direction
/// marks and overrides (Unicode TR 36, section 2.11), zero-width characters, line separators.
pub(crate) fn deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00ad}' | '\u{061c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// One line of text from outside, with deceptive characters written as Rust would escape them:
/// a newline becomes `\n`, a right-to-left override `\u{202e}`.
#[must_use]
pub fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if deceptive(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Text of many lines from outside: like [`clean`], but newlines stay.
#[must_use]
pub fn clean_lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(clean).collect();
    lines.join("\n")
}

/// Columns that a text takes on a terminal.
#[must_use]
pub fn width(text: &str) -> usize {
    text.width()
}

/// Fills up with spaces on the left to `columns`.
#[must_use]
pub fn right(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(text))))
}

/// Fills up with spaces on the right to `columns`.
#[must_use]
pub fn left(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// Breaks text into lines of at most `columns` at spaces and newlines; a word that is longer is
/// broken anywhere. A percent sign stays with its number, and words joined by a no-break space stay
/// together. Always at least one line.
#[must_use]
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    broken(text, columns, true)
}

/// Like [`wrap`] with every line indented, but longer words stay whole, so that a path can be
/// copied. The last line has no end.
#[must_use]
pub fn indented(text: &str, indent: usize, columns: usize) -> String {
    let lead = " ".repeat(indent);
    let lines = broken(text, columns.saturating_sub(indent), false);
    let lines: Vec<String> = lines.iter().map(|line| format!("{lead}{line}")).collect();
    lines.join("\n")
}

/// The same with the end of the last line.
#[must_use]
pub fn paragraph(text: &str, indent: usize, columns: usize) -> String {
    indented(text, indent, columns) + "\n"
}

/// Columns from which a value stands beside its name, and not below.
const BESIDE: usize = 60;

/// A name and its value, which begins `room` columns from the left; in a narrow terminal, below the
/// name. With the end of the last line.
#[must_use]
pub fn named(name: &str, value: &str, room: usize, columns: usize) -> String {
    if columns < BESIDE {
        return format!("  {name}\n{}", paragraph(value, 4, columns));
    }
    let value = paragraph(value, room, columns);
    format!(
        "  {} {}",
        left(name, room.saturating_sub(3)),
        value.trim_start()
    )
}

fn broken(text: &str, columns: usize, within_words: bool) -> Vec<String> {
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
        if !line.is_empty() && width(&line) + 1 + width(word) > columns {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        for c in word.chars() {
            if within_words && !line.is_empty() && width(&line) + c.width().unwrap_or(0) > columns {
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
        assert_eq!(clean("a\x1b[31m\u{202e}b\n"), "a\\u{1b}[31m\\u{202e}b\\n");
        assert_eq!(clean_lines("a\nb\x07"), "a\nb\\u{7}");
        assert_eq!(clean("Größe 数据 µs"), "Größe 数据 µs");
    }

    #[test]
    fn a_number_keeps_its_percent_sign() {
        assert_eq!(
            wrap("at most 8.9 % of all", 12),
            ["at most", "8.9 % of all"]
        );
        assert_eq!(wrap("% %", 1), ["%", "%"]);
    }

    #[test]
    fn an_indented_line_is_longer_than_a_terminal_only_for_one_long_word() {
        let path = "/srv/".repeat(20);
        let text = format!("{} {path} 95\u{a0}% of\nall", "word ".repeat(30));
        let lines = indented(&text, 4, 80);
        let long: Vec<&str> = lines.lines().filter(|line| line.len() > 80).collect();
        assert_eq!(long, [format!("    {path}")]);
        assert_eq!(lines.lines().last().unwrap().trim_start(), "95 % of all");
        assert!(lines.lines().all(|line| line.starts_with("    ")));
    }

    proptest! {
        #[test]
        fn no_line_is_too_long_and_no_word_is_lost(text in "[a-zé数 ]{0,120}", columns in 2usize..40) {
            let lines = wrap(&text, columns);
            prop_assert!(!lines.is_empty());
            for line in &lines {
                prop_assert!(width(line) <= columns, "{line:?}");
            }
            let letters = |text: &str| text.replace(' ', "");
            prop_assert_eq!(letters(&lines.concat()), letters(&text));
        }

        #[test]
        fn nothing_deceptive_survives(text in any::<String>()) {
            prop_assert!(!clean(&text).chars().any(deceptive));
        }
    }
}
