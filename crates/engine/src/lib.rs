//! A slot is measured here, and nowhere else: counters before, load, counters after, a sample.
//!
//! Runs, trials and ladders say what is loaded and where ([`Slot`], [`Place`]); [`Meter::take`] does it.
//! Nothing is printed, and nothing is stored.

mod error;
pub mod fio;
mod operations;
mod place;
mod slot;

pub use error::EngineError;
pub use place::Place;
pub use slot::{Asked, Meter, Slot};

use assay_model::Nanos;
use assay_model::sample::{Outcome, RatePoint, Worker};

/// What a load gave.
struct Taken {
    workload: String,
    outcome: Outcome,
    workers: Vec<Worker>,
    /// From start to end. None: as long as it was between the two readings of the counters.
    wall: Option<Nanos>,
    cpu: Option<Nanos>,
    tool: String,
    series: Vec<RatePoint>,
}
