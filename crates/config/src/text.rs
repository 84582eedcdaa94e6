//! Functions for lines and positions in a byte string.

use std::ops::Range;

/// Iterates over the lines of a text without their line ends (`
/// ` or `\r
/// `).
pub fn line_ranges(text: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut at = 0;
    text.split_inclusive(|&byte| byte == b'\n')
        .map(move |line| {
            let start = at;
            at += line.len();
            start..start + strip_line_end(line).len()
        })
}

fn strip_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Returns whether a byte is a blank within a line.
pub fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c)
}

/// Returns the range without blanks at both ends.
pub fn trim(text: &[u8], range: Range<usize>) -> Range<usize> {
    let (mut start, mut end) = (range.start, range.end);
    while start < end && is_blank(text[start]) {
        start += 1;
    }
    while end > start && is_blank(text[end - 1]) {
        end -= 1;
    }
    start..end
}

/// Returns the line number of an offset, counted from 1.
pub fn line_number(text: &[u8], at: usize) -> usize {
    1 + text[..at].iter().filter(|&&byte| byte == b'\n').count()
}

pub fn line_start(text: &[u8], at: usize) -> usize {
    let before = text[..at].iter().rposition(|&byte| byte == b'\n');
    before.map_or(0, |newline| newline + 1)
}

/// Returns the offset after the line's `
/// `, or the end of the text.
pub fn line_end(text: &[u8], at: usize) -> usize {
    let newline = text[at..].iter().position(|&byte| byte == b'\n');
    newline.map_or(text.len(), |newline| at + newline + 1)
}

/// Returns the blanks at the beginning of the line.
pub fn line_indent(text: &[u8], at: usize) -> &[u8] {
    let start = line_start(text, at);
    let line = &text[start..line_end(text, start)];
    let end = line.iter().position(|&byte| byte != b' ' && byte != b'\t');
    &line[..end.unwrap_or(0)]
}

/// Returns the line end that this text uses.
pub fn line_ending(text: &[u8]) -> &'static [u8] {
    match text.iter().position(|&byte| byte == b'\n') {
        Some(at) if at > 0 && text[at - 1] == b'\r' => b"\r\n",
        _ => b"\n",
    }
}

/// Returns whether there are only blanks before the range on its first line, and after it on its last line.
pub fn stands_alone(text: &[u8], range: &Range<usize>) -> bool {
    let before = &text[line_start(text, range.start)..range.start];
    let after = strip_line_end(&text[range.end..line_end(text, range.end)]);
    before.iter().chain(after).all(|&byte| is_blank(byte))
}

/// Returns the text with one range replaced.
pub fn splice_text(text: &[u8], range: Range<usize>, new: &[u8]) -> Vec<u8> {
    [&text[..range.start], new, &text[range.end..]].concat()
}

pub fn to_lossy_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A logical line: a line and its continuation lines, joined by single spaces. It also has the original position of
/// each byte.
#[derive(Default)]
pub struct Logical {
    pub bytes: Vec<u8>,
    pub at: Vec<usize>,
    /// Comment lines and blank lines between the joined lines.
    pub inner: Vec<Range<usize>>,
}

impl Logical {
    pub fn push(&mut self, text: &[u8], part: Range<usize>) {
        if !self.bytes.is_empty() && !part.is_empty() {
            self.bytes.push(b' ');
            self.at.push(part.start);
        }
        self.bytes.extend(&text[part.clone()]);
        self.at.extend(part);
    }

    /// Returns the range in the original text from byte `from` of the joined line to its last byte.
    pub fn span(&self, from: usize) -> Range<usize> {
        let end = self.at.last().map_or(0, |&last| last + 1);
        self.at.get(from).copied().unwrap_or(end)..end
    }
}
