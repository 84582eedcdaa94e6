//! The meter, which takes samples, and the slot that the meter measures.

use crate::engine::{LoadTarget, Tools};
use assay_host::Host;
use assay_loads::Cancel;
use assay_loads::counters::Sources;
use assay_model::{Bytes, Load, Nanos};
use jiff::Timestamp;
use std::path::Path;

/// Takes samples of loads on one machine.
#[derive(Clone, Copy)]
pub struct Meter<'a> {
    /// Machine on which the load runs.
    pub host: &'a dyn Host,
    /// Flag that is set when the user wants to stop.
    pub cancel: &'a Cancel,
    /// Function that returns the wall clock time.
    pub now: &'a dyn Fn() -> Timestamp,
    /// Directory for fio's files and the symbolic links to targets.
    pub work: &'a Path,
    /// Tools that the loads need, such as fio.
    pub tools: &'a Tools,
}

/// A slot to measure: its load, its target and its position in the plan.
#[derive(Clone, Copy)]
pub struct MeterSlot<'a> {
    /// Load that runs during the slot.
    pub load: &'a Load,
    /// Name of the load in the plan.
    pub name: &'a str,
    /// Length of the ramp. Operations that start during the ramp are not counted.
    pub ramp: Nanos,
    /// Time after the ramp in which operations are counted.
    pub runtime: Nanos,
    /// Time limit of one operation. An operation that takes longer counts as failed. fio has its own time limit.
    pub limit: Nanos,
    /// Size of the data that fio reads and writes.
    pub size: Bytes,
    /// Seed of fio's offsets and data.
    pub seed: u64,
    /// Where the load reads and writes, or which service it uses.
    pub place: &'a LoadTarget,
    /// Kernel counters to read before and after the load.
    pub sources: &'a Sources,
    /// Name of the target, which is stored with the sample.
    pub target: &'a str,
    /// Number of the round or pair, from 1.
    pub round: u32,
    /// Position of the slot among all slots of the plan.
    pub number: u32,
}
