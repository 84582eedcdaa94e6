//! Layout, then the slots in order. Every sample is durable in the store before the next begins.

use crate::RunError;
use crate::estimate::{self, Pace};
use crate::event::Event;
use crate::prepare::{Environment, Prepared, lays_out};
use crate::targets;
use assay_engine::{Asked, Meter};
use assay_host::held::Held;
use assay_instruments::counters::Sources;
use assay_instruments::file_state;
use assay_instruments::layout::{self, LayoutError};
use assay_instruments::scratch::{Astray, Scratch};
use assay_model::run::{Run, RunState};
use assay_model::sample::Outcome;
use assay_model::target::TargetKind;
use assay_model::{Bytes, Nanos};
use assay_store::Store;
use std::path::Path;

/// Failures in a row after which going on is pointless.
const FAILURES: u32 = 3;

/// How a run ended.
#[derive(Debug)]
pub struct Finished {
    /// The run as stored.
    pub run: Run,
    /// Samples taken now.
    pub taken: u32,
    /// Why it ended early, when it did.
    pub stopped: Option<RunError>,
    /// Scratch files that somebody moved meanwhile.
    pub astray: Vec<Astray>,
}

/// A target that is ready for load.
struct Ready {
    sources: Sources,
    place: assay_engine::Place,
}

/// Carries out what was prepared.
///
/// # Errors
/// Only when the store refuses; how far the run got otherwise is in the result, and what was
/// measured until then is stored.
pub fn execute(
    prepared: Prepared,
    env: &Environment<'_>,
    store: &mut Store,
    tell: &mut dyn FnMut(Event<'_>),
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
    prepared: &mut Prepared,
    env: &Environment<'_>,
    store: &mut Store,
    tell: &mut dyn FnMut(Event<'_>),
    taken: &mut u32,
    made: &mut Vec<Scratch>,
) -> Result<RunState, RunError> {
    let Prepared {
        run,
        todo,
        fio,
        session,
        targets,
        pace,
        ..
    } = prepared;
    let load = |done: usize, pace: &Pace| {
        estimate::slots(&run.plan, todo[done..].iter().map(|(_, slot)| slot), pace)
    };
    let mut ready = Vec::new();
    for (index, info) in run.targets.iter().enumerate() {
        let later: u64 = run.targets[index + 1..]
            .iter()
            .filter(|target| lays_out(&run.plan, target))
            .map(|target| target.size.0)
            .sum();
        let held = match &targets[index] {
            targets::Place::File(held) => held,
            targets::Place::Directory(directory) => {
                let new = made.len();
                made.push(session.scratch(directory)?);
                made[new].held()
            }
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
            tell(Event::Layout {
                target: &info.name,
                written,
                size: info.size,
            });
            let rest = Bytes(info.size.0.saturating_sub(written.0) + later);
            tell(Event::Left(Nanos(
                load(0, pace).0 + estimate::layout(rest, pace).0,
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
        ready.push(place.ready(env)?);
    }
    let meter = Meter {
        host: env.host,
        cancel: env.cancel,
        now: env.now,
        work: session.dir(),
        fio: Some(fio),
        password: None,
    };
    let mut failures = 0;
    for (done, (number, slot)) in todo.iter().enumerate() {
        if env.cancel.is_cancelled() {
            return Ok(RunState::Interrupted);
        }
        let workload = &run.plan.workloads[slot.workload];
        let info = &run.targets[slot.target];
        tell(Event::Left(load(done, pace)));
        tell(Event::Begin {
            done,
            of: todo.len(),
            workload: &workload.name,
            target: &info.name,
            round: slot.round,
        });
        let ready = &ready[slot.target];
        let sample = meter.take(&assay_engine::Slot {
            asked: Asked::Fio {
                workload,
                size: info.size,
                seed: slot.seed,
            },
            place: &ready.place,
            sources: &ready.sources,
            target: &info.name,
            round: slot.round,
            number: *number,
        })?;
        if sample.outcome == Outcome::Interrupted {
            return Ok(RunState::Interrupted);
        }
        let [runtime, ramp] = [workload.runtime, workload.ramp].map(Option::unwrap_or_default);
        pace.learn(sample.wall, Nanos(runtime.0 + ramp.0));
        store.add_sample(run.id, &sample)?;
        *taken += 1;
        tell(Event::Stored(&sample));
        failures = match &sample.outcome {
            Outcome::Completed => 0,
            _ => failures + 1,
        };
        // All of them failed, or enough of them in a row.
        if failures == FAILURES || failures as usize == todo.len() {
            let last = match sample.outcome {
                Outcome::Failed { error } => error,
                Outcome::TimedOut { after } => {
                    format!("fio did not end and was stopped after {after}")
                }
                Outcome::Completed | Outcome::Interrupted => String::new(),
            };
            return Err(RunError::Failing {
                count: failures,
                last,
            });
        }
    }
    tell(Event::Left(Nanos(0)));
    Ok(RunState::Complete)
}

/// One target on its way to being ready.
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
    fn ready(&self, env: &Environment<'_>) -> Result<Ready, RunError> {
        let link = format!("target{}", self.index);
        let at = self.work.join(&link);
        // fio gets a plain name: it splits file names at ':' and has its own escapes. The name leads
        // to the descriptor, so that fio opens what was checked and laid out, and nothing else.
        std::os::unix::fs::symlink(self.held.through(), &at).map_err(|source| {
            assay_instruments::scratch::ScratchError::State {
                path: at.clone(),
                source,
            }
        })?;
        let regular = self.info.kind != TargetKind::BlockDevice;
        Ok(Ready {
            sources: Sources::find(env.host, &self.info.devices),
            place: assay_engine::Place::File {
                dir: None,
                link,
                state: regular
                    .then(|| file_state::look(self.held.file()).ok())
                    .flatten(),
            },
        })
    }
}
