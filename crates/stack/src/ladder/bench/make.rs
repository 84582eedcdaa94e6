//! Creates the layers one after the other, and writes each layer completely.

use super::{Bench, LoadTarget, unfit_workload};
use crate::ladder::flush_writeback::WritebackFlusher;
use crate::ladder::rungs::Recipe;
use crate::ladder::sibling_layers::Volume;
use crate::ladder::{
    Environment, Lab, MeasureError, MeasureEvent, PreparedLadder, Tell, guest, volume,
};
use assay_changes::ChangeSession;
use assay_changes::side_by_side::{ArmError, ArmSite, Built, Endpoint, LoopLayer, loop_volume};
use assay_lab::{Disk, Guest, GuestOptions};
use assay_loads::counters::Sources;
use assay_loads::layout;
use assay_loads::scratch::{self, Scratch};
use assay_measure::engine::{Tools, link};
use assay_model::change::Arm;
use std::path::{Path, PathBuf};
use std::time::Duration;

impl<'a> Bench<'a> {
    /// Creates all measured layers and writes their files completely. Registers scratch files in `files`, which must
    /// outlive the bench.
    pub(crate) fn new(
        prepared: &PreparedLadder<'_>,
        env: &Environment<'a>,
        session: &'a ChangeSession,
        scratch: &scratch::ScratchSession,
        files: &mut Vec<Scratch>,
        tell: &mut Tell<'_>,
    ) -> Result<Self, MeasureError> {
        let run = &prepared.run;
        let mut bench = Self {
            env: *env,
            tools: Tools::fio(prepared.fio.clone()),
            work: scratch.dir().to_owned(),
            home: prepared.on.through(),
            places: Vec::new(),
            sources: Vec::new(),
            learnt: Vec::new(),
            settle: WritebackFlusher::new(prepared),
            guest: None,
            images: Vec::new(),
            loops: Vec::new(),
            volumes: Vec::new(),
        };
        for (index, recipe) in prepared.recipes.iter().enumerate() {
            if env.cancel.is_cancelled() {
                return Err(MeasureError::Interrupted);
            }
            if matches!(recipe, Recipe::Disk { .. }) && bench.guest.is_none() {
                tell(MeasureEvent::Making("guest"));
                bench.guest = boot_guest(prepared, env, &bench.home)?;
            }
            let rung = &run.targets[index].name;
            if !matches!(recipe, Recipe::Again(_)) {
                tell(MeasureEvent::Making(rung));
            }
            let seed = run.plan.seed ^ index as u64;
            let size = run.plan.file_size;
            let place = |dir: &Path| assay_changes::side_by_side::ArmSite {
                dir: dir.to_owned(),
                name: rung.clone(),
                size,
            };
            let made = match recipe {
                Recipe::File => bench.file(prepared, scratch, files, seed, tell)?,
                Recipe::Home(volume) => {
                    let place = place(&prepared.on.through());
                    let (made, dir) = bench.volume(env, session, volume, &place, index)?;
                    bench.home = dir;
                    made
                }
                Recipe::Volume(volume) => {
                    let place = place(&prepared.on.through());
                    bench.volume(env, session, volume, &place, index)?.0
                }
                Recipe::Image(arm) => {
                    let arm = Arm::Image(arm.clone());
                    let place = place(&bench.home);
                    let built = assay_changes::side_by_side::build(
                        env.host, session, &arm, &place, env.cancel,
                    );
                    bench.image(rung, built)?
                }
                Recipe::LoopDevice(layer) => {
                    let place = place(&bench.home);
                    bench.loop_device(env, session, *layer, &place, index)?
                }
                Recipe::Loop(system) => {
                    let arm = Arm::FileSystem {
                        fstype: system.name().to_owned(),
                        // What mkfs leaves for later would be charged to the samples.
                        mkfs: system.eager_options(),
                        mount: Vec::new(),
                    };
                    let place = place(&bench.home);
                    let built = assay_changes::side_by_side::build(
                        env.host, session, &arm, &place, env.cancel,
                    );
                    bench.loop_file(env, index, rung, built)?
                }
                Recipe::Disk { disk, on } => {
                    let guest = bench.guest()?;
                    let device = guest.devices(&[&disk.name]);
                    let device = device.map_err(MeasureError::guest(rung))?.remove(0);
                    let path = guest::build_layers(guest, rung, &device, on)?;
                    let job = assay_fio::job::layout_job(&path, size, seed);
                    guest::lay_out(
                        guest,
                        rung,
                        &job.map_err(|error| unfit_workload("layout", &error))?,
                    )?;
                    LoadTarget::Guest { path }
                }
                Recipe::Again(of) => {
                    let known = bench.learnt.iter().find(|(rung, _)| rung == of).cloned();
                    bench.learnt.extend(known.map(|(_, found)| (index, found)));
                    bench.places[*of].clone()
                }
            };
            bench.places.push(made);
            let learnt = bench.learnt.iter().find(|(rung, _)| *rung == index);
            let info = learnt.map_or(&run.targets[index], |(_, found)| found);
            let sources = Sources::find(env.host, &info.devices);
            bench.sources.push(sources);
        }
        Ok(bench)
    }

