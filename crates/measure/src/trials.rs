//! Executes a trial: measures both sides of a piece of advice in interleaved pairs, and judges the pairs after each new
//! one. Then reverts the change, unless the user asked to keep the change and the verdict permits this.
//!
//! This module prints nothing: callers receive [`crate::engine::MeasureEvent`]s.

pub(crate) mod bench;
mod budget;
mod candidate;
mod error;
mod execute;
pub(crate) mod loader;
pub(crate) mod machine;
mod noise;
pub(crate) mod pairs;
mod plan;
mod stopped;

pub use crate::engine::{Environment, MeasureEvent};
pub use budget::too_small;
pub use candidate::Candidate;
pub use error::TrialError;
pub use execute::{Finished, KeepOptions, clearly_worse, execute, new_trial, refuses_to_keep};
pub use pairs::Stop;
pub use plan::{TrialOptions, draw_order, plan_again};

use assay_model::{Doubt, doubt::Severity};

/// Creates a doubt (a reason to distrust a figure) that makes a pair void, so that the trial ignores the pair.
fn void_doubt(code: &str, evidence: String, remedy: &str) -> Doubt {
    Doubt {
        code: code.to_owned(),
        severity: Severity::Void,
        evidence,
        remedy: remedy.to_owned(),
    }
}
