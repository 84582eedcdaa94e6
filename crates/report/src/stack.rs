//! Reports of a stack: its layers from top to bottom, hints about their settings, and unknown
//! facts. The layers are found in `assay-stack`.

mod html;
mod json;
mod layer_text;
mod markdown;
mod terminal;
mod tree_rows;

pub use html::{draw_stack_picture, render_stack_page};
pub use json::{StackDocument, stack_to_json};
pub use markdown::render_stack_markdown;
pub use terminal::render_stack_text;

use assay_model::stack::{Hint, Stack};

/// A stack of storage layers, with the hints about it.
#[derive(Clone, Copy)]
pub struct StackView<'a> {
    /// The layers, from top to bottom.
    pub stack: &'a Stack,
    /// Hints about the settings of layers.
    pub hints: &'a [Hint],
    /// Next steps, as (command, description).
    pub next: &'a [(String, String)],
}

#[cfg(test)]
mod tests;
