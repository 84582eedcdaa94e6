//! Runs the load of IMAP sign-ins.

use crate::engine::{EngineError, Meter};
use assay_loads::{LoadError, LoadResult, Timing, imap};

pub(super) fn run(
    address: &str,
    user: &str,
    password_file: &str,
    sessions: u32,
    timing: Timing,
    meter: &Meter<'_>,
) -> Result<Result<LoadResult, LoadError>, EngineError> {
    let password = meter.tools.password(password_file).cloned();
    let request = imap::ImapRequest {
        address: address.to_owned(),
        user: user.to_owned(),
        password: password.ok_or(EngineError::Unfit("a password"))?,
        sessions,
        timing,
    };
    Ok(imap::run(&request, meter.cancel))
}
