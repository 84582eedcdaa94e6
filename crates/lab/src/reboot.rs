//! A guest that starts anew, with its disks and what was changed on its root.

use crate::error::LabError;
use crate::guest::Guest;
use crate::tools;
use assay_host::Limits;
use serde_json::json;
use std::ffi::OsStr;
use std::time::{Duration, Instant};

/// How often is looked whether the guest lives and the user still wants it.
const SLICE: Duration = Duration::from_millis(200);

/// How a guest is made to start anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reboot {
    /// Its system is asked: services stop, file systems are unmounted.
    Asked,
    /// The reset button: what the guest had only in its memory is gone. What it had written to a disk
    /// is there, in whichever cache; [`Guest::cut_power`] and the power-cut experiment lose that too.
    Reset,
}

impl Guest {
    /// Starts the guest anew and waits until it answers, each for `limit` at most.
    ///
    /// # Errors
    /// It does not go down or come up in time, or it is gone.
    pub fn reboot(&self, how: Reboot, limit: Duration) -> Result<(), LabError> {
        // Guests run with -no-reboot, so that one that panics ends instead of beginning again. That is
        // lifted until the agent answers: SeaBIOS resets once more (`tryReboot`, src/resume.c), and a guest
        // whose reboot was not waited for, as after Ctrl-C, goes on with it.
        self.on_reboot("reset")?;
        self.go_down(how, limit)?;
        self.forget_channels();
        self.greet(limit)?;
        self.on_reboot("shutdown")?;
        if self.dir().join(tools::FILE).exists() {
            self.install(&tools::INSTALL)?;
        }
        Ok(())
    }

    /// What QEMU does when the guest reboots (`set-action`, qapi/run-state.json).
    fn on_reboot(&self, action: &str) -> Result<(), LabError> {
        self.qmp("set-action", json!({ "reboot": action }))
            .map(drop)
    }

    fn go_down(&self, how: Reboot, limit: Duration) -> Result<(), LabError> {
        let deadline = Instant::now() + limit;
        let mut monitor = self.monitor()?;
        match how {
            Reboot::Reset => drop(monitor.execute("system_reset", json!({}))?),
            Reboot::Asked => {
                let argv = ["systemctl", "reboot", "--no-block"].map(OsStr::new);
                let output = self.run(&argv, Limits { timeout: limit })?;
                if !output.success() {
                    return Err(LabError::Reboot(output.complaint()));
                }
            }
        }
        while Instant::now() < deadline {
            self.watch()?;
            let events = monitor.wait_for_events(SLICE)?;
            if events.iter().any(|event| event["event"] == "RESET") {
                return Ok(());
            }
        }
        Err(LabError::Reboot(format!(
            "its system has not gone down for {} s",
            limit.as_secs()
        )))
    }
}
