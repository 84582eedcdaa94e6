//! External resources that every measurement needs: machine, fio, scratch registry, journal and clock.

use crate::engine::{Meter, Tools};
use assay_changes::{ChangeError, Journal};
use assay_host::HostMut;
use assay_loads::Cancel;
use assay_loads::scratch::ScratchRegistry;
use assay_model::{FactKind, Facts, OPEN_CHANGES};
use jiff::Timestamp;
use std::path::Path;
use std::process::Command;

/// External resources that every measurement needs, passed from the command line to the engine.
#[derive(Clone, Copy)]
pub struct Environment<'a> {
    /// Machine on which the load runs.
    pub host: &'a dyn HostMut,
    /// Path of fio; `None` means the fio on PATH.
    pub fio: Option<&'a Path>,
    /// Registry of scratch files, from which a crash can be cleaned up.
    pub state: &'a ScratchRegistry,
    /// Journal of changes and created objects, from which a crash can be undone.
    pub journal: &'a Journal,
    /// Flag that is set when the user wants to stop.
    pub cancel: &'a Cancel,
    /// Function that returns the wall clock time.
    pub now: &'a dyn Fn() -> Timestamp,
    /// Version of assay, which is stored with the results.
    pub version: &'static str,
    /// Function that returns the command of a helper process, which runs the commands of loads
    /// ([`assay_loads::command_helper`]). `None` means that this process runs them.
    pub command_helper: Option<fn() -> Command>,
}

impl<'a> Environment<'a> {
    /// Adds a fact that lists the settings which terminated assay processes left changed. The judge adds a doubt (a
    /// reason to distrust a figure) to every sample with this fact.
    pub fn enter_open_changes(&self, facts: &mut Facts) {
        enter_open_changes(self.journal.left_changed(), facts);
    }

    /// Returns the meter of this environment; fio runs in `work`.
    #[must_use]
    pub fn meter(&self, work: &'a Path, tools: &'a Tools) -> Meter<'a> {
        Meter {
            host: self.host,
            cancel: self.cancel,
            now: self.now,
            work,
            tools,
        }
    }
}

/// Adds the fact of [`Environment::enter_open_changes`] from the content of the journal.
pub fn enter_open_changes(changed: Result<Vec<String>, ChangeError>, facts: &mut Facts) {
    let (kind, source) = (FactKind::Runtime, "the journal of assay");
    match changed {
        Ok(changed) if changed.is_empty() => {
            facts.map.remove(OPEN_CHANGES);
        }
        Ok(changed) => facts.known(OPEN_CHANGES, changed, kind, source),
        Err(error) => facts.unknown(OPEN_CHANGES, error.to_string(), kind, source),
    }
}
