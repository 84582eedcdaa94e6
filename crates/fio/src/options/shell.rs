//! Interprets shell scripts to find the commands that they run. Nothing is executed.
//!
//! Users often submit incomplete scripts: with a prompt, with quotes that a web page changed, or without the end. A
//! strict grammar would reject the whole script. This parser therefore uses the parts that it understands: words with
//! quotes, variables and arrays, `for`, `if`, `case`, functions, here-documents and `$( )`. The module
//! [`super::runner`] determines which of the words of a command is the program.

mod expand;
mod lexer;
mod parse;
mod run;
mod word_expansion;

pub(super) use lexer::Unclosed;
pub(super) use run::read;

/// Placeholder for a value that the text does not contain. No option of fio starts with this character.
pub const UNKNOWN: char = '\u{1a}';

/// Returns whether a word may be the name of a variable.
fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests;
