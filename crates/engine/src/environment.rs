//! What every measurement needs from outside.

use crate::{Meter, Tools};
use assay_changes::Journal;
use assay_host::HostMut;
use assay_instruments::Cancel;
use assay_instruments::scratch::State;
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
    pub state: &'a State,
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
