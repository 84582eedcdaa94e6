//! The stored form of a session: its plan and the outcome of each step. [`TuneSession::replay`] computes everything
//! else from these two.

use crate::budget::Row;
use crate::outcome::Ending;
use crate::plan::TunePlan;
use crate::session::{ReplayError, TuneSession};
use crate::step::{Incident, StepOutcome};
use assay_model::change::{Arm, ArmDifference, Setting};
use assay_model::{Facts, Load, Nanos, TargetInfo};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Number of a session in the store, as users see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TuneId(pub i64);

impl std::fmt::Display for TuneId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Whether a session runs, is complete, or was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TuneState {
    /// The session is running, or its process was killed before it could store another state.
    Running,
    /// The session has ended in the regular way.
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
    /// The kept changes are in effect.
    Kept {
        /// Name of the journal session that reverts the changes.
        journal: String,
    },
    /// The changes were kept and later reverted.
    Undone {
        /// Time at which the changes were reverted.
        at: Timestamp,
    },
}

/// Change of a setting that a candidate makes, with the value before the session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CandidateChange {
    /// Setting that the candidate changes.
    pub setting: Setting,
    /// New value; `None` removes the setting.
    pub value: Option<String>,
    /// Readable name of the setting, such as `scheduler of sda`.
    pub name: String,
    /// Value before the session; `None` if it was inherited, or if the file had no such line.
    pub found: Option<String>,
    /// Value before the session, in a readable form.
    pub was: String,
}

/// Objects that a session creates and compares, instead of settings of the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedArms {
    /// Object without any change, under which the baseline is measured.
    pub base: Arm,
    /// For each candidate of the plan, the two objects that its page compares. `None` for a candidate that changes a
    /// setting, and for a candidate that is not tried.
    pub pages: Vec<Option<[Arm; 2]>>,
}

impl ComparedArms {
    /// Returns the object that has the changes of a row of candidates. Returns `None` if the changes do not result in a
    /// valid object.
    #[must_use]
    pub fn arm_of(&self, row: &Row) -> Option<Arm> {
        let mut arm = self.base.clone();
        for [now, changed] in row.iter().filter_map(|at| self.pages.get(*at)?.as_ref()) {
            arm = ArmDifference::between(now, changed)?.applied_to(&arm)?;
        }
        Some(arm)
    }
}

/// A session with its inputs and all outcomes, as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TuneRecord {
    /// Unique name of the session: 128 random bits in hex.
    pub uid: String,
    /// Version of assay that began the session.
    pub assay_version: String,
    /// Command line that began the session, without the name of the program.
    #[serde(default)]
    pub command: Vec<String>,
    /// Time at which the session began.
    pub started: Timestamp,
    /// Time at which the session ended; `None` while it runs.
    pub ended: Option<Timestamp>,
    /// Whether the session runs, is complete, or can be resumed.
    pub state: TuneState,
    /// Target as named by the user; empty if the load contains the target.
    pub target: String,
    /// Properties of the target; `None` without a target.
    pub target_info: Option<TargetInfo>,
    /// Facts of the machine at the start.
    pub facts: Facts,
    /// The load that runs on the target.
    pub load: Load,
    /// Duration of the measured part of a slot.
    pub slot: Nanos,
    /// Duration of the load before the measured part of a slot.
    pub washout: Nanos,
    /// Command of the user that must succeed while changes are in effect. If it fails, the session reverts the changes.
    pub guard_command: Option<Vec<String>>,
    /// Plan that was fixed before the first step.
    pub plan: TunePlan,
    /// Change of each candidate, in the order of the plan; `None` for a candidate that is not tried.
    pub changes: Vec<Option<CandidateChange>>,
    /// Objects that the session compares; `None` if it only changes settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arms: Option<ComparedArms>,
    /// Outcomes of the steps, in order.
    pub seen: Vec<StepOutcome>,
    /// Event that interrupted the session; `None` without an interruption.
    pub incident: Option<Incident>,
    /// Error that ended the session, as a sentence; `None` without an error.
    #[serde(default)]
    pub error: Option<String>,
    /// Name of the journal session that contains the changes while the tuning session runs.
    pub journal: Option<String>,
    /// State of the changes after the session.
    pub kept: KeptState,
    /// Candidates that were kept at first and undone later, one by one.
    #[serde(default)]
    pub undone: Row,
    /// Remarks for the reader of the report, for example that the session was resumed or that the machine rebooted.
    #[serde(default)]
    pub remarks: Vec<String>,
}

/// A change of a candidate as tables show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownChange {
    /// Name of the setting, or of the properties of an object.
    pub name: String,
    /// Value before the session.
    pub was: String,
    /// New value; `None` removes the setting.
    pub value: Option<String>,
}

impl TuneRecord {
    /// Returns the change of a candidate for tables; `None` for a candidate that is not tried.
    #[must_use]
    pub fn shown_change(&self, candidate: usize) -> Option<ShownChange> {
        if let Some(change) = self.changes.get(candidate)?.as_ref() {
            return Some(ShownChange {
                name: change.name.clone(),
                was: change.was.clone(),
                value: change.value.clone(),
            });
        }
        let arms = self.arms.as_ref()?;
        let [now, changed] = arms.pages.get(candidate)?.as_ref()?;
        let difference = ArmDifference::between(now, changed)?;
        let [name, was, value] = difference.describe(&arms.base);
        Some(ShownChange {
            name,
            was,
            value: Some(value),
        })
    }

    /// Rebuilds the session from all outcomes. The result also contains an interruption; use [`TuneRecord::resume`] to
    /// continue an interrupted session.
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

    /// Returns the candidates that the session kept, except the ones that were undone later. `session` is the replay of
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
