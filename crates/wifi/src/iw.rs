//! Parsers for the output of `iw`. `iw` escapes network names, so a name cannot imitate a line of output.

pub mod link;
pub mod scan;

/// Returns the text after the key of a line: `rest("freq: 2412", "freq")`.
fn rest<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    Some(line.strip_prefix(key)?.strip_prefix(':')?.trim())
}
