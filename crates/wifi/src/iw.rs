//! Parsers for the output of `iw`. `iw` escapes network names, so that a name cannot imitate a line of the output.

pub mod link;
pub mod scan;

/// Returns the text after the key of a line, as in `rest("freq: 2412", "freq")`; `None` if the line has another key.
fn rest<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    Some(line.strip_prefix(key)?.strip_prefix(':')?.trim())
}
