//! What people read: terminal tables, Markdown, JSON, self-contained HTML with SVG charts.
//!
//! Every function takes values and returns a string: nothing here touches a machine. Text that
//! comes from outside (targets, facts, error messages) is shown with control and direction
//! characters made visible, see [`assay_render::text::clean`].

pub mod check;
pub mod dups;
pub mod facts;
pub mod fleet;
pub mod grid;
pub mod html;
pub mod import;
pub mod json;
pub mod lint;
pub mod markdown;
pub mod net;
mod odd_round;
pub mod plan;
pub mod pool;
pub mod stack;
pub mod study;
mod subject;
pub mod terminal;
pub mod trial;
pub mod waterfall;
pub mod web;
pub mod wifi;
