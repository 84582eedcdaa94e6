//! Building blocks of every output: the HTML shell and its style, SVG charts, tables, wrapped text,
//! formatted units, terminal style. What a report contains is decided in `assay-report`.
//!
//! Every function takes values and returns a string; nothing here reads or changes the machine.
//! Control and direction characters in foreign text are made visible, see [`text::escape_line`].

pub mod html;
pub mod markdown;
pub mod output_escaping;
pub mod svg;
pub mod table;
pub mod terminal_style;
pub mod text;
pub mod units;

pub use terminal_style::Style;
