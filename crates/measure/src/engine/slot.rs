//! Measures one slot: reads the counters, runs the load, reads the counters again, and builds a sample.

use crate::engine::EngineError;
use crate::engine::loads::{self, Taken};
use crate::engine::meter::{Meter, MeterSlot};
use assay_loads::counters::CounterSnapshot;
use assay_loads::fio::FioOutput;
use assay_model::Nanos;
use assay_model::sample::{Counters, Sample};
use jiff::Timestamp;

impl Meter<'_> {
    /// Measures a slot on this machine.
    ///
    /// # Errors
    /// The load cannot begin. If the load begins and fails later, the sample contains the error.
    pub fn take(&self, slot: &MeterSlot<'_>) -> Result<Sample, EngineError> {
        self.take_in(slot, &mut |_, _| {
            Err(EngineError::Unfit("a guest that is running"))
        })
    }

    /// Like [`Meter::take`], for a target that may be in a guest. There, `guest` runs the load; it receives fio's job
    /// and its duration.
    ///
    /// # Errors
    /// The load cannot begin, or an error of `guest`.
    pub fn take_in<E: From<EngineError>>(
        &self,
        slot: &MeterSlot<'_>,
        guest: &mut dyn FnMut(&str, Nanos) -> Result<FioOutput, E>,
    ) -> Result<Sample, E> {
        let started = (self.now)();
        let before = CounterSnapshot::take(self.host, slot.sources);
        let taken = loads::run(self, slot, guest)?;
        let counters = before.until(&CounterSnapshot::take(self.host, slot.sources));
        Ok(sample(slot, started, taken, counters))
    }
}

fn sample(slot: &MeterSlot<'_>, started: Timestamp, taken: Taken, counters: Counters) -> Sample {
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
