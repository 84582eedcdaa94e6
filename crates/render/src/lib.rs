//! What every output is made of: the HTML shell and its style, SVG charts, tables, wrapped text,
//! units as people read them, terminal style.
//!
//! Every function takes values and returns a string: nothing here touches a machine. Text from
//! outside is shown with control and direction characters made visible, see [`text::clean`].

pub mod html;
pub mod markdown;
pub mod output;
pub mod style;
pub mod svg;
pub mod table;
pub mod text;
pub mod units;

pub use style::Style;
