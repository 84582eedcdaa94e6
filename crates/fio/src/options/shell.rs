//! Shell scripts, as far as their text says what they run. Nothing is executed.
//!
//! What people give to be judged is often no whole script: a prompt stands before it, a web page changed
//! its quotes, its end is missing. A strict grammar refuses all of it for one such place, so this reader
//! takes what it understands: words with their quotes, variables and arrays, `for`, `if`, `case`,
//! functions, here-documents, `$( )`. Which word of a command is the program is in [`super::runner`].

mod expand;
mod lexer;
mod parse;
mod run;
mod word_expansion;

pub(super) use lexer::Unclosed;
pub(super) use run::read;

/// A value that the text does not say, in the words that go on. No option of fio begins so.
pub const UNKNOWN: char = '\u{1a}';

/// Whether a word may be the name of a variable.
fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests;
