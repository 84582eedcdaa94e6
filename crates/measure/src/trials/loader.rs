//! The load of a trial: its tools, its target, and how one slot of it runs.

use crate::engine::{
    Environment, LoadTarget, MeasureEvent, MeterSlot, OPERATION_LIMIT, Tell, Tools,
};
use crate::runner::OpenTarget;
use crate::trials::TrialError;
use assay_loads::counters::Sources;
use assay_loads::layout;
use assay_loads::scratch::{self, Scratch};
use assay_model::plan::DEFAULT_FILE_SIZE;
use assay_model::sample::Sample;
use assay_model::trial::{Trial, TrialPlan};
use assay_model::workload::Engine;
use assay_model::{Bytes, Load, Nanos};
use assay_web::QuickestAnswer;
use std::path::{Path, PathBuf};

/// Runs the load of a trial.
pub(crate) struct Loader<'a> {
    pub(crate) env: Environment<'a>,
    /// The load, with all open choices made.
    pub(crate) load: Load,
    tools: Tools,
    pub(crate) work: PathBuf,
    sources: Sources,
}

/// Where the objects of both sides are created.
pub(crate) struct On<'a> {
    /// Open target of the user; `None` if the advice is not about storage.
    pub(crate) ground: Option<&'a OpenTarget>,
    /// Session that registers and removes the scratch files.
    pub(crate) scratch: &'a scratch::ScratchSession,
    /// Receives the scratch file when it is created. The owner of this field removes the file after the machine is
    /// dropped.
    pub(crate) made: &'a mut Option<Scratch>,
}

impl<'a> Loader<'a> {
    /// Finds the tools for the load of a trial, which runs in the directory `work`.
    ///
    /// # Errors
    /// fio or a password is missing, or a web server does not respond or must not be loaded.
    pub(crate) fn new(
        trial: &Trial,
        env: &Environment<'a>,
        work: &Path,
        over_nbd: bool,
    ) -> Result<Self, TrialError> {
        let plan = &trial.plan;
        let tools = Tools::find(env, plan.seed, [&plan.load])?.changing();
        let mut engine = Engine::Psync;
        if let Some(fio) = &tools.fio {
            match over_nbd {
                true => fio.has_engine(env.host, Engine::Nbd)?,
                false => engine = fio.best_engine(work, env.cancel),
            }
        }
        Ok(Self {
            env: *env,
            load: with_engine(&plan.load, engine),
            tools,
            work: work.to_owned(),
            sources: Sources::find(
                env.host,
                trial.target.as_ref().map_or(&[], |info| &info.devices),
            ),
        })
    }

    /// Runs the load of a plan for one slot.
    ///
    /// # Errors
    /// The load generator cannot be started.
    pub(crate) fn take(
        &self,
        plan: &TrialPlan,
        length: Nanos,
        place: &LoadTarget,
        pair: u32,
        number: u32,
    ) -> Result<Sample, TrialError> {
        let meter = self.env.meter(&self.work, &self.tools);
        Ok(meter.take(&MeterSlot {
            load: &self.load,
            name: self.load.name(),
            ramp: plan.washout,
            runtime: length,
            limit: OPERATION_LIMIT,
            size: load_size(&self.load),
            // Both sides of a pair have the same seed: the same offsets and data.
            seed: plan.seed ^ u64::from(pair),
            place,
            sources: &self.sources,
            target: &plan.target,
            round: pair,
            number,
        })?)
    }

    /// Returns a load that requests the fastest answer of the web server. Returns `None` if the load does not use HTTP,
    /// or if there is no faster answer.
    pub(crate) fn find_smallest_answer(&self) -> Option<QuickestAnswer> {
        let http = self.load.http()?;
        let server = self.tools.server(&http.kept())?;
        server.find_smallest_answer(http, &|| self.env.cancel.is_cancelled())
    }

    /// Returns the target of the load if the change is a setting. The target is a scratch file in a directory, a device
    /// or file that is only read, or the target that the load itself defines.
    pub(crate) fn find_own_place(
        &self,
        plan: &TrialPlan,
        on: &mut On<'_>,
        tell: &mut Tell<'_>,
    ) -> Result<LoadTarget, TrialError> {
        let size = load_size(&plan.load);
        let (Load::Fio { workload, .. }, Some(ground)) = (&plan.load, on.ground) else {
            let path = PathBuf::from(&plan.target);
            return Ok(LoadTarget::Named { path });
        };
        let Some(directory) = ground.directory() else {
            if workload.pattern.writes() {
                return Err(TrialError::WouldDestroy(plan.target.clone()));
            }
            let held = ground.file().ok_or(TrialError::Unfit("a file or device"))?;
            return Ok(LoadTarget::held(&self.work, "target", held)?);
        };
        ground.fits(size)?;
        let scratch = on.made.insert(on.scratch.scratch(directory)?);
        let held = scratch.held();
        layout::fill(held, size, plan.seed, self.env.cancel, &mut |written, _| {
            let target = &plan.target;
            tell(MeasureEvent::Layout {
                target,
                written,
                size,
            });
        })
        .map_err(TrialError::Layout)?;
        Ok(LoadTarget::held(&self.work, "target", held)?)
    }
}

/// Returns how many bytes of data the load uses.
pub(crate) fn load_size(load: &Load) -> Bytes {
    match load {
        Load::Fio { size, .. } => size.unwrap_or(DEFAULT_FILE_SIZE),
        _ => Bytes(0),
    }
}

/// Sets fio's I/O engine if the load does not specify one.
fn with_engine(load: &Load, engine: Engine) -> Load {
    let mut load = load.clone();
    if let Load::Fio { workload, .. } = &mut load
        && workload.engine == Engine::Auto
    {
        workload.engine = match workload.queue_depth == 1 && !workload.direct {
            true => Engine::Psync,
            false => engine,
        };
    }
    load
}
