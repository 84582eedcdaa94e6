//! Making the change, through the journal.

use crate::error::FixError;
use crate::plan::{FileChange, Plan};
use crate::stand_by::StandBy;
use assay_changes::{ChangeError, Journal, Outcome, Session, Switch};
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
    /// Waits for the user's confirmation. Asked only where somebody may be locked out.
    pub confirm: &'a mut dyn FnMut(&Session) -> Confirmation,
    /// Whether the user wants it to end.
    pub cancelled: &'a dyn Fn() -> bool,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// The change is kept; the number by which it can be taken back.
    Kept(String),
    /// It was made and taken back, because it was not confirmed in time.
    NotConfirmed,
    /// It was taken back, because the user wanted so.
    Interrupted,
}

/// What a session of a rule is called.
#[must_use]
pub fn label(rule: &str) -> String {
    format!("check --fix {rule}")
}

/// Makes the change of a plan, lets the program check it, reads everything back, and keeps it.
///
/// # Errors
/// What went wrong. Everything is taken back then, or [`FixError::NotTakenBack`] says what is not.
pub fn carry_out(plan: &Plan, wish: &mut Wish<'_>) -> Result<Done, FixError> {
    let begun = wish.journal.begin(&label(&plan.rule), &plan.target());
    let session = begun.map_err(FixError::Change)?;
    let mut stand_by = match plan.lockout {
        true => Some((wish.stand_by)(session.uid()).map_err(FixError::StandBy)?),
        false => None,
    };
    let made = make(plan, wish, &session, stand_by.as_mut());
    let done = match made {
        Ok(None) => session
            .put_by()
            .map(|()| Done::Kept(session.uid().to_owned()))
            .map_err(FixError::Change),
        Ok(Some(other)) => Ok(other),
        Err(error) => Err(error),
    };
    let told = match &done {
        Ok(Done::Kept(_)) => {
            end(stand_by);
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
            .filter(|one| !matches!(one.outcome, Outcome::Restored(_)))
            .map(|one| format!("{}: {}", one.what, why(&one.outcome)))
            .collect(),
        Err(error) => vec![error.to_string()],
    };
    if failed.is_empty() {
        end(stand_by);
        return done;
    }
    // Whoever stands by tries it once more.
    drop(stand_by);
    Err(FixError::NotTakenBack {
        first: told,
        failed,
    })
}

/// Why a setting is not as it was found.
fn why(outcome: &Outcome) -> String {
    match outcome {
        Outcome::LeftAlone { found, .. } => format!("somebody else has set it to {found} since"),
        Outcome::Doubtful(why) | Outcome::Failed(why) => why.clone(),
        Outcome::Restored(_) | Outcome::Removed | Outcome::Rebooted | Outcome::Gone => {
            "it is no longer there".to_owned()
        }
    }
}

fn end(stand_by: Option<StandBy>) {
    if let Some(stand_by) = stand_by {
        stand_by.dismiss();
    }
}

/// Makes the change; nothing when it is to be kept, else what became of it. On any other end than that
/// what was set is put back.
fn make(
    plan: &Plan,
    wish: &mut Wish<'_>,
    session: &Session,
    stand_by: Option<&mut StandBy>,
) -> Result<Option<Done>, FixError> {
    let mut open = Vec::new();
    let host = wish.host;
    let done = set(plan, host, wish, session, stand_by, &mut open);
    match done {
        Ok(None) => open.into_iter().for_each(Switch::leave),
        // The last one first. What fails here stays in the journal, and is told when that is closed.
        _ => while open.pop().is_some() {},
    }
    done
}

fn set<'a>(
    plan: &Plan,
    host: &'a dyn HostMut,
    wish: &mut Wish<'_>,
    session: &'a Session,
    stand_by: Option<&mut StandBy>,
    open: &mut Vec<Switch<'a>>,
) -> Result<Option<Done>, FixError> {
    for file in &plan.files {
        open.push(opened(file, host, session)?);
    }
    for (file, switch) in plan.files.iter().zip(open.iter()) {
        if (wish.cancelled)() {
            return Ok(Some(Done::Interrupted));
        }
        let value = file.setting().1;
        switch.set(value.as_deref()).map_err(FixError::Change)?;
    }
    let problems = plan.problems(host, &plan.without(host), wish.pages);
    if !problems.is_empty() {
        return Err(FixError::ReadBack { problems });
    }
    if (wish.cancelled)() {
        return Ok(Some(Done::Interrupted));
    }
    if !plan.lockout {
        return Ok(None);
    }
    // In this order: whoever sees that it waits may rely on the promised time, even if assay is stopped now.
    if let Some(stand_by) = stand_by {
        stand_by.waits();
    }
    session.wait_for_confirmation().map_err(FixError::Change)?;
    Ok(match (wish.confirm)(session) {
        Confirmation::Given => None,
        Confirmation::Late => Some(Done::NotConfirmed),
        Confirmation::Refused => Some(Done::Interrupted),
    })
}

/// A setting of the plan, entered in the journal, when its file is the one that the plan was made from.
fn opened<'a>(
    file: &FileChange,
    host: &'a dyn HostMut,
    session: &'a Session,
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
