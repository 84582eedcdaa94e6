//! A run: one execution of one plan, with the environment it was made in.

use crate::fact::Facts;
use crate::ladder::Ladder;
use crate::plan::Plan;
use crate::target::TargetInfo;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Number of a run in its store, as users name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub i64);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// How far a run got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// Going on, or cut off without a word (kill, power).
    Running,
    /// Every slot was executed.
    Complete,
    /// The user interrupted it; `--resume` goes on.
    Interrupted,
    /// It ended with an error.
    Failed,
}

/// Where the samples come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// assay measured them.
    Measured,
    /// Read from another tool's result file.
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
    /// 128-bit random name in hex; the same in every store it is copied to.
    pub uid: String,
    /// assay version that made it.
    pub assay_version: String,
    /// When it began.
    pub started: jiff::Timestamp,
    /// When it ended.
    pub ended: Option<jiff::Timestamp>,
    /// How far it got.
    pub state: RunState,
    /// Where the samples come from.
    pub origin: Origin,
    /// The plan that was executed.
    pub plan: Plan,
    /// The targets as they were found.
    pub targets: Vec<TargetInfo>,
    /// The environment.
    pub facts: Facts,
    /// Things said about the run as a whole: file size against RAM, tmpfs, CPU emulation.
    #[serde(default)]
    pub remarks: Vec<String>,
    /// What its targets are when they are the layers of one stack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ladder: Option<Ladder>,
}
