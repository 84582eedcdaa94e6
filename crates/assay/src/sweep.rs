//! Removes files of killed assay processes whenever a verb starts that works with the machine.

use crate::context;
use crate::verbs::trial::told;
use assay_changes::{Foreign, Journal};
use assay_host::LiveHost;
use assay_loads::scratch::{ScratchRegistry, Swept};

/// Removes scratch files and guests that killed assay processes left, and prints what was removed. Does nothing if
/// there is no state directory.
pub fn at_start() {
    assay_changes::fixes::sweep_outside(&LiveHost);
    // A verb that needs the directory reports its error.
    let Ok(dir) = context::state_dir() else {
        return;
    };
    if let Some(state) = ScratchRegistry::existing(&dir) {
        said(&state.sweep());
    }
    if let Some(guests) = assay_lab::GuestRegistry::existing(&dir) {
        match guests.sweep() {
            Ok(names) => guests_said(&names),
            Err(error) => eprintln!("something is left of a guest: {error}"),
        }
    }
}

/// Reverts all sessions that killed assay processes left in the journal. Does nothing unless `ours` returns true for
/// the label of at least one session.
pub fn journals(journal: &Journal, ours: fn(&str) -> bool) -> anyhow::Result<()> {
    if journal.pending()?.iter().any(|left| ours(&left.label)) {
        for one in journal.recover(&LiveHost, Foreign::Leave)? {
            // A process ends together with the assay that started it.
            if !one.what.starts_with("process ") {
                eprint!("left by an assay that was killed: {}", told(&one));
            }
        }
    }
    Ok(())
}

/// Prints the names of the guests that were removed.
pub fn guests_said(names: &[String]) {
    for name in names {
        eprintln!("removed what was left of guest {name}");
    }
}

/// Prints which files of killed assay processes were removed, and why others could not be removed.
pub fn said(found: &[Swept]) {
    for swept in found {
        let path = swept.path.to_string_lossy();
        let path = path.escape_debug();
        match &swept.error {
            None => eprintln!("removed {path}, left by an assay that was killed"),
            Some(error) => eprintln!(
                "{path} was left by an assay that was killed and was not removed: {error}"
            ),
        }
    }
}
