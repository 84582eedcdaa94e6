//! A run: one execution of one plan, with its environment.

use crate::fact::Facts;
use crate::ladder::Ladder;
use crate::plan::Plan;
use crate::target::TargetInfo;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Number of a run in its store, as users refer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub i64);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// The run is in progress, or assay was killed without notice (signal, power failure).
    Running,
    /// Every slot was executed.
    Complete,
    /// The user interrupted the run; `--resume` continues it.
    Interrupted,
    /// The run ended with an error.
    Failed,
}

/// Where the samples come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// assay measured them.
    Measured,
    /// Imported from the result file of another tool.
    Imported {
        /// The file's name, without its directory.
        file: String,
    },
}

/// One execution of one plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Run {
    /// Number in the store; 0 before it is stored.
    pub id: RunId,
    /// Random id: 128 bits in hexadecimal. It remains the same if the run is copied to another store.
    pub uid: String,
    /// Version of assay that executed it.
    pub assay_version: String,
    /// Start time.
    pub started: jiff::Timestamp,
    /// End time.
    pub ended: Option<jiff::Timestamp>,
    /// Progress.
    pub state: RunState,
    /// Origin of the samples.
    pub origin: Origin,
    /// The plan that was executed.
    pub plan: Plan,
    /// Description of the targets before the run.
    pub targets: Vec<TargetInfo>,
    /// Facts about the machine and the targets.
    pub facts: Facts,
    /// Remarks about the whole run: file size compared with RAM, tmpfs, CPU emulation.
    #[serde(default)]
    pub remarks: Vec<String>,
    /// The ladder, if the targets of the run are the layers of one stack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ladder: Option<Ladder>,
}
