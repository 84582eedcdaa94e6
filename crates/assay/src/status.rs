//! How assay ends: its exit status.

use assay_fleet::SessionError;
use assay_fleet::session::SessionFault;
use assay_lab::LabError;
use std::process::ExitCode;

/// How assay ended, for scripts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Done, nothing to complain about.
    Ok = 0,
    /// Done; there are findings, or a criterion was missed.
    Findings = 1,
    /// Wrong usage, or a tool failed.
    Error = 2,
    /// Something needed could not be read.
    Unreadable = 3,
    /// Interrupted by the user; what was done until then is kept.
    Interrupted = 130,
}

/// Marks an error as "could not read what was needed" (exit status 3).
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub String);

impl Status {
    /// Status for an error: 130 when the user interrupted work with a guest or another machine, 3 when [`Unreadable`] is
    /// among its causes, else 2.
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
