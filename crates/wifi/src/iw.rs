//! What `iw` prints. It escapes every name, so that a line of a scan is never a network's own.

pub mod link;
pub mod scan;

/// The part of a line behind its key: `rest("freq: 2412", "freq")`.
fn rest<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    Some(line.strip_prefix(key)?.strip_prefix(':')?.trim())
}
