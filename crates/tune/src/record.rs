//! A session as it is stored: the plan, and what was seen of each step. Everything else follows from these
//! by [`TuneSession::replay`].

use crate::budget::Row;
use crate::outcome::Ending;
use crate::plan::TunePlan;
use crate::session::{ReplayError, TuneSession};
use crate::step::{Incident, StepOutcome};
use assay_model::change::Setting;
use assay_model::{Facts, Load, Nanos, TargetInfo};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Number of a session in its store, as users name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TuneId(pub i64);

impl std::fmt::Display for TuneId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// How far a session got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TuneState {
    /// It goes on, or its process was killed.
    Running,
    /// It ended by itself.
    Complete,
    /// Something from outside, or an error, ended it; a resume continues it.
    Stopped,
}

/// What became of the changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kept")]
pub enum KeptState {
    /// The machine is as it was.
    #[default]
    Nothing,
    /// They are in effect.
    Kept {
        /// The session of the journal that undoes them.
        journal: String,
    },
    /// They were in effect, and were undone.
    Undone {
        /// When.
        at: Timestamp,
    },
}

/// What switches a candidate on, with the value that was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CandidateChange {
    /// What is set.
    pub setting: Setting,
    /// To which value; none takes the setting away.
    pub value: Option<String>,
    /// The setting for people: `scheduler of sda`.
    pub name: String,
    /// The value that was found; none when it was inherited, or no line stood in the file.
    pub found: Option<String>,
    /// The same for people.
    pub was: String,
}

/// One session with all its evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TuneRecord {
    /// 128-bit random name in hex.
    pub uid: String,
    /// Version of assay that began it.
    pub assay_version: String,
    /// The command line that began it, without the name of the program.
    #[serde(default)]
    pub command: Vec<String>,
    /// When it began.
    pub started: Timestamp,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// How far it got.
    pub state: TuneState,
    /// What it is about, as the user named it; empty where the load alone says it.
    pub target: String,
    /// The target as it was found; none where there is none.
    pub target_info: Option<TargetInfo>,
    /// The machine.
    pub facts: Facts,
    /// What is done to the target.
    pub load: Load,
    /// Measured time of a slot.
    pub slot: Nanos,
    /// Load before a slot is measured.
    pub washout: Nanos,
    /// The user's command that must succeed while changes are in effect.
    pub guard_command: Option<Vec<String>>,
    /// What was settled before the first step.
    pub plan: TunePlan,
    /// What switches each candidate of the plan, in its order; none for one that is not tried.
    pub changes: Vec<Option<CandidateChange>>,
    /// What was seen of each step, in order.
    pub seen: Vec<StepOutcome>,
    /// What ended it from outside.
    pub incident: Option<Incident>,
    /// What went wrong at the end, in words.
    #[serde(default)]
    pub error: Option<String>,
    /// The session of the journal that holds its changes while it runs.
    pub journal: Option<String>,
    /// What became of the changes.
    pub kept: KeptState,
    /// Kept at first, and undone one by one since.
    #[serde(default)]
    pub undone: Row,
    /// What a reader must know: a resume, a reboot.
    #[serde(default)]
    pub remarks: Vec<String>,
}

impl TuneRecord {
    /// The session with all that was seen. One that was stopped shows why; [`TuneRecord::resume`] goes on.
    ///
    /// # Errors
    /// What was seen does not fit the plan.
    pub fn replay(&self) -> Result<TuneSession, ReplayError> {
        let mut session = self.resume()?;
        if let Some(incident) = &self.incident {
            session.interrupt(incident.clone());
        }
        Ok(session)
    }

    /// What the session kept, without what was undone one by one since. `session` is its replay.
    #[must_use]
    pub fn row_in_effect(&self, session: &TuneSession) -> Row {
        match session.ending() {
            Some(Ending::Kept { row }) => row.difference(&self.undone).copied().collect(),
            _ => Row::new(),
        }
    }

    /// The session as it was before it was stopped.
    ///
    /// # Errors
    /// What was seen does not fit the plan.
    pub fn resume(&self) -> Result<TuneSession, ReplayError> {
        TuneSession::replay(self.plan.clone(), &self.seen)
    }
}
