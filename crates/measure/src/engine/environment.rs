//! The external resources that every measurement needs: machine, fio, scratch registry, journal, clock.

use crate::engine::{Meter, Tools};
use assay_changes::{ChangeError, Journal};
use assay_host::HostMut;
use assay_loads::Cancel;
use assay_loads::scratch::ScratchRegistry;
use assay_model::{FactKind, Facts, OPEN_CHANGES};
use jiff::Timestamp;
use std::path::Path;

/// The external resources that every measurement needs.
#[derive(Clone, Copy)]
pub struct Environment<'a> {
    /// The machine on which to measure.
    pub host: &'a dyn HostMut,
    /// Path of fio, if it is not the one on PATH.
    pub fio: Option<&'a Path>,
    /// Registry of scratch files.
    pub state: &'a ScratchRegistry,
    /// Journal of changes and created objects.
    pub journal: &'a Journal,
    /// Request to stop.
    pub cancel: &'a Cancel,
    /// The wall clock.
    pub now: &'a dyn Fn() -> Timestamp,
    /// Version of assay, stored with the results.
    pub version: &'static str,
}

impl<'a> Environment<'a> {
    /// Adds a fact that lists the settings that terminated assay processes have left changed. The judge adds a doubt to
    /// every sample with this fact.
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

/// Adds such a fact from the content of the journal, see [`Environment::enter_open_changes`].
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
