//! Defines the meter, which takes samples, and the slot that it measures.

use crate::engine::{LoadTarget, Tools};
use assay_host::Host;
use assay_loads::Cancel;
use assay_loads::counters::Sources;
use assay_model::{Bytes, Load, Nanos};
use jiff::Timestamp;
use std::path::Path;

/// Takes samples on a machine.
#[derive(Clone, Copy)]
pub struct Meter<'a> {
    /// The machine.
    pub host: &'a dyn Host,
    /// Request to stop.
    pub cancel: &'a Cancel,
    /// The wall clock.
    pub now: &'a dyn Fn() -> Timestamp,
    /// Work directory for the files of fio and the symbolic links to targets.
    pub work: &'a Path,
    /// Tools of the loads, such as fio.
    pub tools: &'a Tools,
}

/// A slot to measure: load, target and position in the plan.
#[derive(Clone, Copy)]
pub struct MeterSlot<'a> {
    /// The load.
    pub load: &'a Load,
    /// Name of the load in the plan.
    pub name: &'a str,
    /// Ramp: operations that start within this time are not counted.
    pub ramp: Nanos,
    /// Time after the ramp in which operations are counted.
    pub runtime: Nanos,
    /// Time limit of one operation; an operation that takes longer counts as failed. fio has its own limit.
    pub limit: Nanos,
    /// Size of the data that fio uses.
    pub size: Bytes,
    /// Seed of fio's offsets and data.
    pub seed: u64,
    /// Target of the load.
    pub place: &'a LoadTarget,
    /// Kernel counters to read before and after the load.
    pub sources: &'a Sources,
    /// Name of the target.
    pub target: &'a str,
    /// Number of the round or pair, from 1.
    pub round: u32,
    /// Position among all slots of the plan.
    pub number: u32,
}
