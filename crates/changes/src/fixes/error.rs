//! Why a remedy was not carried out, and the way out.

use crate::ChangeError;
use std::io;
use std::path::PathBuf;

/// Why a remedy was not carried out. Unless it says otherwise, the machine is as it was.
#[derive(Debug, thiserror::Error)]
pub enum FixError {
    /// The page looks for nothing.
    #[error("{rule} is a page to read: it has no check, so there is nothing to mend")]
    NoCheck {
        /// Its id.
        rule: String,
    },
    /// It was not found here.
    #[error("{rule} was not found here; `assay check --only {rule}` looks for it")]
    NotFound {
        /// Id of the rule.
        rule: String,
    },
    /// It could not be found out whether it is so.
    #[error("{rule}: it is not known whether it is so: {why}")]
    Unknown {
        /// Id of the rule.
        rule: String,
        /// What could not be read.
        why: String,
    },
    /// The steps in the page would not do here.
    #[error("{rule}: nothing was changed, because with the change {}", problems.join("; "))]
    WouldNotDo {
        /// Id of the rule.
        rule: String,
        /// What would be wrong then.
        problems: Vec<String>,
    },
    /// A file is not the one that the plan was made from.
    #[error("{}: it was changed since the plan was made; nothing was changed by assay: begin again", path.display())]
    Meanwhile {
        /// The file.
        path: PathBuf,
    },
    /// A change could not be made, or was not accepted.
    #[error("{0}; everything is as it was")]
    Change(#[source] ChangeError),
    /// What the machine says afterwards is not what was wanted.
    #[error("read back, {}; everything was taken back", problems.join("; "))]
    ReadBack {
        /// What is wrong.
        problems: Vec<String>,
    },
    /// Taking back failed; it stays in the journal.
    #[error("{first}, and taking it back failed: {}; `assay trial --recover` tries it again", failed.join("; "))]
    NotTakenBack {
        /// Why it was to be taken back.
        first: String,
        /// What could not be taken back.
        failed: Vec<String>,
    },
    /// Nothing outside of the session would take it back.
    #[error(
        "{rule}: nothing was changed, because this may lock you out and nothing here would take it back after assay was killed or the machine started again: {source}. Start systemd, cron or atd, or make the change by hand from a console: `assay check --fix {rule} --dry-run` shows its lines"
    )]
    NotProtected {
        /// Id of the rule.
        rule: String,
        /// Why not.
        source: crate::fixes::OutsideError,
    },
    /// The process that stands by could not be started.
    #[error(
        "what takes the change back when you are locked out could not be started: {0}; nothing was changed"
    )]
    StandBy(#[source] io::Error),
}

impl FixError {
    /// What went wrong, without what is said of the state of the machine: that is not yet known while it is
    /// being taken back.
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
