//! Puts tables into the book, between `<!-- table: TITLE -->` and `<!-- end -->`.

use std::fs;
use std::io;

const BOOK: &str = "docs/src/trial-statistics.md";
const END: &str = "<!-- end -->";

/// Replaces the table of this title.
///
/// # Errors
/// The book cannot be read or written, or has no place for the table.
pub fn put(title: &str, table: &str) -> io::Result<()> {
    let book = fs::read_to_string(BOOK)?;
    let begin = format!("<!-- table: {title} -->");
    let none = || io::Error::other(format!("{BOOK} has no place for `{title}`"));
    let (before, rest) = book.split_once(&begin).ok_or_else(none)?;
    let (_, after) = rest.split_once(END).ok_or_else(none)?;
    fs::write(BOOK, format!("{before}{begin}\n{table}\n{END}{after}"))
}
