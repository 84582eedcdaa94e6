//! Making the change, through the journal.

use crate::fixes::error::FixError;
use crate::fixes::outside::{OutsideError, OutsideUndo};
use crate::fixes::plan::{FileChange, FixPlan};
use crate::fixes::stand_by::StandBy;
use crate::{ChangeError, ChangeSession, Journal, RecoveryOutcome, Switch};
use assay_host::HostMut;
use assay_model::advice::Advice;

/// What became of waiting for the user's confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// It came.
    Given,
    /// It did not come in time.
    Late,
    /// The user said no, or interrupted.
    Refused,
}

/// What a caller lends to the making of a change.
pub struct Wish<'a> {
    /// The machine.
    pub host: &'a dyn HostMut,
    /// Where the change is entered.
    pub journal: &'a Journal,
    /// All pages: what is read back.
    pub pages: &'a [&'a Advice],
    /// Starts what stands by for a session, given its number. Asked only where somebody may be locked out.
    pub stand_by: &'a dyn Fn(&str) -> std::io::Result<StandBy>,
    /// Lets the machine itself look after a session. Asked only where somebody may be locked out.
    pub outside: &'a dyn Fn(&ChangeSession) -> Result<OutsideUndo, OutsideError>,
    /// Waits for the user's confirmation. Asked only where somebody may be locked out.
    pub confirm: &'a mut dyn FnMut(&ChangeSession, Option<&OutsideUndo>) -> Confirmation,
    /// Whether the user wants it to end.
    pub cancelled: &'a dyn Fn() -> bool,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FixOutcome {
    /// The change is kept; the number by which it can be taken back.
    Kept(String),
    /// It was made and taken back, because it was not confirmed in time.
    NotConfirmed,
    /// It was taken back, because the user wanted so.
    Interrupted,
}

/// What a session of a rule is called.
#[must_use]
pub fn session_label(rule: &str) -> String {
    format!("check --fix {rule}")
}

/// Makes the change of a plan, lets the program check it, reads everything back, and keeps it.
///
/// # Errors
/// What went wrong. Everything is taken back then, or [`FixError::NotTakenBack`] says what is not.
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
    // What `make` left open, because it was to be kept or could not be put back.
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
    // Whoever looks after it tries it once more.
    drop(watchers);
    Err(FixError::NotTakenBack {
        first: told,
        failed,
    })
}

/// Why a setting is not as it was found.
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

/// Who looks after a change that may lock somebody out.
struct Watchers {
    stand_by: StandBy,
    outside: OutsideUndo,
}

impl Watchers {
    /// Posts both, before anything is changed.
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
        // What does not go is removed by the next look of what was armed.
        let _ = outside.disarm(host);
    }
}

/// Makes the change; nothing when it is to be kept, else what became of it. On any other end than that
/// what was set is put back.
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
        // The last one first. What fails here stays in the journal, and is told when that is closed.
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
    for (file, switch) in plan.files.iter().zip(open.iter()) {
        if (wish.cancelled)() {
            return Ok(Some(FixOutcome::Interrupted));
        }
        let value = file.setting().1;
        switch.set(value.as_deref()).map_err(FixError::Change)?;
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
    // In this order: whoever sees that it waits may rely on the promised time, even if assay is stopped now.
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

/// A setting of the plan, entered in the journal, when its file is the one that the plan was made from.
fn open_setting<'a>(
    file: &FileChange,
    host: &'a dyn HostMut,
    session: &'a ChangeSession,
) -> Result<Switch<'a>, FixError> {
    let (setting, _) = file.setting();
    let switch = Switch::open(session, host, &setting).map_err(FixError::Change)?;
    let wanted = blake3::hash(&file.before).to_hex();
    let found = switch.original().file.as_ref();
    match found.is_some_and(|found| found.blake3 == wanted.as_str()) {
        true => Ok(switch),
        false => Err(FixError::Meanwhile {
            path: file.real.clone(),
        }),
    }
}

impl From<ChangeError> for FixError {
    fn from(error: ChangeError) -> Self {
        Self::Change(error)
    }
}
