//! Data types of assay: units, facts, workloads, plans, samples, doubts and results.
//!
//! This crate accesses no machine, clock or random source. Samples are stored raw. `assay-judge` derives the types in
//! [`result`] when samples are read, so improved rules also apply to old runs.

pub mod advice;
pub mod change;
pub mod clock;
pub mod coverage;
pub mod criterion;
pub mod doubt;
pub mod drift;
pub mod fact;
pub mod fact_source;
pub mod fact_subject;
pub mod finding;
pub mod histogram;
pub mod ladder;
pub mod load;
pub mod machine;
mod named_choice;
pub mod plan;
pub mod result;
pub mod run;
pub mod sample;
mod schema;
pub mod secrets;
pub mod shuffle;
pub mod siblings;
pub mod size;
pub mod stack;
pub mod study;
pub mod target;
pub mod trial;
pub mod units;
pub mod web;
pub mod workload;

pub use advice::Advice;
pub use change::Change;
pub use criterion::Criterion;
pub use doubt::{Doubt, Severity};
pub use fact::{Fact, FactKind, FactValue, Facts, OPEN_CHANGES};
pub use fact_source::{FactPlace, Span};
pub use fact_subject::{Pattern, Subject};
pub use finding::{Checked, Finding};
pub use histogram::Histogram;
pub use ladder::{Ladder, Waterfall};
pub use load::Load;
pub use machine::Machine;
pub use plan::{Plan, PlanSpec, Planned};
pub use run::{Origin, Run, RunId, RunState};
pub use sample::Sample;
pub use shuffle::shuffle;
pub use stack::{Layer, LayerKind, Stack};
pub use study::Study;
pub use target::TargetInfo;
pub use trial::{Trial, TrialId, TrialPlan};
pub use units::{Bytes, Nanos};
pub use workload::Workload;

/// Version of the JSON documents and of the values in the store. The version increases if a field disappears or changes
/// its meaning, but not for a new field.
pub const SCHEMA_VERSION: u32 = 2;
