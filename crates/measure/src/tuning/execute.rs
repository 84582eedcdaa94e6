//! Executes one session from its first step to its last. The session has one journal session, one scratch file, and one
//! process that reverts everything if this process is killed.

use super::driver::{MachineDriver, SessionResources};
use super::error::TuneError;
use super::judged_load::describe_to_judge;
use super::switch_board::SwitchBoard;
use super::{TellTune, TuneEvent};
use crate::engine::{Environment, MeasureEvent};
use crate::runner::OpenTarget;
use crate::trials::bench::monotonic_time;
use assay_changes::fixes::StandBy;
use assay_changes::{ChangeSession, Foreign, Journal, RecoveryOutcome};
use assay_host::HostMut;
use assay_loads::scratch::Scratch;
use assay_model::Load;
use assay_store::Store;
use assay_tune::{KeptState, Row, TuneId, TuneRecord, TuneSession, TuneState, carry_out};

/// Starts the process that reverts a session of the journal if this process is killed. The argument is the name of that
/// session.
pub type StandByStarter<'a> = dyn Fn(&str) -> std::io::Result<StandBy> + 'a;

/// Commands that a session runs, with all secrets. The record of the session contains them without secrets.
#[derive(Clone, Debug, PartialEq)]
pub struct TuneCommands {
    /// Load that the session makes faster, for example fio, HTTP requests or the user's command.
    pub load: Load,
    /// Command of the user that must succeed while changes are in effect.
    pub guard: Option<Vec<String>>,
}

/// A tuning session at its end, whether complete or not.
#[derive(Debug)]
pub struct FinishedTune {
    /// Number of the session in the store.
    pub id: TuneId,
    /// Record of the session, as it is stored.
    pub record: TuneRecord,
    /// State of the planner after the last step.
    pub session: TuneSession,
    /// Settings that were not reverted because another program changed them, each with its current value.
    pub left_alone: Vec<(String, String)>,
}

/// Executes a session, or continues a stored one.
///
/// # Errors
/// A preparation, change, measurement, store or revert failed. The outcomes before the error are stored. All changes
/// are reverted, unless the error names a setting or object that could not be reverted.
pub fn execute(
    mut record: TuneRecord,
    commands: &TuneCommands,
    ground: Option<&OpenTarget>,
    stand_by: &StandByStarter<'_>,
    env: &Environment<'_>,
    store: &mut Store,
    tell: &mut TellTune<'_>,
) -> Result<FinishedTune, TuneError> {
    let began = monotonic_time();
    let mut session = record.resume()?;
    // The claim refuses another assay on the same target before anything is stored.
    let _claim = ground.map(OpenTarget::claim).transpose()?;
    let journal = env.journal.begin("assay tune", &journal_target(&record))?;
    let scratch = env.state.begin(&record.uid)?;
    record.state = TuneState::Running;
    (record.incident, record.error, record.ended) = (None, None, None);
    record.journal = Some(journal.uid().to_owned());
    let id = store.put_tune(&record)?;
    tell(TuneEvent::Stored(id));
    let guard = stand_by(journal.uid()).map_err(TuneError::StandBy)?;
    let mut made = None;
    let done = {
        let trial = describe_to_judge(&record, &commands.load);
        let lent = SessionResources {
            env: *env,
            session: &journal,
            ground,
            scratch: &scratch,
            made: &mut made,
            record: &mut record,
            commands,
            store,
            tell: &mut *tell,
        };
        let mut driver = MachineDriver::new(lent, trial, began);
        run_to_the_end(&mut session, &mut driver)
    };
    if let Some(astray) = made.and_then(Scratch::remove) {
        tell(TuneEvent::Measuring(MeasureEvent::MovedFile(&astray)));
    }
    let closed = close_session(journal, env.host);
    let closed = match &done {
        // For example, the store is full: nobody would find the kept changes by the session.
        Err(_) => closed.and_then(|left| {
            revert_unrecorded(&mut record, env)?;
            Ok(left)
        }),
        Ok(()) => closed,
    };
    record.ended = Some((env.now)());
    record.state = match (&done, &record.incident) {
        (Ok(()), None) => TuneState::Complete,
        _ => TuneState::Stopped,
    };
    record.error = match (&done, &closed) {
        (Err(error), _) | (_, Err(error)) => Some(error.to_string()),
        _ => None,
    };
    let stored = store.put_tune(&record);
    match &closed {
        // The stand-by process tries to revert once more.
        Err(_) => drop(guard),
        Ok(_) => guard.dismiss(),
    }
    let left_alone = closed?;
    done?;
    stored?;
    Ok(FinishedTune {
        id,
        record,
        session,
        left_alone,
    })
}

