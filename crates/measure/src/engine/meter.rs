//! The meter, and the definition of a slot.

use crate::engine::{LoadTarget, Tools};
use assay_host::Host;
use assay_loads::Cancel;
use assay_loads::counters::Sources;
use assay_model::{Bytes, Load, Nanos};
use jiff::Timestamp;
use std::path::Path;

/// Takes samples.
#[derive(Clone, Copy)]
pub struct Meter<'a> {
    /// The machine.
    pub host: &'a dyn Host,
    /// Request to stop.
    pub cancel: &'a Cancel,
    /// The wall clock.
    pub now: &'a dyn Fn() -> Timestamp,
    /// Work directory of fio and of the links to targets.
    pub work: &'a Path,
    /// Tools of the loads.
    pub tools: &'a Tools,
}

/// A slot: load, target and position.
#[derive(Clone, Copy)]
pub struct MeterSlot<'a> {
    /// The load.
    pub load: &'a Load,
    /// Its name in the plan.
    pub name: &'a str,
    /// Operations that begin within this time are not counted.
    pub ramp: Nanos,
    /// Operations are counted for this time.
    pub runtime: Nanos,
    /// An operation that takes longer counts as failed; fio has its own limit.
    pub limit: Nanos,
    /// Size of the data that fio uses.
    pub size: Bytes,
    /// Seed of fio's offsets and data.
    pub seed: u64,
    /// Target of the load.
    pub place: &'a LoadTarget,
    /// Counters that are read.
    pub sources: &'a Sources,
    /// Name of the target.
    pub target: &'a str,
    /// Round or pair.
    pub round: u32,
    /// Position in the plan.
    pub number: u32,
}
