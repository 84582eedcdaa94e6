//! Measures loads: one slot with the counters before and after it ([`engine`]), the slots of a plan ([`runner`]),
//! trials of a change ([`trials`]), and tuning sessions ([`tuning`]).
//!
//! The load generators are in `assay-loads` and `assay-http`; `assay-judge` interprets samples.

pub mod engine;
pub mod runner;
pub mod trials;
pub mod tuning;
