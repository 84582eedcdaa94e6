//! With what a slot is measured, and what is done in it.

use crate::engine::{LoadTarget, Tools};
use assay_host::Host;
use assay_loads::Cancel;
use assay_loads::counters::Sources;
use assay_model::{Bytes, Load, Nanos};
use jiff::Timestamp;
use std::path::Path;

/// What takes samples.
#[derive(Clone, Copy)]
pub struct Meter<'a> {
    /// The machine.
    pub host: &'a dyn Host,
    /// Asks to stop.
    pub cancel: &'a Cancel,
    /// The wall clock.
    pub now: &'a dyn Fn() -> Timestamp,
    /// Where fio works, and where the links of places are.
    pub work: &'a Path,
    /// What the loads need.
    pub tools: &'a Tools,
}

/// What is done, to what, and where it belongs.
#[derive(Clone, Copy)]
pub struct MeterSlot<'a> {
    /// What is done.
    pub load: &'a Load,
    /// Its name in the plan.
    pub name: &'a str,
    /// Operations that begin in this time are not counted.
    pub ramp: Nanos,
    /// Operations begin during this time.
    pub runtime: Nanos,
    /// An operation that takes longer has failed; fio has a limit of its own.
    pub limit: Nanos,
    /// On how much fio works.
    pub size: Bytes,
    /// Chooses fio's offsets and data.
    pub seed: u64,
    /// To what it is done.
    pub place: &'a LoadTarget,
    /// What is counted meanwhile.
    pub sources: &'a Sources,
    /// Name of the target.
    pub target: &'a str,
    /// Round, or pair.
    pub round: u32,
    /// Position in the plan.
    pub number: u32,
}
