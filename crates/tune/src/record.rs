//! A session as it is stored: the plan, and the outcome of each step. [`TuneSession::replay`] computes everything
//! else from them.

use crate::budget::Row;
use crate::outcome::Ending;
use crate::plan::TunePlan;
use crate::session::{ReplayError, TuneSession};
use crate::step::{Incident, StepOutcome};
use assay_model::change::Setting;
use assay_model::{Facts, Load, Nanos, TargetInfo};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Number of a session in the store, as shown to users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TuneId(pub i64);

impl std::fmt::Display for TuneId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Progress of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TuneState {
    /// The session is running, or its process was killed.
    Running,
    /// The session is complete.
    Complete,
    /// The session was interrupted or failed, and can be resumed.
    Stopped,
}

/// State of the changes after the session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kept")]
pub enum KeptState {
    /// All changes are reverted.
    #[default]
    Nothing,
    /// The changes are in effect.
    Kept {
        /// Journal session that reverts the changes.
        journal: String,
    },
    /// The changes were kept and later reverted.
    Undone {
        /// Time of the revert.
        at: Timestamp,
    },
}

/// The change that switches a candidate on, and the value before the session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CandidateChange {
    /// The setting.
    pub setting: Setting,
    /// The new value; None removes the setting.
    pub value: Option<String>,
    /// Readable name of the setting: `scheduler of sda`.
    pub name: String,
    /// Value before the session; `None` if it was inherited, or if the file had no such line.
    pub found: Option<String>,
    /// Value before the session, in a readable form.
    pub was: String,
}

/// One session with all its outcomes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TuneRecord {
    /// 128-bit random name in hex.
    pub uid: String,
    /// Version of assay that began the session.
    pub assay_version: String,
    /// Command line that began the session, without the name of the program.
    #[serde(default)]
    pub command: Vec<String>,
    /// Start time.
    pub started: Timestamp,
    /// End time.
    pub ended: Option<Timestamp>,
    /// Progress.
    pub state: TuneState,
    /// Target as named by the user; empty if the load names it.
    pub target: String,
    /// Properties of the target; None without a target.
    pub target_info: Option<TargetInfo>,
    /// Facts of the machine.
    pub facts: Facts,
    /// The load that runs on the target.
    pub load: Load,
    /// Measured time of a slot.
    pub slot: Nanos,
    /// Time the load runs before a slot is measured.
    pub washout: Nanos,
    /// User's command that must succeed while changes are in effect; otherwise the session reverts them.
    pub guard_command: Option<Vec<String>>,
    /// Plan, fixed before the first step.
    pub plan: TunePlan,
    /// Change of each candidate of the plan, in its order; None for a candidate that is not tried.
    pub changes: Vec<Option<CandidateChange>>,
    /// Outcome of each step, in order.
    pub seen: Vec<StepOutcome>,
    /// What interrupted the session.
    pub incident: Option<Incident>,
    /// Error at the end, as a sentence.
    #[serde(default)]
    pub error: Option<String>,
    /// Journal session that holds the changes while the tuning session runs.
    pub journal: Option<String>,
    /// State of the changes after the session.
    pub kept: KeptState,
    /// Candidates that were kept at first, and later undone one by one.
    #[serde(default)]
    pub undone: Row,
    /// Remarks for the reader, for example that the session was resumed or that the machine rebooted.
    #[serde(default)]
    pub remarks: Vec<String>,
}

impl TuneRecord {
    /// Rebuilds the session from all outcomes. An interrupted session also contains the cause of the interruption; use
    /// [`TuneRecord::resume`] to continue it.
    ///
    /// # Errors
    /// An outcome does not fit the plan.
    pub fn replay(&self) -> Result<TuneSession, ReplayError> {
        let mut session = self.resume()?;
        if let Some(incident) = &self.incident {
            session.interrupt(incident.clone());
        }
        Ok(session)
    }

    /// Returns the candidates that the session kept, without those that were undone since. `session` is the replay of
    /// this record.
    #[must_use]
    pub fn row_in_effect(&self, session: &TuneSession) -> Row {
        match session.ending() {
            Some(Ending::Kept { row }) => row.difference(&self.undone).copied().collect(),
            _ => Row::new(),
        }
    }

    /// Rebuilds the session as it was before the interruption, so that it can continue.
    ///
    /// # Errors
    /// An outcome does not fit the plan.
    pub fn resume(&self) -> Result<TuneSession, ReplayError> {
        TuneSession::replay(self.plan.clone(), &self.seen)
    }
}
