//! One slot: counters before, load, counters after, a sample.

use crate::loads::{self, Taken};
use crate::{EngineError, Place, Tools};
use assay_host::Host;
use assay_instruments::Cancel;
use assay_instruments::counters::{Snapshot, Sources};
use assay_instruments::fio::Output;
use assay_model::sample::{Counters, Sample};
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
pub struct Slot<'a> {
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
    pub place: &'a Place,
    /// What is counted meanwhile.
    pub sources: &'a Sources,
    /// Name of the target.
    pub target: &'a str,
    /// Round, or pair.
    pub round: u32,
    /// Position in the plan.
    pub number: u32,
}

impl Meter<'_> {
    /// Measures a slot on this machine.
    ///
    /// # Errors
    /// The load cannot begin. One that fails is a sample that says so.
    pub fn take(&self, slot: &Slot<'_>) -> Result<Sample, EngineError> {
        self.take_in(slot, &mut |_, _| {
            Err(EngineError::Unfit("a guest that is running"))
        })
    }

    /// As [`Meter::take`]; a place in a guest is loaded by `guest`, which gets fio's job and how long
    /// it loads.
    ///
    /// # Errors
    /// The load cannot begin, or what `guest` says.
    pub fn take_in<E: From<EngineError>>(
        &self,
        slot: &Slot<'_>,
        guest: &mut dyn FnMut(&str, Nanos) -> Result<Output, E>,
    ) -> Result<Sample, E> {
        let started = (self.now)();
        let before = Snapshot::take(self.host, slot.sources);
        let taken = loads::run(self, slot, guest)?;
        let counters = before.until(&Snapshot::take(self.host, slot.sources));
        Ok(sample(slot, started, taken, counters))
    }
}

fn sample(slot: &Slot<'_>, started: Timestamp, taken: Taken, counters: Counters) -> Sample {
    Sample {
        workload: slot.name.to_owned(),
        target: slot.target.to_owned(),
        round: slot.round,
        slot: slot.number,
        started,
        wall: taken.wall.unwrap_or(counters.elapsed),
        outcome: taken.outcome,
        tool: taken.tool,
        workers: taken.workers,
        counters: Counters {
            tool_cpu: taken.cpu,
            ..counters
        },
        file: slot.place.state().cloned(),
        series: taken.series,
    }
}
