//! Applies a plan through the journal.

use crate::fixes::error::FixError;
use crate::fixes::line_edits::ModeChange;
use crate::fixes::outside::{OutsideError, OutsideUndo};
use crate::fixes::plan::{FileChange, FixPlan};
use crate::fixes::properties::PropertyChange;
use crate::fixes::stand_by::StandBy;
use crate::{ChangeError, ChangeSession, Journal, RecoveryOutcome, Switch};
use assay_host::HostMut;
use assay_model::advice::Advice;

/// Result of waiting for the user's confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// The user confirmed the change.
    Given,
    /// The user did not confirm within the time limit.
    Late,
    /// The user refused the change or interrupted assay.
    Refused,
}

/// What the caller provides to apply a change: the machine, the journal, and callbacks.
pub struct Wish<'a> {
    /// The machine to change.
    pub host: &'a dyn HostMut,
    /// The journal that records the change.
    pub journal: &'a Journal,
    /// All advice pages; their checks are repeated after the change.
    pub pages: &'a [&'a Advice],
    /// Starts the stand-by process for the session with the given number. Called only for changes that may lock the
    /// user out.
    pub stand_by: &'a dyn Fn(&str) -> std::io::Result<StandBy>,
    /// Makes the machine's scheduler (systemd, cron or atd) watch a session. Called only for changes that may lock the
    /// user out.
    pub outside: &'a dyn Fn(&ChangeSession) -> Result<OutsideUndo, OutsideError>,
    /// Waits for the user's confirmation. Called only for changes that may lock the user out.
    pub confirm: &'a mut dyn FnMut(&ChangeSession, Option<&OutsideUndo>) -> Confirmation,
    /// Returns whether the user wants to stop.
    pub cancelled: &'a dyn Fn() -> bool,
}

/// What became of the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FixOutcome {
    /// The change is kept. The number identifies the change for a later rollback.
    Kept(String),
    /// The change was made and rolled back, because the user did not confirm it in time.
    NotConfirmed,
    /// The change was rolled back because the user interrupted.
    Interrupted,
}

/// Returns the label of the session that applies the remedy of a rule.
#[must_use]
pub fn session_label(rule: &str) -> String {
    format!("check --fix {rule}")
}

/// Applies the change of a plan, runs the program's own check, reads everything back, and keeps the change.
///
/// # Errors
/// The step that failed. Everything is then rolled back; [`FixError::NotTakenBack`] lists the changes whose rollback
/// failed.
pub fn carry_out(plan: &FixPlan, wish: &mut Wish<'_>) -> Result<FixOutcome, FixError> {
    let begun = wish
        .journal
        .begin(&session_label(&plan.rule), &plan.target());
    let session = begun.map_err(FixError::Change)?;
    let mut watchers = match plan.lockout {
        true => Some(Watchers::post(plan, wish, &session)?),
        false => None,
    };
    let made = make(plan, wish, &session, watchers.as_mut());
    let done = match made {
        Ok(None) => session
            .put_by()
            .map(|()| FixOutcome::Kept(session.uid().to_owned()))
            .map_err(FixError::Change),
        Ok(Some(other)) => Ok(other),
        Err(error) => Err(error),
    };
    let told = match &done {
        Ok(FixOutcome::Kept(_)) => {
            dismiss(watchers, wish.host);
            return done;
        }
        Ok(_) => "it was not confirmed".to_owned(),
        Err(error) => error.cause(),
    };
    // Rolls back the settings that `make` left open.
    let closed = session.close(wish.host);
    let failed: Vec<String> = match closed {
        Ok(all) => all
            .iter()
            .filter(|one| !matches!(one.outcome, RecoveryOutcome::Restored(_)))
            .map(|one| format!("{}: {}", one.what, describe_outcome(&one.outcome)))
            .collect(),
        Err(error) => vec![error.to_string()],
    };
    if failed.is_empty() {
        dismiss(watchers, wish.host);
        return done;
    }
    // The processes that watch the session retry the rollback.
    drop(watchers);
    Err(FixError::NotTakenBack {
        first: told,
        failed,
    })
}

/// Describes why a setting did not return to its original state.
fn describe_outcome(outcome: &RecoveryOutcome) -> String {
    match outcome {
        RecoveryOutcome::LeftAlone { found, .. } => {
            format!("somebody else has set it to {found} since")
        }
        RecoveryOutcome::Doubtful(why) | RecoveryOutcome::Failed(why) => why.clone(),
        RecoveryOutcome::Restored(_)
        | RecoveryOutcome::Removed
        | RecoveryOutcome::Rebooted
        | RecoveryOutcome::Gone => "it is no longer there".to_owned(),
    }
}

/// The two processes that watch a change that may lock the user out: the stand-by process, and the scheduler's job.
struct Watchers {
    stand_by: StandBy,
    outside: OutsideUndo,
}

impl Watchers {
    /// Starts both watchers before anything is changed.
    fn post(plan: &FixPlan, wish: &Wish<'_>, session: &ChangeSession) -> Result<Self, FixError> {
        let outside = (wish.outside)(session).map_err(|source| FixError::NotProtected {
            rule: plan.rule.clone(),
            source,
        })?;
        match (wish.stand_by)(session.uid()) {
            Ok(stand_by) => Ok(Self { stand_by, outside }),
            Err(error) => {
                let _ = outside.disarm(wish.host);
                Err(FixError::StandBy(error))
            }
        }
    }
}

