//! A run: one execution of a plan, with a description of its environment.

use crate::fact::Facts;
use crate::ladder::Ladder;
use crate::plan::Plan;
use crate::target::TargetInfo;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Number of a run in its store, which users write on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub i64);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Progress of a run, as far as the store shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// The run is in progress, or its process was killed without notice (signal, power failure).
    Running,
    /// Every slot of the plan was executed.
    Complete,
    /// The user interrupted the run; `--resume` continues it.
    Interrupted,
    /// The run ended with an error.
    Failed,
}

/// Origin of the samples of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// assay measured the samples itself.
    Measured,
    /// The samples were imported from the result file of another tool.
    Imported {
        /// File name without its directory.
        file: String,
    },
}

/// One execution of one plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Run {
    /// Number in the store; 0 before it is stored.
    pub id: RunId,
    /// Random id of 128 bits in hexadecimal. It stays the same if the run is copied to another store.
    pub uid: String,
    /// Version of assay that executed the run.
    pub assay_version: String,
    /// Start time of the run.
    pub started: jiff::Timestamp,
    /// End time of the run; `None` while it runs.
    pub ended: Option<jiff::Timestamp>,
    /// Whether the run is in progress, complete, interrupted or failed.
    pub state: RunState,
    /// Whether assay measured the samples, or they were imported.
    pub origin: Origin,
    /// The plan that was executed.
    pub plan: Plan,
    /// Description of the targets, recorded before the run.
    pub targets: Vec<TargetInfo>,
    /// Facts about the machine and the targets.
    pub facts: Facts,
    /// Remarks about the whole run, for example on the file size compared with RAM, on tmpfs, or on CPU emulation.
    #[serde(default)]
    pub remarks: Vec<String>,
    /// The measured layers, if the targets of the run are the layers of one stack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ladder: Option<Ladder>,
}
