//! The machine itself as a bench: a setting that is set and set back, or two things that assay
//! made, alive side by side.

use crate::engine::{
    Environment, LoadTarget, MeasureEvent, MeterSlot, OPERATION_LIMIT, Tell, Tools, link,
};
use crate::runner::Ground;
use crate::trials::TrialError;
use crate::trials::bench::{Clocks, TrialBench};
use assay_changes::side_by_side::{Built, Endpoint};
use assay_changes::{ChangeSession, Switch};
use assay_loads::counters::Sources;
use assay_loads::layout;
use assay_loads::scratch::{self, Scratch};
use assay_model::advice::SafetyRule;
use assay_model::plan::DEFAULT_FILE_SIZE;
use assay_model::sample::Sample;
use assay_model::trial::{DurabilityProof, Side, Trial, TrialPlan};
use assay_model::workload::Engine;
use assay_model::{Bytes, Change, Load, Nanos, change};
use rustix::time::{ClockId, clock_gettime};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What does the load.
struct Loader<'a> {
    env: Environment<'a>,
    /// With nothing left open.
    load: Load,
    tools: Tools,
    work: PathBuf,
    sources: Sources,
}

/// Both sides, ready to be measured.
pub(crate) struct Machine<'a> {
    plan: &'a TrialPlan,
    /// Measured time of a slot.
    slot: Nanos,
    loader: Loader<'a>,
    sides: Sides<'a>,
}

/// Where both sides are made.
pub(crate) struct On<'a> {
    /// The user's directory, file or device, when the advice is about storage.
    pub(crate) ground: Option<&'a Ground>,
    /// Where scratch files are entered.
    pub(crate) scratch: &'a scratch::ScratchSession,
    /// The scratch file, once there is one; whoever lends this removes it when the machine is gone.
    pub(crate) made: &'a mut Option<Scratch>,
}

enum Sides<'a> {
    /// One place; a setting makes the difference.
    Setting {
        switch: Box<Switch<'a>>,
        value: Option<String>,
        place: LoadTarget,
        /// Which side is in effect.
        now: Side,
    },
    /// Two places.
    Arms(Box<[Arm<'a>; 2]>),
}

struct Arm<'a> {
    built: Built<'a>,
    place: LoadTarget,
}

impl<'a> Machine<'a> {
    /// Makes what has to be made. A setting is changed and set back once, which tells a missing
    /// privilege before anything else is done.
    pub(crate) fn new(
        trial: &'a Trial,
        env: &Environment<'a>,
        session: &'a ChangeSession,
        mut on: On<'_>,
        tell: &mut Tell<'_>,
    ) -> Result<Self, TrialError> {
        let plan = &trial.plan;
        let tools = Tools::find(env, plan.seed, [&plan.load])?.changing();
        let work = on.scratch.dir().to_owned();
        let mut engine = Engine::Psync;
        if let Some(fio) = &tools.fio {
            match &plan.change {
                Change::SideBySide {
                    now: change::Arm::Image(_),
                    ..
                } => fio.has_engine(env.host, Engine::Nbd)?,
                _ => engine = fio.best_engine(&work, env.cancel),
            }
        }
        let loader = Loader {
            env: *env,
            load: with_engine(&plan.load, engine),
            tools,
            work,
            sources: Sources::find(
                env.host,
                trial.target.as_ref().map_or(&[], |info| &info.devices),
            ),
        };
        let sides = match &plan.change {
            Change::Set { setting, value } => {
                // First of all: it tells what cannot be changed before anything is written.
                let switch = Switch::open(session, env.host, setting)?;
                if !plan.aa {
                    // And what may not: there and back once, before a file is laid out for nothing.
                    switch.set(value.as_deref())?;
                    switch.restore()?;
                }
                let place = own_place(trial, env, &mut on, &loader, tell)?;
                Sides::Setting {
                    switch: Box::new(switch),
                    value: value.clone(),
                    place,
                    now: Side::Now,
                }
            }
            Change::SideBySide { now, changed } => {
                // Against itself: two of the same, so that what differs between two of a kind is
                // part of the noise.
                let changed = if plan.aa { now } else { changed };
                let mut build =
                    |arm, side| build(trial, env, session, on.ground, &loader, arm, side, tell);
                Sides::Arms(Box::new([
                    build(now, Side::Now)?,
                    build(changed, Side::Changed)?,
                ]))
            }
        };
        Ok(Self {
            plan,
            slot: plan.slot,
            loader,
            sides,
        })
    }

    /// The flush test of both sides, when the plan asks for one.
    pub(crate) fn durability(&mut self) -> Result<Vec<DurabilityProof>, TrialError> {
        let cancel = self.loader.env.cancel;
        match (self.plan.safety, &mut self.sides) {
            (Some(SafetyRule::AcknowledgedWrites), Sides::Arms(arms)) => [Side::Now, Side::Changed]
                .into_iter()
                .zip(arms.iter_mut())
                .map(|(side, arm)| Ok(arm.built.prove_durability(side, cancel)?))
                .collect(),
            _ => Ok(Vec::new()),
        }
    }

