//! The same workload at every layer of a stack that can be measured safely: on things that assay
//! makes, in rounds in which all layers take turns.
//!
//! [`prepare`] settles the ladder and touches nothing; [`execute`] makes the rungs, measures them and
//! takes everything away again. Samples are stored as those of a run whose targets are the rungs.

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

/// What guests need.
#[derive(Clone, Copy, Debug)]
pub struct Lab<'a> {
    /// The guest image.
    pub image: &'a Image,
    /// Where guests are entered.
    pub state: &'a assay_lab::GuestRegistry,
}

pub use assay_measure::engine::{Environment, MeasureEvent, Tell};

/// The plan that is carried out when the user names none.
pub const DEFAULT_PLAN: &str = include_str!("ladder/stack.toml");

/// What a journal's session of a measurement is labelled.
pub const LABEL: &str = "measuring a stack";
