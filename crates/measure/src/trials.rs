//! Carries a trial out: both sides of a piece of advice in interleaved pairs, judged as they come;
//! then the machine is set back, unless the change may be kept and the user asked for that.
//!
//! Nothing is printed: whoever calls is told by [`Event`]s.

pub(crate) mod bench;
mod budget;
mod candidate;
mod error;
mod execute;
pub(crate) mod loader;
mod machine;
mod noise;
pub(crate) mod pairs;
mod plan;
mod stopped;

pub use crate::engine::{Environment, MeasureEvent};
pub use budget::too_small;
pub use candidate::Candidate;
pub use error::TrialError;
pub use execute::{Finished, Wish, clearly_worse, execute, new_trial, refuses_to_keep};
pub use pairs::Stop;
pub use plan::{TrialOptions, draw_order, plan_again};

use assay_model::{Doubt, doubt::Severity};

/// A doubt that takes a pair out of the trial.
fn void_doubt(code: &str, evidence: String, remedy: &str) -> Doubt {
    Doubt {
        code: code.to_owned(),
        severity: Severity::Void,
        evidence,
        remedy: remedy.to_owned(),
    }
}