    /// Creates a volume and returns the directory for its file.
    fn volume(
        &mut self,
        env: &Environment<'a>,
        session: &'a ChangeSession,
        volume: &Volume,
        place: &assay_changes::side_by_side::ArmSite,
        index: usize,
    ) -> Result<(LoadTarget, PathBuf), MeasureError> {
        let held = volume::build(env, session, volume, place)?;
        let path = held.path().to_owned();
        self.volumes.push(held);
        // The counters of a volume show its I/O; those of a zvol do not separate the disks from the
        // ARC.
        if !volume.is_zfs() {
            let found = assay_facts::target(env.host, &path)?;
            self.learnt.push((index, found));
        }
        let made = LoadTarget::at(&self.work, &place.name, &path)?;
        let dir = path.parent().unwrap_or(Path::new("/")).to_owned();
        Ok((made, dir))
    }

    fn file(
        &mut self,
        prepared: &PreparedLadder<'_>,
        session: &scratch::ScratchSession,
        files: &mut Vec<Scratch>,
        seed: u64,
        tell: &mut Tell<'_>,
    ) -> Result<LoadTarget, MeasureError> {
        let directory = prepared.on.directory();
        let directory = directory.ok_or_else(|| unfit_workload("file", &"it needs a directory"))?;
        let scratch = session.scratch(directory)?;
        let size = prepared.run.plan.file_size;
        layout::fill(
            scratch.held(),
            size,
            seed,
            self.env.cancel,
            &mut |written, _| {
                tell(MeasureEvent::Layout {
                    target: "file",
                    written,
                    size,
                });
            },
        )
        .map_err(|source| match source {
            layout::LayoutError::Cancelled => MeasureError::Interrupted,
            source => MeasureError::Layout {
                rung: "file".to_owned(),
                source,
            },
        })?;
        let made = LoadTarget::held(&self.work, "file", scratch.held())?;
        files.push(scratch);
        Ok(made)
    }

    /// Creates a block device on a loop device.
    fn loop_device(
        &mut self,
        env: &Environment<'a>,
        session: &'a ChangeSession,
        layer: LoopLayer,
        place: &ArmSite,
        index: usize,
    ) -> Result<LoadTarget, MeasureError> {
        let made = loop_volume(env.host, session, layer, place, env.cancel);
        let made = made.map_err(|source| match source {
            ArmError::Cancelled => MeasureError::Interrupted,
            source => MeasureError::Image {
                rung: place.name.clone(),
                source,
            },
        })?;
        let path = made.path().to_owned();
        self.loops.push(made);
        let found = assay_facts::target(env.host, &path)?;
        self.learnt.push((index, found));
        Ok(LoadTarget::at(&self.work, &place.name, &path)?)
    }

    /// Returns the scratch file in a file system that was created on a loop device. Also records the properties of this
    /// target.
    fn loop_file(
        &mut self,
        env: &Environment<'a>,
        index: usize,
        rung: &str,
        built: Result<Built<'a>, ArmError>,
    ) -> Result<LoadTarget, MeasureError> {
        let mut made = self.image(rung, built)?;
        let built = self.images.last().map(Built::endpoint);
        if let (Some(Endpoint::Path(path)), LoadTarget::File { dir, .. }) = (built, &mut made) {
            *dir = path.parent().map(Path::to_owned);
            let found = assay_facts::target(env.host, &path)?;
            self.learnt.push((index, found));
        }
        Ok(made)
    }

    fn image(
        &mut self,
        rung: &str,
        built: Result<Built<'a>, ArmError>,
    ) -> Result<LoadTarget, MeasureError> {
        let built = built.map_err(|source| match source {
            ArmError::Cancelled => MeasureError::Interrupted,
            source => MeasureError::Image {
                rung: rung.to_owned(),
                source,
            },
        })?;
        let endpoint = built.endpoint();
        self.images.push(built);
        match endpoint {
            Endpoint::Nbd { socket, export } => Ok(LoadTarget::Nbd {
                link: link(&self.work, rung, &socket)?,
                export,
            }),
            Endpoint::Path(path) => Ok(LoadTarget::at(&self.work, rung, &path)?),
            Endpoint::Address { .. } => Err(unfit_workload(rung, &"an image is no address")),
        }
    }
}

/// Time limit for the boot of the guest.
const BOOT_LIMIT: Duration = Duration::from_secs(600);

/// Boots one guest that has a disk for each layer that needs one.
fn boot_guest(
    prepared: &PreparedLadder<'_>,
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
    let (false, Some(Lab { image, state })) = (disks.is_empty(), &prepared.lab) else {
        return Ok(None);
    };
    let mut options = GuestOptions::new(&format!("stack-{}", std::process::id()));
    options.disks = disks;
    options.memory_mib = prepared.wanted.memory_mib;
    options.accel = prepared.wanted.accel;
    // Many disks slow down the boot of an emulated guest.
    options.boot_limit = BOOT_LIMIT;
    let booted = Guest::boot(image, &options, state, env.cancel);
    booted.map(Some).map_err(MeasureError::guest("the guest"))
}
