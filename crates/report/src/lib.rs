//! Reports for people and programs: terminal tables, Markdown, JSON, and self-contained HTML with SVG charts. The
//! results are computed in `assay-judge`; the shared building blocks are in `assay-render`.
//!
//! Every function takes values and returns a string. No function reads or changes the machine. Control characters and
//! text direction characters in untrusted text (targets, facts, error messages) are made visible, see
//! [`assay_render::text::escape_line`].

pub mod check;
pub mod dups_page;
pub mod facts_listing;
pub mod fleet;
pub mod html;
pub mod import;
pub mod json;
pub mod lint;
pub mod markdown;
pub mod net;
mod odd_round;
pub mod plan;
pub mod pool;
pub mod result_grid;
mod run_description;
pub mod stack;
pub mod stored_text;
pub mod study;
pub mod terminal;
pub mod trial;
pub mod tune;
pub mod waterfall;
pub mod web;
pub mod why;
pub mod wifi;
