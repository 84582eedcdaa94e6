//! Carries a trial out: both sides of a piece of advice in interleaved pairs, judged as they come;
//! then the machine is set back, unless the change may be kept and the user asked for that.
//!
//! Nothing is printed: whoever calls is told by [`Event`]s.

mod bench;
mod budget;
mod error;
mod event;
mod execute;
mod machine;
mod pairs;
mod plan;
mod stopped;

pub use budget::too_small;
pub use error::TrialError;
pub use event::Event;
pub use execute::{Finished, Wish, clearly_worse, execute, new_trial, refuses_to_keep};
pub use pairs::Stop;
pub use plan::{Options, again, settle};

use assay_changes::Journal;
use assay_host::HostMut;
use assay_instruments::Cancel;
use assay_instruments::scratch::State;
use assay_model::{Doubt, doubt::Severity};
use std::path::Path;

/// What a trial needs from outside.
#[derive(Clone, Copy)]
pub struct Environment<'a> {
    /// The machine.
    pub host: &'a dyn HostMut,
    /// fio, when it is not the one on PATH.
    pub fio: Option<&'a Path>,
    /// Where scratch files are entered.
    pub state: &'a State,
    /// Where changes are entered.
    pub journal: &'a Journal,
    /// Asks to stop.
    pub cancel: &'a Cancel,
    /// The wall clock.
    pub now: &'a dyn Fn() -> jiff::Timestamp,
    /// Version of assay, stored with the trial.
    pub version: &'static str,
}

/// A doubt that takes a pair out of the trial.
fn doubt(code: &str, evidence: String, remedy: &str) -> Doubt {
    Doubt {
        code: code.to_owned(),
        severity: Severity::Void,
        evidence,
        remedy: remedy.to_owned(),
    }
}
