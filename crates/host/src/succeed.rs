//! Runs programs that must be installed and must succeed.

use crate::{CommandOutput, Host, HostError, Limits};
use std::ffi::OsStr;

/// Reasons why a program did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandFailure {
    /// The program is not installed.
    #[error("it is not installed")]
    NotInstalled,
    /// The program ended with a nonzero status. The text is its message.
    #[error("{0}")]
    Complaint(String),
    /// The program could not be started, or did not end normally.
    #[error(transparent)]
    Host(HostError),
}

/// Runs a command with [`Host::run`]. Fails if the command does not exit with status 0.
///
/// # Errors
/// See [`CommandFailure`].
pub fn run_successfully<H: Host + ?Sized>(
    host: &H,
    argv: &[&OsStr],
    limits: Limits,
) -> Result<CommandOutput, CommandFailure> {
    match host.run(argv, limits) {
        Ok(output) if output.success() => Ok(output),
        Ok(output) => Err(CommandFailure::Complaint(output.complaint())),
        Err(error) if error.is_absent() => Err(CommandFailure::NotInstalled),
        Err(error) => Err(CommandFailure::Host(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LiveHost;

    #[test]
    fn each_failure_is_told_apart() {
        let run = |words: &[&str]| {
            let argv: Vec<_> = words.iter().map(OsStr::new).collect();
            run_successfully(&LiveHost, &argv, Limits::default())
        };
        assert!(run(&["true"]).is_ok());
        assert_eq!(
            run(&["no-such-program-here"]),
            Err(CommandFailure::NotInstalled)
        );
        let said = run(&["sh", "-c", "echo no >&2; exit 3"]).unwrap_err();
        assert_eq!(
            said,
            CommandFailure::Complaint("exit status 3: no".to_owned())
        );
    }
}
