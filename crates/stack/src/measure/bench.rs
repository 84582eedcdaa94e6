//! The rungs, made and ready for load. Dropping them takes everything away.

use super::guest;
use super::ladder::Recipe;
use super::settle::Settle;
use super::volume::{self, Held};
use super::{Environment, Event, Lab, MeasureError, Prepared, Tell};
use assay_arms::{Built, Endpoint};
use assay_changes::Session;
use assay_host::Host;
use assay_instruments::counters::{Snapshot, Sources};
use assay_instruments::fio::{Fio, Output, Request};
use assay_instruments::scratch::{self, Scratch};
use assay_instruments::{Cancel, file_state, layout};
use assay_lab::{Accel, Disk, Guest, Options};
use assay_model::change::Arm;
use assay_model::plan::Slot;
use assay_model::run::Run;
use assay_model::sample::{Counters, Sample};
use assay_model::target::FileState;
use assay_model::workload::Engine;
use assay_model::{Bytes, Nanos, TargetInfo, Workload};
use jiff::Timestamp;
use std::path::{Path, PathBuf};
use std::time::Duration;

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
    _images: Vec<Built<'a>>,
    _scratch: Vec<Scratch>,
    volumes: Vec<Held<'a>>,
}

impl<'a> Bench<'a> {
    /// Makes all rungs and writes their files from end to end.
    pub(super) fn new(
        prepared: &Prepared,
        env: &Environment<'a>,
        session: &'a Session,
        scratch: &scratch::Session,
        tell: &mut Tell<'_>,
    ) -> Result<Self, MeasureError> {
        let run = &prepared.run;
        let mut bench = Self {
            host: env.host,
            fio: prepared.fio.clone(),
            cancel: env.cancel,
            now: env.now,
            work: scratch.dir().to_owned(),
            home: prepared.wanted.target.clone(),
            places: Vec::new(),
            sources: Vec::new(),
            learnt: Vec::new(),
            settle: Settle::new(prepared),
            guest: None,
            _images: Vec::new(),
            _scratch: Vec::new(),
            volumes: Vec::new(),
        };
        for (index, recipe) in prepared.recipes.iter().enumerate() {
            if env.cancel.is_cancelled() {
                return Err(MeasureError::Interrupted);
            }
            let info = &run.targets[index];
            let rung = &info.name;
            let seed = run.plan.seed ^ index as u64;
            let dir = match recipe {
                Recipe::Home(_) | Recipe::Volume(_) => &prepared.wanted.target,
                _ => &bench.home,
            };
            let place = assay_arms::Place {
                dir: dir.clone(),
                name: rung.clone(),
                size: run.plan.file_size,
            };
            if matches!(recipe, Recipe::Disk { .. }) && bench.guest.is_none() {
                tell(Event::Making("guest"));
                bench.guest = boot(prepared, env, &bench.home)?;
            }
            if !matches!(recipe, Recipe::Again(_)) {
                tell(Event::Making(rung));
            }
            let mut devices = info.devices.clone();
            let made = match recipe {
                Recipe::File => bench.file(prepared, scratch, seed, tell)?,
                Recipe::Home(volume) | Recipe::Volume(volume) => {
                    let held = volume::build(env, session, volume, &place)?;
                    let path = held.path().to_owned();
                    if let (Recipe::Home(_), Some(dir)) = (recipe, path.parent()) {
                        bench.home = dir.to_owned();
                    }
                    if !volume.is_zfs() {
                        let found = assay_facts::target(env.host, &path)?;
                        devices.clone_from(&found.devices);
                        bench.learnt.push((index, found));
                    }
                    bench.volumes.push(held);
                    Place::File {
                        link: bench.link(rung, &path)?,
                        state: file_state::look(&path)
                            .ok()
                            .filter(|state| state.size.0 > 0),
                    }
                }
                Recipe::Image(arm) => {
                    let arm = Arm::Image(arm.clone());
                    let built = assay_arms::build(env.host, session, &arm, &place, env.cancel);
                    bench.image(rung, built)?
                }
                Recipe::Disk { disk, on } => {
                    let guest = bench.guest()?;
                    let device = guest.devices(&[&disk.name]);
                    let device = device.map_err(MeasureError::guest(rung))?.remove(0);
                    let path = guest::pile(guest, rung, &device, on)?;
                    let job = assay_fio::job::layout_job(&path, run.plan.file_size, seed);
                    guest::lay_out(guest, rung, &job.map_err(|error| unfit("layout", &error))?)?;
                    Place::Guest { path }
                }
                Recipe::Again(of) => {
                    let known = bench.learnt.iter().find(|(index, _)| index == of).cloned();
                    if let Some((_, found)) = known {
                        devices.clone_from(&found.devices);
                        bench.learnt.push((index, found));
                    }
                    bench.places[*of].clone()
                }
            };
            bench.places.push(made);
            bench.sources.push(Sources::find(env.host, &devices));
        }
        Ok(bench)
    }

