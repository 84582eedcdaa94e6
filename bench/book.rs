//! Tables that benches put into the book.

use std::{fs, io};

/// Puts a table between the marks of this name in a page of the book.
pub fn put(page: &str, name: &str, table: &str) -> io::Result<()> {
    let begin = format!("<!-- table: {name} -->\n");
    let book = fs::read_to_string(page)?;
    let none = || io::Error::other(format!("{page} has no place for the table"));
    let (before, rest) = book.split_once(&begin).ok_or_else(none)?;
    let (_, after) = rest.split_once("<!-- end -->").ok_or_else(none)?;
    fs::write(
        page,
        format!("{before}{begin}\n{table}\n<!-- end -->{after}"),
    )
}
