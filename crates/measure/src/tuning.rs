//! Carries a session of tuning out on this machine: [`find_candidates`] looks at what could be changed,
//! [`execute`] is the driver of [`assay_tune::TuneSession`].
//!
//! What is measured next is decided in `assay-tune`, what a pair shows in `assay-judge`. Nothing is printed:
//! whoever calls is told by [`TuneEvent`]s.

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

pub use candidates::{CandidateRequest, FoundCandidate, find_candidates};
pub use confirm::confirm_kept;
pub use error::TuneError;
pub use execute::{FinishedTune, StandByStarter, TuneCommands, execute, keep_rest, was_kept};
pub use goal_load::find_goal_workload;

use crate::engine::MeasureEvent;
use assay_tune::{Step, StepOutcome};

/// What happens in a session.
#[derive(Debug)]
pub enum TuneEvent<'a> {
    /// The session is stored under this number.
    Stored(assay_tune::TuneId),
    /// A step begins.
    Step(&'a Step),
    /// What was seen of a step is stored.
    Seen(&'a StepOutcome),
    /// Something within a step.
    Measuring(MeasureEvent<'a>),
    /// Something to know.
    Remark(&'a str),
}

/// Who is told.
pub type TellTune<'a> = dyn FnMut(TuneEvent<'_>) + 'a;
