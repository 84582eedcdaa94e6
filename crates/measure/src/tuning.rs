//! Executes a tuning session on this machine: [`find_candidates`] lists possible changes, and [`execute`]
//! is the driver of [`assay_tune::TuneSession`].
//!
//! `assay-tune` decides what is measured next, and `assay-judge` judges the pairs. Nothing is printed: the
//! caller receives [`TuneEvent`]s.

mod arm_board;
mod candidates;
mod confirm;
mod driver;
mod error;
mod execute;
mod goal_load;
mod guard_command;
mod joined_switches;
mod judged_load;
mod load_limits;
mod pair_slots;
mod switch_board;

pub use candidates::{CandidateRequest, FoundCandidate, find_candidates, join_arms};
pub use confirm::{Confirmation, confirm_kept};
pub use error::TuneError;
pub use execute::{FinishedTune, StandByStarter, TuneCommands, execute, keep_rest, was_kept};
pub use goal_load::find_goal_workload;

use crate::engine::MeasureEvent;
use assay_tune::{Step, StepOutcome};

/// An event of a tuning session, for progress displays.
#[derive(Debug)]
pub enum TuneEvent<'a> {
    /// The session was stored under this number.
    Stored(assay_tune::TuneId),
    /// A step of the session begins.
    Step(&'a Step),
    /// The outcome of a step was stored.
    Seen(&'a StepOutcome),
    /// An event of the measurement within a step.
    Measuring(MeasureEvent<'a>),
    /// A remark for the user.
    Remark(&'a str),
}

/// Callback that receives the events of a tuning session.
pub type TellTune<'a> = dyn FnMut(TuneEvent<'_>) + 'a;
