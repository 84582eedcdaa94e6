//! Errors that occur when a remedy is applied. Each message contains a way out.

use crate::ChangeError;
use std::io;
use std::path::PathBuf;

/// Reason why a remedy was not applied. Unless the variant states otherwise, the machine is in its original
/// state.
#[derive(Debug, thiserror::Error)]
pub enum FixError {
    /// The advice page has no check, so there is nothing to fix.
    #[error("{rule} is a page to read: it has no check, so there is nothing to fix")]
    NoCheck {
        /// Id of the page.
        rule: String,
    },
    /// The check has no finding on this machine.
    #[error("{rule} was not found here; `assay check --only {rule}` looks for it")]
    NotFound {
        /// Id of the page.
        rule: String,
    },
    /// It is unknown whether the machine has the finding.
    #[error("{rule}: it is not known whether it is so: {why}")]
    Unknown {
        /// Id of the page.
        rule: String,
        /// Facts that could not be read.
        why: String,
    },
    /// The steps of the page would not remove the finding on this machine, or would cause new findings.
    #[error("{rule}: nothing was changed, because with the change {}", problems.join("; "))]
    WouldNotDo {
        /// Id of the page.
        rule: String,
        /// Findings that would remain, and findings that would appear.
        problems: Vec<String>,
    },
    /// A file has changed since the plan was made.
    #[error("{}: it was changed since the plan was made; nothing was changed by assay: begin again", path.display())]
    Meanwhile {
        /// Path of the changed file.
        path: PathBuf,
    },
    /// A change failed, or the program's own check rejected it.
    #[error("{0}; everything is as it was")]
    Change(#[source] ChangeError),
    /// After the change the machine is not in the planned state.
    #[error("read back, {}; everything was reverted", problems.join("; "))]
    ReadBack {
        /// Description of each difference from the plan.
        problems: Vec<String>,
    },
    /// The rollback failed; the changes stay in the journal.
    #[error("{first}, and taking it back failed: {}; `assay trial --recover` tries it again", failed.join("; "))]
    NotTakenBack {
        /// Why the change had to be rolled back.
        first: String,
        /// Descriptions of the changes that could not be rolled back.
        failed: Vec<String>,
    },
    /// No scheduler (systemd, cron, atd) is available to watch the change.
    #[error(
        "{rule}: nothing was changed, because this may lock you out and nothing here would revert it after assay was killed \
         or the machine started again: {source}. Start systemd, cron or atd, or make the change by hand \
         from a console: `assay check --fix {rule} --dry-run` shows its lines"
    )]
    NotProtected {
        /// Id of the page.
        rule: String,
        /// Why no scheduler can watch the change.
        source: crate::fixes::OutsideError,
    },
    /// The stand-by process could not be started.
    #[error(
        "what takes the change back when you are locked out could not be started: {0}; nothing was changed"
    )]
    StandBy(#[source] io::Error),
}

impl FixError {
    /// Returns the message without the part about the state of the machine, which is unknown while the rollback runs.
    pub(crate) fn cause(&self) -> String {
        match self {
            Self::Change(error) => error.to_string(),
            Self::ReadBack { problems } => format!("read back, {}", problems.join("; ")),
            other => other.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_says_nothing_of_the_state() {
        let refused = ChangeError::Foreign {
            path: "/x".into(),
            reason: "no".to_owned(),
        };
        let read_back = FixError::ReadBack {
            problems: vec!["ssh-usedns is still found".to_owned()],
        };
        let mut causes = Vec::new();
        for error in [FixError::Change(refused), read_back] {
            let cause = error.cause();
            assert!(error.to_string().starts_with(&cause));
            causes.push(cause);
        }
        insta::assert_snapshot!(causes.join("\n"), @r"
        /x: no
        read back, ssh-usedns is still found
        ");
    }
}
