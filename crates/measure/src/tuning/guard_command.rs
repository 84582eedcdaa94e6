//! Runs the user's guard command, which must succeed while changes are in effect, and waits between steps.

use super::driver::MachineDriver;
use super::error::TuneError;
use crate::trials::bench::monotonic_time;
use assay_host::{Host, Limits};
use assay_model::Nanos;
use assay_tune::Incident;
use std::ffi::OsStr;
use std::time::Duration;

/// Time limit of the guard command.
const GUARD_LIMIT: Duration = Duration::from_secs(60);
/// Pause after a failed guard command before it is run again.
const GUARD_AGAIN: Duration = Duration::from_secs(1);

impl MachineDriver<'_> {
    /// Runs the user's guard command, and runs it a second time if it fails. Returns the error if it failed twice.
    pub(super) fn ask_guard_command(&self) -> Result<Option<String>, TuneError> {
        let Some(argv) = &self.lent.commands.guard else {
            return Ok(None);
        };
        let mut failure = None;
        for attempt in 0..2 {
            if attempt > 0 {
                std::thread::sleep(GUARD_AGAIN);
            }
            failure = run_guard_command(self.lent.env.host, argv);
            if failure.is_none() {
                break;
            }
            if self.is_cancelled() {
                return Err(TuneError::Stopped(Incident::Stop));
            }
        }
        Ok(failure)
    }

    /// Waits for a time. Returns early if a signal arrives.
    pub(super) fn wait(&self, time: Nanos) -> Result<(), TuneError> {
        let until = monotonic_time() + Duration::from(time);
        loop {
            if self.is_cancelled() {
                return Err(TuneError::Stopped(Incident::Stop));
            }
            let left = until.saturating_sub(monotonic_time());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(Duration::from_millis(100)));
        }
    }
}

/// Runs a guard command once. Returns the error if it failed.
fn run_guard_command(host: &dyn Host, argv: &[String]) -> Option<String> {
    let argv: Vec<&OsStr> = argv.iter().map(OsStr::new).collect();
    let limits = Limits {
        timeout: GUARD_LIMIT,
    };
    match host.run(&argv, limits) {
        Err(error) => Some(error.to_string()),
        Ok(output) => (!output.success()).then(|| output.complaint()),
    }
}
