//! Building blocks of every output: the HTML template and its style, SVG charts, tables, wrapped text, formatted units,
//! and terminal style. `assay-report` decides what a report contains.
//!
//! Every function takes values and returns a string. Nothing in this crate reads or changes the machine. Control and
//! direction characters in foreign text are made visible (see [`text::escape_line`]).

pub mod html;
pub mod markdown;
pub mod output_escaping;
pub mod svg;
pub mod table;
pub mod terminal_style;
pub mod text;
pub mod units;

pub use terminal_style::Style;
