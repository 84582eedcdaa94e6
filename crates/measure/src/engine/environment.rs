//! What every measurement needs from outside.

use crate::engine::{Meter, Tools};
use assay_changes::{ChangeError, Journal};
use assay_host::HostMut;
use assay_loads::Cancel;
use assay_loads::scratch::ScratchRegistry;
use assay_model::{FactKind, Facts, OPEN_CHANGES};
use jiff::Timestamp;
use std::path::Path;

/// What every measurement needs from outside.
#[derive(Clone, Copy)]
pub struct Environment<'a> {
    /// The machine.
    pub host: &'a dyn HostMut,
    /// fio, when it is not the one on PATH.
    pub fio: Option<&'a Path>,
    /// Where scratch files are entered.
    pub state: &'a ScratchRegistry,
    /// Where changes, and what is made, are entered.
    pub journal: &'a Journal,
    /// Asks to stop.
    pub cancel: &'a Cancel,
    /// The wall clock.
    pub now: &'a dyn Fn() -> Timestamp,
    /// Version of assay, stored with what was measured.
    pub version: &'static str,
}

impl<'a> Environment<'a> {
    /// Enters in the facts of a measurement which settings assays that are gone left changed. The judge doubts
    /// every sample with this fact.
    pub fn enter_open_changes(&self, facts: &mut Facts) {
        enter_open_changes(self.journal.left_changed(), facts);
    }

    /// What takes samples here; fio works in `work`.
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

/// As [`Environment::enter_open_changes`], of what the journal answered.
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
