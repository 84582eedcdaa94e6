//! Measures the same workload at every layer of a stack that can be measured safely. The layers are temporary objects.
//! They are measured in rounds, each with all layers in random order.
//!
//! A rung is a measured layer, and a ladder is the list of all rungs. [`prepare`] plans the ladder and changes nothing;
//! [`execute`] creates the rungs, measures them and removes everything. The samples are stored as a run whose targets
//! are the rungs.

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

/// Resources that are needed to boot guests.
#[derive(Clone, Copy, Debug)]
pub struct Lab<'a> {
    /// Image from which guests boot.
    pub image: &'a Image,
    /// Registry that records running guests, so that they can be removed after a crash.
    pub state: &'a assay_lab::GuestRegistry,
}

pub use assay_measure::engine::{Environment, MeasureEvent, Tell};

/// Plan of a stack measurement for users who give no plan.
pub const DEFAULT_PLAN: &str = include_str!("ladder/stack.toml");

/// Label of a measurement's session in the journal.
pub const LABEL: &str = "measuring a stack";
