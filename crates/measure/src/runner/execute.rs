//! Lays out the targets, then measures the slots in order. Every sample is durable in the store before the next one
//! begins.

use crate::engine::{Carried, Environment, MeasureEvent, Meter, SampleSink, Tell, Turn};
use crate::runner::RunError;
use crate::runner::estimate::{self, PaceEstimate};
use crate::runner::prepare::{PreparedRun, lays_out};
use crate::runner::targets;
use assay_host::held::Held;
use assay_loads::counters::Sources;
use assay_loads::layout::{self, LayoutError};
use assay_loads::scratch::{MovedFile, Scratch};
use assay_model::plan::Slot;
use assay_model::run::{Run, RunState};
use assay_model::{Bytes, Nanos, Sample};
use assay_store::Store;
use std::path::{Path, PathBuf};

/// A run at its end, whether complete or not.
#[derive(Debug)]
pub struct Finished {
    /// Run, as it is stored.
    pub run: Run,
    /// Number of samples that this call took. Samples of an earlier, interrupted call do not count.
    pub taken: u32,
    /// Reason why the run ended early; `None` if it is complete.
    pub stopped: Option<RunError>,
    /// Scratch files that another program moved during the run.
    pub astray: Vec<MovedFile>,
}

/// A target that is ready for loads.
struct Ready {
    sources: Sources,
    /// Target for loads that use a file or device.
    place: crate::engine::LoadTarget,
    /// Target for loads that receive the name of the target.
    named: crate::engine::LoadTarget,
}

/// Executes a prepared run.
///
/// # Errors
/// Only errors of the store. Any other error is in [`Finished::stopped`], and the samples taken before it are stored.
pub fn execute(
    prepared: PreparedRun,
    env: &Environment<'_>,
    store: &mut Store,
    tell: &mut Tell<'_>,
) -> Result<Finished, RunError> {
    let mut prepared = prepared;
    if prepared.run.id.0 == 0 {
        store.create_run(&mut prepared.run)?;
    } else {
        store.update_run(&prepared.run)?;
    }
    let mut taken = 0;
    let mut made = Vec::new();
    let outcome = carry_out(&mut prepared, env, store, tell, &mut taken, &mut made);
    let astray = made.into_iter().filter_map(Scratch::remove).collect();
    let state = match &outcome {
        Ok(state) => *state,
        Err(_) => RunState::Failed,
    };
    let ended = (env.now)();
    store.finish(prepared.run.id, state, ended)?;
    prepared.run.state = state;
    prepared.run.ended = Some(ended);
    Ok(Finished {
        run: prepared.run,
        taken,
        stopped: outcome.err(),
        astray,
    })
}