    /// Sets the setting back, and takes away what was made.
    pub(crate) fn set_back(self) -> Result<(), TrialError> {
        match self.sides {
            Sides::Setting { switch, .. } => drop(switch.restore()?),
            Sides::Arms(_) => {}
        }
        Ok(())
    }
}

impl TrialBench for Machine<'_> {
    fn enter(&mut self, side: Side) -> Result<String, TrialError> {
        match &mut self.sides {
            Sides::Setting {
                switch, value, now, ..
            } => {
                if self.plan.aa {
                    return Ok(switch.read()?);
                }
                let put = |side| match side {
                    Side::Now => switch.restore(),
                    Side::Changed => switch.set(value.as_deref()),
                };
                // In effect already: away and back, so that every slot begins just after a change.
                if *now == side {
                    put(side.other())?;
                }
                *now = side;
                Ok(put(side)?)
            }
            Sides::Arms(arms) => Ok(arms[side as usize].built.read_back()?),
        }
    }

    fn load(&mut self, side: Side, pair: u32, slot: u32) -> Result<Sample, TrialError> {
        let place = match (&self.sides, side) {
            (Sides::Setting { place, .. }, _) => place,
            (Sides::Arms(arms), side) => &arms[side as usize].place,
        };
        let (plan, loader) = (self.plan, &self.loader);
        let meter = loader.env.meter(&loader.work, &loader.tools);
        Ok(meter.take(&MeterSlot {
            load: &loader.load,
            name: loader.load.name(),
            ramp: plan.washout,
            runtime: self.slot,
            limit: OPERATION_LIMIT,
            size: load_size(&loader.load),
            // The same seed for both sides of a pair: the same offsets and data.
            seed: plan.seed ^ u64::from(pair),
            place,
            sources: &loader.sources,
            target: &plan.target,
            round: pair,
            number: slot,
        })?)
    }

    fn slots_last(&mut self, length: Nanos) {
        self.slot = length;
    }

    fn clocks(&self) -> Clocks {
        Clocks {
            wall: (self.loader.env.now)(),
            monotonic: monotonic_time(),
            boottime: read(ClockId::Boottime),
        }
    }
}

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Time since some moment before assay began, without the time that the machine slept.
pub(crate) fn monotonic_time() -> Duration {
    read(ClockId::Monotonic)
}

/// On how much the load works.
fn load_size(load: &Load) -> Bytes {
    match load {
        Load::Fio { size, .. } => size.unwrap_or(DEFAULT_FILE_SIZE),
        _ => Bytes(0),
    }
}

/// The load with an engine of fio's, where it leaves that open.
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

/// Where the load goes when a setting makes the difference: a scratch file in a directory, a device
/// or file that is only read, or what the load names itself.
fn own_place(
    trial: &Trial,
    env: &Environment<'_>,
    on: &mut On<'_>,
    loader: &Loader<'_>,
    tell: &mut Tell<'_>,
) -> Result<LoadTarget, TrialError> {
    let plan = &trial.plan;
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
        return Ok(LoadTarget::held(&loader.work, "target", held)?);
    };
    ground.fits(size)?;
    let scratch = on.made.insert(on.scratch.scratch(directory)?);
    let held = scratch.held();
    layout::fill(held, size, plan.seed, env.cancel, &mut |written, _| {
        let target = &plan.target;
        tell(MeasureEvent::Layout {
            target,
            written,
            size,
        });
    })
    .map_err(TrialError::Layout)?;
    Ok(LoadTarget::held(&loader.work, "target", held)?)
}

#[allow(
    clippy::too_many_arguments,
    reason = "what `Machine::new` has, for a side"
)]
fn build<'a>(
    trial: &Trial,
    env: &Environment<'a>,
    session: &'a ChangeSession,
    ground: Option<&Ground>,
    loader: &Loader<'_>,
    arm: &change::Arm,
    side: Side,
    tell: &mut Tell<'_>,
) -> Result<Arm<'a>, TrialError> {
    let name = match side {
        Side::Now => "now",
        Side::Changed => "changed",
    };
    tell(MeasureEvent::Making(name));
    let place = assay_changes::side_by_side::ArmSite {
        // A service has no place of its own: its copy lives where scratch files are entered.
        dir: ground.map_or_else(|| loader.work.clone(), Ground::through),
        name: name.to_owned(),
        size: load_size(&trial.plan.load),
    };
    let built = assay_changes::side_by_side::build(env.host, session, arm, &place, env.cancel)?;
    let place = match built.endpoint() {
        Endpoint::Path(path) => {
            let mut place = LoadTarget::at(&loader.work, name, &path)?;
            let fs = matches!(
                arm,
                change::Arm::Dataset { .. } | change::Arm::FileSystem { .. }
            );
            if let LoadTarget::File { dir, .. } = &mut place {
                *dir = path.parent().filter(|_| fs).map(Path::to_owned);
            }
            place
        }
        Endpoint::Nbd { socket, export } => LoadTarget::Nbd {
            link: link(&loader.work, name, &socket)?,
            export,
        },
        Endpoint::Address { host, port } => LoadTarget::Address { host, port },
    };
    Ok(Arm { built, place })
}
