//! Protects a session by a job of systemd, cron or atd, the watch. It reverts everything after a reboot, or if both
//! assay and its stand-by process are killed. `assay_changes::fixes` installs the watch.

use super::Args;
use crate::context;
use assay_changes::fixes::{OutsideUndo, Unconfirmed, sweep_outside};
use assay_changes::survives_reboot;
use assay_host::LiveHost;
use assay_tune::TuneRecord;
use std::cell::RefCell;
use std::time::Duration;

/// The watch of one session. It is installed when the session begins.
pub(super) struct OutsideWatch {
    is_wanted: bool,
    is_quiet: bool,
    /// Whether at least one change would survive a reboot.
    outlasts_boot: bool,
    within: Duration,
    armed: RefCell<Option<OutsideUndo>>,
}

impl OutsideWatch {
    /// Creates the value; does not install the watch yet.
    pub(super) fn new(args: &Args, record: &TuneRecord) -> Self {
        let touches_something = record.changes.iter().any(Option::is_some);
        Self {
            is_wanted: !args.no_boot_undo && touches_something,
            is_quiet: args.quiet,
            outlasts_boot: record
                .changes
                .iter()
                .flatten()
                .any(|change| survives_reboot(&change.setting)),
            within: record.plan.budget.into(),
            armed: RefCell::new(None),
        }
    }

    /// Installs the watch for a session of the journal. Without root or a scheduler, the session continues without a
    /// watch.
    pub(super) fn arm(&self, session: &str) {
        if !self.is_wanted {
            return;
        }
        sweep_outside(&LiveHost);
        let armed = context::journal_dir().map(|journal| {
            let what = Unconfirmed {
                session,
                label: "assay tune",
                journal: &journal,
                within: self.within,
                files: &[],
            };
            OutsideUndo::arm(what, &LiveHost)
        });
        match armed {
            Ok(Ok(undo)) => {
                self.print(&format!(
                    "if this machine reboots, everything is reverted by {}",
                    undo.describe()
                ));
                self.armed.replace(Some(undo));
            }
            // A reboot resets everything.
            Ok(Err(_)) if !self.outlasts_boot => {}
            Ok(Err(error)) => self.print(&format!(
                "after a reboot, `assay trial --recover` has to be run by hand: {error}"
            )),
            Err(error) => self.print(&format!("no watch over the session: {error}")),
        }
    }

    /// Removes the watch. Called after each change was kept or reverted.
    pub(super) fn disarm(&self) {
        if let Some(undo) = self.armed.take()
            && let Err(error) = undo.disarm(&LiveHost)
        {
            self.print(&format!(
                "the watch over the session removes itself later: {error}"
            ));
        }
    }

    fn print(&self, line: &str) {
        if !self.is_quiet {
            eprintln!("{line}");
        }
    }
}