    fn guest(&self) -> Result<&Guest, MeasureError> {
        self.guest.as_ref().ok_or(MeasureError::Interrupted)
    }

    /// Whether the guest is emulated, and why.
    pub(super) fn accel(&self) -> Option<(Accel, Option<String>)> {
        let guest = self.guest.as_ref()?;
        Some((guest.accel().accel, guest.accel().why.clone()))
    }

    fn file(
        &mut self,
        prepared: &Prepared,
        session: &scratch::Session,
        seed: u64,
        tell: &mut Tell<'_>,
    ) -> Result<Place, MeasureError> {
        let scratch = session.scratch(&prepared.wanted.target)?;
        let path = scratch.path().to_owned();
        self._scratch.push(scratch);
        let size = prepared.run.plan.file_size;
        layout::fill(&path, size, seed, self.cancel, &mut |written, _| {
            tell(Event::Layout { written, size });
        })
        .map_err(|source| match source {
            layout::LayoutError::Cancelled => MeasureError::Interrupted,
            source => MeasureError::Layout {
                rung: "file".to_owned(),
                source,
            },
        })?;
        Ok(Place::File {
            link: self.link("file", &path)?,
            state: file_state::look(&path).ok(),
        })
    }

    fn image(
        &mut self,
        rung: &str,
        built: Result<Built<'a>, assay_arms::ArmError>,
    ) -> Result<Place, MeasureError> {
        let built = built.map_err(|source| match source {
            assay_arms::ArmError::Cancelled => MeasureError::Interrupted,
            source => MeasureError::Image {
                rung: rung.to_owned(),
                source,
            },
        })?;
        let endpoint = built.endpoint();
        self._images.push(built);
        match endpoint {
            Endpoint::Nbd { socket, export } => Ok(Place::Nbd {
                link: self.link(rung, &socket)?,
                export,
            }),
            Endpoint::Path(path) => Ok(Place::File {
                link: self.link(rung, &path)?,
                state: None,
            }),
            Endpoint::Address { .. } => Err(unfit(rung, &"an image is no address")),
        }
    }

    /// A plain name in the work directory, so that fio sees no name of the user's.
    fn link(&self, name: &str, to: &Path) -> Result<String, MeasureError> {
        let at = self.work.join(name);
        std::os::unix::fs::symlink(to, &at).map_err(|source| MeasureError::Link {
            path: at.display().to_string(),
            source,
        })?;
        Ok(name.to_owned())
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

/// Until the guest answers.
const BOOT_LIMIT: Duration = Duration::from_secs(600);

/// One guest with a disk for each rung that needs one.
fn boot(
    prepared: &Prepared,
    env: &Environment<'_>,
    dir: &Path,
) -> Result<Option<Guest>, MeasureError> {
    let disk = |recipe: &Recipe| match recipe {
        Recipe::Disk { disk, .. } => Some(Disk {
            dir: Some(dir.to_owned()),
            ..disk.clone()
        }),
        _ => None,
    };
    let disks: Vec<Disk> = prepared.recipes.iter().filter_map(disk).collect();
    let (false, Ok(Lab { image, state })) = (disks.is_empty(), &env.lab) else {
        return Ok(None);
    };
    let mut options = Options::new(&format!("stack-{}", std::process::id()));
    options.disks = disks;
    options.memory_mib = prepared.wanted.memory_mib;
    options.accel = prepared.wanted.accel;
    // One disk for each rung: an emulated guest takes its time with them.
    options.boot_limit = BOOT_LIMIT;
    let booted = Guest::boot(image, &options, state, env.cancel);
    booted.map(Some).map_err(MeasureError::guest("the guest"))
}
