//! Stacks as people read them: the layers from the top down, what is known of their settings, what
//! could not be found out.

mod html;
mod json;
mod markdown;
mod rows;
mod terminal;
mod words;

pub use html::html;
pub use json::{Document, json};
pub use markdown::markdown;
pub use terminal::terminal;

use assay_model::stack::{Hint, Stack};

/// A stack and the remarks on it.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The layers.
    pub stack: &'a Stack,
    /// What is known of their settings.
    pub hints: &'a [Hint],
    /// What to do next, as lines: a command and what it does.
    pub next: &'a [(String, String)],
}

#[cfg(test)]
mod tests;
