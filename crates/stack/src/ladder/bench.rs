//! The created layers, ready for loads. Dropping the value removes all of them.

mod make;

use super::MeasureError;
use super::flush_writeback::WritebackFlusher;
use super::guest;
use super::volume::Held;
use assay_changes::side_by_side::{Built, LoopVolume};
use assay_lab::{Accel, Guest};
use assay_loads::counters::Sources;
use assay_measure::engine::{Environment, LoadTarget, Tools, Turn};
use assay_model::TargetInfo;
use assay_model::run::Run;
use assay_model::sample::Sample;
use std::path::PathBuf;
use std::time::Duration;

/// All measured layers of a ladder after their creation.
pub(super) struct Bench<'a> {
    env: Environment<'a>,
    tools: Tools,
    work: PathBuf,
    /// Scratch directory that contains the files and images.
    home: PathBuf,
    places: Vec<LoadTarget>,
    /// Kernel counters to read for each measured layer.
    sources: Vec<Sources>,
    /// Properties of measured layers that are known only after their creation, each with the layer's index.
    pub(super) learnt: Vec<(usize, TargetInfo)>,
    settle: WritebackFlusher,
    // Dropped in this order: the guest uses the targets below.
    guest: Option<Guest>,
    images: Vec<Built<'a>>,
    loops: Vec<LoopVolume<'a>>,
    volumes: Vec<Held<'a>>,
}

impl<'a> Bench<'a> {
    fn guest(&self) -> Result<&Guest, MeasureError> {
        self.guest.as_ref().ok_or(MeasureError::Interrupted)
    }

    /// Returns the accelerator of the guest (KVM or TCG); `None` without a guest. For TCG, also returns why KVM is not
    /// used.
    pub(super) fn accel(&self) -> Option<(Accel, Option<String>)> {
        let guest = self.guest.as_ref()?;
        Some((guest.accel().accel, guest.accel().why.clone()))
    }

    /// Takes one sample on the layer that the slot names. First flushes dirty pages.
    pub(super) fn load(&self, run: &Run, turn: Turn<'_>) -> Result<Sample, MeasureError> {
        let place = &self.places[turn.slot.target];
        self.settle.host(self.env.host, &self.home);
        if let LoadTarget::File { dir: Some(dir), .. } = place {
            self.settle.host(self.env.host, dir);
        }
        let meter = self.env.meter(&self.work, &self.tools);
        let sources = &self.sources[turn.slot.target];
        let slot = turn.measured(place, sources, run.plan.file_size);
        let mut sample = meter.take_in(&slot, &mut |job, planned| {
            let limit = Duration::from(planned) + assay_lab::FIO_START_AND_END;
            let output = self.guest()?.load(job, limit);
            output.map_err(MeasureError::guest(turn.target))
        })?;
        let leaves_dirty = turn
            .workload
            .fio()
            .is_some_and(WritebackFlusher::leaves_dirty);
        if leaves_dirty && let LoadTarget::Guest { .. } = place {
            guest::sync(self.guest()?, turn.target)?;
        }
        // For guests and servers the host's counters describe the I/O, but cannot attribute CPU
        // time.
        if !matches!(place, LoadTarget::File { .. }) {
            sample.counters.tool_cpu = None;
        }
        Ok(sample)
    }
}

fn unfit_workload(workload: &str, reason: &dyn std::fmt::Display) -> MeasureError {
    MeasureError::Job {
        workload: workload.to_owned(),
        reason: reason.to_string(),
    }
}