fn dismiss(watchers: Option<Watchers>, host: &dyn HostMut) {
    if let Some(Watchers { stand_by, outside }) = watchers {
        stand_by.dismiss();
        // A watcher that cannot be removed here removes itself at its next check.
        let _ = outside.disarm(host);
    }
}

/// Makes the change. Returns `None` if the change should be kept; otherwise rolls the settings back and returns the
/// result.
fn make(
    plan: &FixPlan,
    wish: &mut Wish<'_>,
    session: &ChangeSession,
    watchers: Option<&mut Watchers>,
) -> Result<Option<FixOutcome>, FixError> {
    let mut open = Vec::new();
    let host = wish.host;
    let done = set(plan, host, wish, session, watchers, &mut open);
    match done {
        Ok(None) => open.into_iter().for_each(Switch::leave),
        // In reverse order. A failure stays in the journal and is reported when the session is closed.
        _ => while open.pop().is_some() {},
    }
    done
}

fn set<'a>(
    plan: &FixPlan,
    host: &'a dyn HostMut,
    wish: &mut Wish<'_>,
    session: &'a ChangeSession,
    mut watchers: Option<&mut Watchers>,
    open: &mut Vec<Switch<'a>>,
) -> Result<Option<FixOutcome>, FixError> {
    for file in &plan.files {
        open.push(open_setting(file, host, session)?);
    }
    for mode in &plan.modes {
        open.push(open_permissions(mode, host, session)?);
    }
    for property in &plan.properties {
        open.push(open_property(property, host, session)?);
    }
    for (file, switch) in plan.files.iter().zip(open.iter()) {
        if (wish.cancelled)() {
            return Ok(Some(FixOutcome::Interrupted));
        }
        let value = file.setting().1;
        switch.set(value.as_deref()).map_err(FixError::Change)?;
    }
    let modes = plan.modes.iter().map(|mode| mode.setting().1);
    let properties = plan.properties.iter().map(|one| one.setting().1);
    for (value, switch) in modes.chain(properties).zip(&open[plan.files.len()..]) {
        if (wish.cancelled)() {
            return Ok(Some(FixOutcome::Interrupted));
        }
        switch.set(Some(&value)).map_err(FixError::Change)?;
    }
    let problems = plan.problems(host, &plan.without(host), wish.pages);
    if !problems.is_empty() {
        return Err(FixError::ReadBack { problems });
    }
    if (wish.cancelled)() {
        return Ok(Some(FixOutcome::Interrupted));
    }
    if !plan.lockout {
        return Ok(None);
    }
    // In this order: after the session is marked as waiting, the promised time applies even if assay is
    // stopped now.
    if let Some(watchers) = watchers.as_deref_mut() {
        watchers.stand_by.waits();
    }
    session.wait_for_confirmation().map_err(FixError::Change)?;
    let outside = watchers.as_deref().map(|watchers| &watchers.outside);
    Ok(match (wish.confirm)(session, outside) {
        Confirmation::Given => None,
        Confirmation::Late => Some(FixOutcome::NotConfirmed),
        Confirmation::Refused => Some(FixOutcome::Interrupted),
    })
}

/// Opens a setting of the plan and records it in the journal, if its file has not changed since the plan was
/// made.
fn open_setting<'a>(
    file: &FileChange,
    host: &'a dyn HostMut,
    session: &'a ChangeSession,
) -> Result<Switch<'a>, FixError> {
    let (setting, _) = file.setting();
    let switch = Switch::open(session, host, &setting).map_err(FixError::Change)?;
    let original = switch.original();
    let same = match file.is_running_value() {
        // The setting itself refuses a file that exists.
        _ if file.is_new() => original.value.is_none(),
        true => {
            let before = String::from_utf8_lossy(&file.before);
            original.value.as_deref().map(str::trim) == Some(before.trim())
        }
        false => {
            let wanted = blake3::hash(&file.before).to_hex();
            let found = original.file.as_ref();
            found.is_some_and(|found| found.blake3 == wanted.as_str())
        }
    };
    match same {
        true => Ok(switch),
        false => Err(FixError::Meanwhile {
            path: file.real.clone(),
        }),
    }
}

/// Opens the permissions of a file, if they have not changed since the plan was made.
fn open_permissions<'a>(
    mode: &ModeChange,
    host: &'a dyn HostMut,
    session: &'a ChangeSession,
) -> Result<Switch<'a>, FixError> {
    let (setting, _) = mode.setting();
    let switch = Switch::open(session, host, &setting).map_err(FixError::Change)?;
    let planned = format!("{:04o}", mode.before);
    match switch.original().value.as_deref() == Some(&planned) {
        true => Ok(switch),
        false => Err(FixError::Meanwhile {
            path: mode.real.clone(),
        }),
    }
}

/// Opens a property of a dataset, if its value has not changed since the plan was made.
fn open_property<'a>(
    property: &PropertyChange,
    host: &'a dyn HostMut,
    session: &'a ChangeSession,
) -> Result<Switch<'a>, FixError> {
    let (setting, _) = property.setting();
    let switch = Switch::open(session, host, &setting).map_err(FixError::Change)?;
    let value = switch.original().value.as_deref();
    // A default or an inherited value is none of the dataset itself.
    match value.is_none_or(|value| value == property.before) {
        true => Ok(switch),
        false => Err(FixError::Meanwhile {
            path: property.dataset.clone().into(),
        }),
    }
}

impl From<ChangeError> for FixError {
    fn from(error: ChangeError) -> Self {
        Self::Change(error)
    }
}
