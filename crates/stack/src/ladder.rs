//! The same workload at every layer of a stack that can be measured safely: on things that assay
//! makes, in rounds in which all layers take turns.
//!
//! [`prepare`] settles the ladder and touches nothing; [`execute`] makes the rungs, measures them and
//! takes everything away again. Samples are stored as those of a run whose targets are the rungs.

mod bench;
mod error;
mod execute;
pub mod follow;
mod ground;
mod guest;
mod makes;
mod order;
mod pace;
mod part;
mod prepare;
mod room;
mod rungs;
mod settle;
mod volume;

pub use error::MeasureError;
pub use execute::{Finished, execute};
pub use ground::Scratch;
pub use makes::{Made, Within};
pub use part::{FileSystem, Part};
pub use prepare::{Prepared, Wanted, prepare};

use assay_lab::Image;

/// What guests need.
#[derive(Clone, Copy, Debug)]
pub struct Lab<'a> {
    /// The guest image.
    pub image: &'a Image,
    /// Where guests are entered.
    pub state: &'a assay_lab::State,
}

pub use assay_measure::engine::{Environment, Event, Tell};

/// The plan that is carried out when the user names none.
pub const DEFAULT_PLAN: &str = include_str!("ladder/stack.toml");

/// What a journal's session of a measurement is labelled.
pub const LABEL: &str = "measuring a stack";
