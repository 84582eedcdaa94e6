//! What people read: terminal tables, Markdown, JSON, self-contained HTML with SVG charts.
//!
//! Every function takes values and returns a string: nothing here touches a machine. Text that
//! comes from outside (targets, facts, error messages) is shown with control and direction
//! characters made visible, see [`text::clean`].

pub mod format;
pub mod grid;
pub mod html;
pub mod json;
pub mod markdown;
pub mod study;
mod subject;
pub mod svg;
pub mod terminal;
pub mod text;
pub mod trial;
