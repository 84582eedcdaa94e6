//! The rungs, made and ready for load. Dropping them takes everything away.

mod make;

use super::MeasureError;
use super::guest;
use super::settle::Settle;
use super::volume::Held;
use assay_arms::Built;
use assay_host::Host;
use assay_instruments::Cancel;
use assay_instruments::counters::{Snapshot, Sources};
use assay_instruments::fio::{Fio, Output, Request};
use assay_lab::{Accel, Guest};
use assay_model::plan::Slot;
use assay_model::run::Run;
use assay_model::sample::{Counters, Sample};
use assay_model::target::FileState;
use assay_model::workload::Engine;
use assay_model::{Bytes, Nanos, TargetInfo, Workload};
use jiff::Timestamp;
use std::path::{Path, PathBuf};

/// What a load is pointed at. File and socket are links in the work directory.
#[derive(Clone, Debug)]
enum Place {
    File {
        link: String,
        state: Option<FileState>,
    },
    Nbd {
        link: String,
        export: String,
    },
    Guest {
        path: PathBuf,
    },
}

/// All rungs of a ladder.
pub(super) struct Bench<'a> {
    host: &'a dyn Host,
    fio: Fio,
    cancel: &'a Cancel,
    now: &'a dyn Fn() -> Timestamp,
    work: PathBuf,
    /// Where files and images are made.
    home: PathBuf,
    places: Vec<Place>,
    /// Of each rung.
    sources: Vec<Sources>,
    /// What became known of a rung only when it was made.
    pub(super) learnt: Vec<(usize, TargetInfo)>,
    settle: Settle,
    // What the places are, in the order in which it goes.
    guest: Option<Guest>,
    images: Vec<Built<'a>>,
    volumes: Vec<Held<'a>>,
}

impl<'a> Bench<'a> {
    fn guest(&self) -> Result<&Guest, MeasureError> {
        self.guest.as_ref().ok_or(MeasureError::Interrupted)
    }

    /// Whether the guest is emulated, and why.
    pub(super) fn accel(&self) -> Option<(Accel, Option<String>)> {
        let guest = self.guest.as_ref()?;
        Some((guest.accel().accel, guest.accel().why.clone()))
    }

    /// Takes one sample.
    pub(super) fn load(&self, run: &Run, number: u32, slot: &Slot) -> Result<Sample, MeasureError> {
        let workload = &run.plan.workloads[slot.workload];
        let rung = &run.targets[slot.target].name;
        let place = &self.places[slot.target];
        let size = run.plan.file_size;
        let sources = &self.sources[slot.target];
        self.settle.host(self.host, &self.home);
        let started = (self.now)();
        let before = Snapshot::take(self.host, sources);
        let mut output = self.fio(workload, rung, place, size, slot.seed)?;
        let counters = before.until(&Snapshot::take(self.host, sources));
        if let Place::Guest { .. } = place
            && Settle::leaves_dirty(workload)
        {
            guest::sync(self.guest()?, rung)?;
        }
        if let Place::Guest { .. } = place {
            output.wall = counters.elapsed;
        }
        let (outcome, jobs) = assay_runner::read(&output);
        Ok(Sample {
            workload: workload.name.clone(),
            target: rung.clone(),
            round: slot.round,
            slot: number,
            started,
            wall: output.wall,
            outcome,
            tool: match place {
                Place::Guest { .. } => "fio in the guest".to_owned(),
                _ => self.fio.version.clone(),
            },
            jobs,
            // Around the guest and the server it is the host's counters that say what happened;
            // whose CPU time it was they do not.
            counters: Counters {
                tool_cpu: match place {
                    Place::File { .. } => output.cpu,
                    _ => None,
                },
                ..counters
            },
            file: match place {
                Place::File { state, .. } => state.clone(),
                _ => None,
            },
            series: output.series,
        })
    }

    fn fio(
        &self,
        workload: &Workload,
        rung: &str,
        place: &Place,
        size: Bytes,
        seed: u64,
    ) -> Result<Output, MeasureError> {
        let job = match place {
            Place::File { link, .. } => {
                assay_fio::job::render(workload, Path::new(link), size, seed)
            }
            Place::Nbd { link, export } => {
                let workload = Workload {
                    engine: Engine::Nbd,
                    ..workload.clone()
                };
                assay_fio::job::render_nbd(&workload, Path::new(link), export, size, seed)
            }
            Place::Guest { path } => assay_fio::job::render(workload, path, size, seed),
        };
        let job = job.map_err(|error| unfit(&workload.name, &error))?;
        let [runtime, ramp] = [workload.runtime, workload.ramp].map(Option::unwrap_or_default);
        let planned = Nanos(runtime.0 + ramp.0);
        if let Place::Guest { .. } = place {
            return guest::load(self.guest()?, rung, &job, planned);
        }
        let request = Request {
            job: &job,
            work_dir: &self.work,
            log_every: Nanos((runtime.0 / 15).clamp(20_000_000, 10_000_000_000)),
            block: workload.block_size,
            limit: Nanos(planned.0 + runtime.0 + 30_000_000_000),
        };
        Ok(self.fio.run(&request, self.cancel)?)
    }
}

fn unfit(workload: &str, reason: &dyn std::fmt::Display) -> MeasureError {
    MeasureError::Job {
        workload: workload.to_owned(),
        reason: reason.to_string(),
    }
}
