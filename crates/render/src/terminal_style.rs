//! Terminal style: colours and width. Tables are in [`crate::table`]; wrapping is in [`crate::text`].

use crate::text::{pad_right, wrap_lines};

/// Whether a terminal has colours, and how wide it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether to use ANSI colours, in addition to words and marks.
    pub color: bool,
    /// Width of the terminal in columns. A value below 40 counts as 40.
    pub width: usize,
}

impl Style {
    /// Returns the width that a layout can use, in columns.
    #[must_use]
    pub fn columns(self) -> usize {
        self.width.max(40)
    }

    /// Wraps text in an ANSI "select graphic rendition" sequence if colours are wanted. An empty `sgr` returns the text
    /// unchanged.
    #[must_use]
    pub fn paint(self, sgr: &str, text: &str) -> String {
        match self.color && !sgr.is_empty() && !text.is_empty() {
            true => format!("\x1b[{sgr}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }

    /// Formats text as bold, if colours are wanted.
    #[must_use]
    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Formats text as faint, if colours are wanted.
    #[must_use]
    pub fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// Appends text after a label, and indents further lines so that they align with the first. The label may be empty;
    /// `indent` is in columns.
    pub fn write_paragraph(self, out: &mut String, label: &str, indent: usize, text: &str) {
        let room = self.columns().saturating_sub(indent).max(20);
        let pad = " ".repeat(indent);
        for (i, line) in wrap_lines(text, room).into_iter().enumerate() {
            match i == 0 && !label.is_empty() {
                true => out.push_str(&pad_right(label, indent)),
                false => out.push_str(&pad),
            }
            out.push_str(&line);
            out.push('\n');
        }
    }
}
