//! Creates the layers, measures them in the plan's order, and removes them.

use super::bench::Bench;
use super::pace::Paces;
use super::{Environment, MeasureError, MeasureEvent, PreparedLadder, Tell};
use assay_lab::Accel;
use assay_loads::scratch::{MovedFile, Scratch};
use assay_measure::engine::{Carried, SampleSink, Turn};
use assay_model::plan::Slot;
use assay_model::run::{Run, RunState};
use assay_model::{Nanos, Sample};
use assay_store::Store;

/// A stack measurement at its end, whether complete or not.
#[derive(Debug)]
pub struct Finished {
    /// Run, as it is stored.
    pub run: Run,
    /// Reason why the measurement ended early; `None` if it is complete.
    pub stopped: Option<MeasureError>,
    /// Descriptions of objects that could not be removed. The next start of assay tries to remove them again.
    pub left: Vec<String>,
    /// Scratch files that another program moved during the measurement.
    pub astray: Vec<MovedFile>,
}

/// Executes a prepared ladder. Removes all created objects at the end.
///
/// # Errors
/// The store or the journal cannot be used, so that nothing could begin. Later errors are in the result, and the
/// samples before them are stored.
pub fn execute(
    prepared: PreparedLadder<'_>,
    env: &Environment<'_>,
    store: &mut Store,
    tell: &mut Tell<'_>,
) -> Result<Finished, MeasureError> {
    let mut prepared = prepared;
    let target = prepared.wanted.target.display().to_string();
    let session = env.journal.begin(super::LABEL, &target)?;
    store.create_run(&mut prepared.run)?;
    let mut made = Vec::new();
    let outcome = carry_out(&mut prepared, env, &session, store, &mut made, tell);
    let astray = made.into_iter().filter_map(Scratch::remove).collect();
    let (state, stopped) = match outcome {
        Ok(()) => (RunState::Complete, None),
        Err(MeasureError::Interrupted) => (RunState::Interrupted, None),
        Err(error) => (RunState::Failed, Some(error)),
    };
    let ended = (env.now)();
    let run = &mut prepared.run;
    (run.state, run.ended) = (state, Some(ended));
    store.update_run(run)?;
    let left = session.close(env.host)?;
    let stays = |one: &assay_changes::Recovered| {
        matches!(one.outcome, assay_changes::RecoveryOutcome::Failed(_))
    };
    Ok(Finished {
        run: prepared.run,
        stopped,
        astray,
        left: left.into_iter().filter(stays).map(|one| one.what).collect(),
    })
}

fn carry_out(
    prepared: &mut PreparedLadder<'_>,
    env: &Environment<'_>,
    session: &assay_changes::ChangeSession,
    store: &mut Store,
    made: &mut Vec<Scratch>,
    tell: &mut Tell<'_>,
) -> Result<(), MeasureError> {
    let scratch = env.state.begin(&prepared.run.uid)?;
    tell(MeasureEvent::Left(prepared.estimate));
    let bench = Bench::new(prepared, env, session, &scratch, made, tell)?;
    let PreparedLadder { run, paces, .. } = prepared;
    for (rung, found) in &bench.learnt {
        let target = &mut run.targets[*rung];
        *target = assay_model::TargetInfo {
            name: target.name.clone(),
            size: target.size,
            ..found.clone()
        };
    }
    if let Some((accel, why)) = bench.accel() {
        if let Some(ladder) = &mut run.ladder {
            ladder.accel = Some(accel.name().to_owned());
        }
        if accel == Accel::Tcg {
            run.remarks.push(emulation_remark(why.as_deref()));
            tell(MeasureEvent::Remark(&emulation_remark(why.as_deref())));
        }
        store.update_run(run)?;
    }
    let todo: Vec<_> = (0u32..).zip(run.plan.order.iter().copied()).collect();
    let mut by = Keeper {
        bench: &bench,
        run,
        paces,
        store,
    };
    match assay_measure::engine::carry_out_plan(&run.plan, &todo, env.cancel, &mut by, tell)? {
        Carried::Complete => Ok(()),
        Carried::Interrupted => Err(MeasureError::Interrupted),
    }
}

/// Measures each slot on its layer and stores the sample.
struct Keeper<'a, 'b> {
    bench: &'a Bench<'b>,
    run: &'a Run,
    paces: &'a mut Paces,
    store: &'a mut Store,
}

impl SampleSink<MeasureError> for Keeper<'_, '_> {
    fn take(&mut self, turn: Turn<'_>) -> Result<Sample, MeasureError> {
        self.bench.load(self.run, turn)
    }

    fn keep(&mut self, turn: Turn<'_>, sample: &Sample) -> Result<(), MeasureError> {
        let ladder = self.run.ladder.as_ref();
        if let Some(rung) = ladder.and_then(|ladder| ladder.rungs.get(turn.slot.target)) {
            let pace = self.paces.of(rung.place);
            pace.learn(sample.wall, turn.workload.time());
        }
        Ok(self.store.add_sample(self.run.id, sample)?)
    }

    fn left(&self, todo: &[(u32, Slot)]) -> Nanos {
        self.paces
            .left(self.run, self.run.plan.order.len() - todo.len())
    }
}

fn emulation_remark(why: Option<&str>) -> String {
    let why = why.unwrap_or("KVM was not asked for");
    format!(
        "the guest is emulated ({why}): every rung in it carries the emulator's CPU time, and the step \
         into the guest says little of one under KVM; steps between two rungs in the guest are \
         inflated by their CPU work, LUKS most"
    )
}