fn carry_out(
    prepared: &mut PreparedRun,
    env: &Environment<'_>,
    store: &mut Store,
    tell: &mut Tell<'_>,
    taken: &mut u32,
    made: &mut Vec<Scratch>,
) -> Result<RunState, RunError> {
    let PreparedRun {
        run,
        todo,
        tools,
        session,
        targets,
        pace,
        ..
    } = prepared;
    let load = |pace: &PaceEstimate| {
        estimate::estimate_slots(&run.plan, todo.iter().map(|(_, slot)| slot), pace)
    };
    let mut ready = Vec::new();
    for (index, info) in run.targets.iter().enumerate() {
        let named = crate::engine::LoadTarget::Named {
            path: PathBuf::from(&info.name),
        };
        if !run.plan.needs_file() {
            ready.push(Ready {
                sources: Sources::find(env.host, &info.devices),
                place: named.clone(),
                named,
            });
            continue;
        }
        let later: u64 = run.targets[index + 1..]
            .iter()
            .filter(|target| lays_out(&run.plan, target))
            .map(|target| target.size.0)
            .sum();
        let held = match &targets[index] {
            Some(targets::Place::File(held)) => held,
            Some(targets::Place::Directory(directory)) => {
                let new = made.len();
                made.push(session.scratch(directory)?);
                made[new].held()
            }
            // Not possible: a plan with a file load refuses servers.
            None => continue,
        };
        let place = Place {
            index,
            info,
            held,
            work: session.dir(),
        };
        let laid = lay_out(&place, run, env, &mut |written, elapsed| {
            if elapsed.0 > 0 {
                pace.layout = Some(written.0 as f64 / elapsed.as_secs_f64());
            }
            tell(MeasureEvent::Layout {
                target: &info.name,
                written,
                size: info.size,
            });
            let rest = Bytes(info.size.0.saturating_sub(written.0) + later);
            tell(MeasureEvent::Left(Nanos(
                load(pace).0 + estimate::layout(rest, pace).0,
            )));
        });
        match laid {
            Ok(()) => {}
            Err(RunError::Layout {
                source: LayoutError::Cancelled,
                ..
            }) => {
                return Ok(RunState::Interrupted);
            }
            Err(error) => return Err(error),
        }
        ready.push(place.ready(named, env)?);
    }
    let mut by = Keeper {
        meter: env.meter(session.dir(), tools),
        run,
        ready: &ready,
        pace,
        store,
        taken,
    };
    Ok(
        match crate::engine::carry_out_plan(&run.plan, todo, env.cancel, &mut by, tell)? {
            Carried::Complete => RunState::Complete,
            Carried::Interrupted => RunState::Interrupted,
        },
    )
}

/// Measures the slots of a run and stores their samples.
struct Keeper<'a> {
    meter: Meter<'a>,
    run: &'a Run,
    ready: &'a [Ready],
    pace: &'a mut PaceEstimate,
    store: &'a mut Store,
    taken: &'a mut u32,
}

impl SampleSink<RunError> for Keeper<'_> {
    fn take(&mut self, turn: Turn<'_>) -> Result<Sample, RunError> {
        let ready = &self.ready[turn.slot.target];
        let place = match turn.workload.fio() {
            Some(_) => &ready.place,
            None => &ready.named,
        };
        let size = self.run.targets[turn.slot.target].size;
        let slot = turn.measured(place, &ready.sources, size);
        Ok(self.meter.take(&slot)?)
    }

    fn keep(&mut self, turn: Turn<'_>, sample: &Sample) -> Result<(), RunError> {
        self.pace.learn(sample.wall, turn.workload.time());
        self.store.add_sample(self.run.id, sample)?;
        *self.taken += 1;
        Ok(())
    }

    fn left(&self, todo: &[(u32, Slot)]) -> Nanos {
        estimate::estimate_slots(&self.run.plan, todo.iter().map(|(_, slot)| slot), self.pace)
    }
}

/// A target that is being prepared, for example laid out.
struct Place<'a> {
    index: usize,
    info: &'a assay_model::TargetInfo,
    held: &'a Held,
    work: &'a Path,
}

fn lay_out(
    place: &Place<'_>,
    run: &Run,
    env: &Environment<'_>,
    progress: &mut dyn FnMut(Bytes, Nanos),
) -> Result<(), RunError> {
    if !lays_out(&run.plan, place.info) {
        return Ok(());
    }
    let fail = |source| RunError::Layout {
        target: place.info.name.clone(),
        source,
    };
    let seed = run.plan.seed ^ place.index as u64;
    layout::fill(place.held, place.info.size, seed, env.cancel, progress).map_err(fail)
}

impl Place<'_> {
    fn ready(
        &self,
        named: crate::engine::LoadTarget,
        env: &Environment<'_>,
    ) -> Result<Ready, RunError> {
        // fio splits file names at ':' and has its own escapes, so it gets a plain name. The name
        // refers to the open descriptor, so fio opens exactly the checked file.
        let link = format!("target{}", self.index);
        Ok(Ready {
            named,
            sources: Sources::find(env.host, &self.info.devices),
            place: crate::engine::LoadTarget::held(self.work, &link, self.held)?,
        })
    }
}
