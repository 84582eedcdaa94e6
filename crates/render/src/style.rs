//! How to write on a terminal.

use crate::text::{left, wrap};

/// Colour and columns of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Use ANSI colours (in addition to words and marks, never instead of them).
    pub color: bool,
    /// Columns; less than 40 is taken for 40.
    pub width: usize,
}

impl Style {
    /// Columns to write in.
    #[must_use]
    pub fn columns(self) -> usize {
        self.width.max(40)
    }

    /// Text with an ANSI "select graphic rendition", where colours are wanted; an empty one changes nothing.
    #[must_use]
    pub fn paint(self, sgr: &str, text: &str) -> String {
        match self.color && !sgr.is_empty() && !text.is_empty() {
            true => format!("\x1b[{sgr}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }

    /// Bold text.
    #[must_use]
    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Faint text.
    #[must_use]
    pub fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// Appends text behind a label; further lines are indented like the first. The label may be
    /// empty; `indent` counts columns.
    pub fn paragraph(self, out: &mut String, label: &str, indent: usize, text: &str) {
        let room = self.columns().saturating_sub(indent).max(20);
        let pad = " ".repeat(indent);
        for (i, line) in wrap(text, room).into_iter().enumerate() {
            match i == 0 && !label.is_empty() {
                true => out.push_str(&left(label, indent)),
                false => out.push_str(&pad),
            }
            out.push_str(&line);
            out.push('\n');
        }
    }
}
