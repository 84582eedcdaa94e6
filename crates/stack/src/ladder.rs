//! Measures the same workload at every layer of a stack that can be measured safely: on temporary objects, in rounds
//! with all layers in random order.
//!
//! [`prepare`] plans the ladder and changes nothing; [`execute`] creates the rungs, measures them and removes
//! everything. The samples are stored as a run; its targets are the rungs.

mod bench;
mod error;
mod execute;
mod flush_writeback;
pub mod follow;
mod free_space;
mod guest;
mod layer_names;
mod order;
mod pace;
mod prepare;
mod rungs;
mod scratch_plan;
mod sibling_layers;
mod volume;

pub use error::MeasureError;
pub use execute::{Finished, execute};
pub use layer_names::{FileSystem, LadderPart};
pub use prepare::{PreparedLadder, Wanted, prepare};
pub use scratch_plan::{Made, Within};
pub use sibling_layers::Scratch;

use assay_lab::Image;

/// Resources of guests.
#[derive(Clone, Copy, Debug)]
pub struct Lab<'a> {
    /// The guest image.
    pub image: &'a Image,
    /// Registry of guests.
    pub state: &'a assay_lab::GuestRegistry,
}

pub use assay_measure::engine::{Environment, MeasureEvent, Tell};

/// Default plan.
pub const DEFAULT_PLAN: &str = include_str!("ladder/stack.toml");

/// Label of the journal session of a measurement.
pub const LABEL: &str = "measuring a stack";
