//! A slot is measured here, and nowhere else: counters before, load, counters after, a sample.
//!
//! Runs, trials, ladders and studies say what is loaded and where ([`Slot`], [`Place`]); [`Meter::take`]
//! does it, and [`carry_out`] does one slot after the other. Nothing is printed, and nothing is stored:
//! whoever calls is told by [`Event`]s and keeps what is handed over.

mod carry;
mod error;
mod event;
mod loads;
mod place;
mod slot;
mod tools;

pub use carry::{Carried, Kept, Stopped, Turn, carry_out};
pub use error::EngineError;
pub use event::{Event, Tell};
pub use loads::{OPERATION_LIMIT, fio};
pub use place::{Place, link};
pub use slot::{Meter, Slot};
pub use tools::Tools;
