//! Exit statuses of assay.

use assay_fleet::SessionError;
use assay_fleet::session::SessionFault;
use assay_lab::LabError;
use std::process::ExitCode;

/// Exit status, which scripts can evaluate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// The verb succeeded, without findings.
    Ok = 0,
    /// Success, but there are findings or a criterion is not met.
    Findings = 1,
    /// Wrong usage, or a tool that failed.
    Error = 2,
    /// A required source could not be read.
    Unreadable = 3,
    /// Interrupted by the user. Results so far are stored.
    Interrupted = 130,
}

/// Marks an error as "a required source could not be read" (exit status 3). The text is the message.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub String);

impl Status {
    /// Returns the status of an error. It is 130 if the user interrupted work with a guest or another machine, 3 if
    /// [`Unreadable`] is among the causes, else 2.
    pub fn of(error: &anyhow::Error) -> Self {
        let interrupted = error.chain().any(|cause| {
            let machine: Option<&SessionError> = cause.downcast_ref();
            matches!(cause.downcast_ref(), Some(LabError::Interrupted))
                || machine.is_some_and(|error| error.kind == SessionFault::Interrupted)
        });
        let unreadable = error.chain().any(|cause| cause.is::<Unreadable>());
        match (interrupted, unreadable) {
            (true, _) => Self::Interrupted,
            (false, true) => Self::Unreadable,
            (false, false) => Self::Error,
        }
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        Self::from(status as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    #[test]
    fn the_status_of_an_error_tells_scripts_what_it_was() {
        let of = |error: anyhow::Error| Status::of(&error);
        assert_eq!(of(LabError::Interrupted.into()), Status::Interrupted);
        let unreadable = Err::<(), _>(Unreadable("no /proc".to_owned())).context("disks");
        assert_eq!(of(unreadable.unwrap_err()), Status::Unreadable);
        assert_eq!(of(anyhow::anyhow!("interrupted")), Status::Error);
    }
}
