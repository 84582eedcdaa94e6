//! Measures a slot: reads the counters, runs the load, reads the counters again, and builds a sample. No other module
//! takes samples.
//!
//! Runs, trials, stack measurements and studies define the load and its target ([`MeterSlot`], [`LoadTarget`]).
//! [`Meter::take`] measures one slot. [`carry_out`] measures steps in sequence: the slots of a plan
//! ([`carry_out_plan`]), the sides of a trial's pairs, or the steps of a study. This module prints and stores nothing:
//! callers receive [`MeasureEvent`]s and store the samples.

mod environment;
mod error;
mod event;
mod load_target;
mod loads;
mod meter;
mod plan;
mod slot;
mod step_loop;
mod tools;

pub use environment::{Environment, enter_open_changes};
pub use error::EngineError;
pub use event::{MeasureEvent, Tell};
pub use load_target::{LoadTarget, link};
pub use loads::{OPERATION_LIMIT, fio};
pub use meter::{Meter, MeterSlot};
pub use plan::{SampleSink, Stopped, Turn, carry_out_plan};
pub use step_loop::{Carried, Steps, carry_out};
pub use tools::Tools;
