//! Reboots a guest. The guest's disks and the changes to its root file system remain.

use crate::error::LabError;
use crate::guest::Guest;
use crate::tools;
use assay_host::Limits;
use serde_json::json;
use std::ffi::OsStr;
use std::time::{Duration, Instant};

/// Interval at which assay checks whether the guest runs and whether the user interrupted.
const SLICE: Duration = Duration::from_millis(200);

/// How the guest is rebooted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reboot {
    /// Orderly reboot of the guest's system: services stop, file systems are unmounted.
    Asked,
    /// Reset button: only the guest's memory is lost. Data that the guest wrote to a disk remains, even if it is only
    /// in a cache of the host. [`Guest::cut_power`] and the power-cut experiment lose such data, too.
    Reset,
}

impl Guest {
    /// Reboots the guest and waits until the agent answers. Shutdown and start may take up to `limit` each.
    ///
    /// # Errors
    /// The guest does not go down or come up in time, or has ended.
    pub fn reboot(&self, how: Reboot, limit: Duration) -> Result<(), LabError> {
        // Guests run with -no-reboot, so that a panic ends them. This is disabled until the agent answers:
        // SeaBIOS resets once more (`tryReboot`, src/resume.c), and a guest whose reboot was not awaited
        // (after Ctrl-C) must complete it.
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

    /// Sets what QEMU does when a guest reboots (`set-action`, qapi/run-state.json).
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
