//! A slot is measured here, and nowhere else: counters before, load, counters after, a sample.
//!
//! Runs, trials, ladders and studies say what is loaded and where ([`Slot`], [`Place`]); [`Meter::take`]
//! does it, and [`carry_out`] does one step after the other: the slots of a plan ([`carry_out_plan`]), the
//! sides of a trial's pairs, the steps of a study. Nothing is printed, and nothing is stored: whoever calls
//! is told by [`Event`]s and keeps what is handed over.

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