/// Reverts changes that were kept, if the session could not record this.
fn revert_unrecorded(record: &mut TuneRecord, env: &Environment<'_>) -> Result<(), TuneError> {
    let KeptState::Kept { journal } = &record.kept else {
        return Ok(());
    };
    let outcomes = env
        .journal
        .take_back_kept(journal, env.host, Foreign::Leave)?;
    for one in outcomes {
        if let RecoveryOutcome::Failed(error) | RecoveryOutcome::Doubtful(error) = one.outcome {
            let what = one.what;
            return Err(TuneError::NotReverted { what, error });
        }
    }
    record.kept = KeptState::Nothing;
    Ok(())
}

/// Executes steps until the session has ended. If an event occurs during a step, the next step reverts all changes.
fn run_to_the_end(
    session: &mut TuneSession,
    driver: &mut MachineDriver<'_>,
) -> Result<(), TuneError> {
    match carry_out(session, driver) {
        Err(TuneError::Stopped(incident)) => {
            driver.stop(&incident);
            session.interrupt(incident);
            carry_out(session, driver).map(drop)
        }
        other => other.map(drop),
    }
}

/// Reverts all settings that are still changed. Returns the settings that were not reverted because another program had
/// changed them.
///
/// # Errors
/// A setting could not be reverted.
pub(super) fn close_session(
    session: ChangeSession,
    host: &dyn HostMut,
) -> Result<Vec<(String, String)>, TuneError> {
    let all = session
        .close(host)
        .map_err(|error| TuneError::NotReverted {
            what: "a setting of the session".to_owned(),
            error: error.to_string(),
        })?;
    let mut left = Vec::new();
    for one in all {
        match one.outcome {
            RecoveryOutcome::Failed(error) | RecoveryOutcome::Doubtful(error) => {
                return Err(TuneError::NotReverted {
                    what: one.what,
                    error,
                });
            }
            RecoveryOutcome::LeftAlone { found, .. } => left.push((one.what, found)),
            _ => {}
        }
    }
    Ok(left)
}

/// Returns the key by which the journal prevents two sessions on one target, because they would disturb each other.
pub(super) fn journal_target(record: &TuneRecord) -> String {
    match std::path::Path::new(&record.target).canonicalize() {
        Ok(path) => path.to_string_lossy().into_owned(),
        Err(_) if record.target.is_empty() => record.load.describe(),
        Err(_) => record.target.clone(),
    }
}

/// Returns a record that the changes of a session are kept, if the journal contains the kept changes. This is necessary
/// if the process was killed before it stored this record.
#[must_use]
pub fn was_kept(record: &TuneRecord, journal: &assay_changes::Journal) -> Option<KeptState> {
    let uid = record.journal.as_ref()?;
    let kept = journal.kept().ok()?;
    let found = kept.iter().any(|session| session.uid == *uid);
    found.then(|| KeptState::Kept {
        journal: uid.clone(),
    })
}

/// Applies the changes in `rest` again after all changes of a session were reverted, and keeps them in a new session of
/// the journal. This is necessary because a setting of a configuration file cannot be reverted without the other
/// settings in the file.
///
/// # Errors
/// A setting cannot be changed or recorded in the journal. Then the machine is as before the session.
pub fn keep_rest(
    record: &TuneRecord,
    rest: &Row,
    journal: &Journal,
    host: &dyn HostMut,
) -> Result<KeptState, TuneError> {
    let session = journal.begin("assay tune", &journal_target(record))?;
    let set = SwitchBoard::new(&session, host, &record.changes).leave(rest);
    match set.and_then(|()| session.put_by()) {
        Ok(()) => Ok(KeptState::Kept {
            journal: session.uid().to_owned(),
        }),
        Err(error) => {
            close_session(session, host)?;
            Err(error.into())
        }
    }
}
