//! Prepares a run: makes all choices and all checks before the first byte is written.

use crate::engine::{Environment, Tools};
use crate::runner::RunError;
use crate::runner::estimate::{self, PaceEstimate};
use crate::runner::remarks::{collect_remarks, part_of};
use crate::runner::target_lock::Claim;
use crate::runner::targets::{Checked, Permission, Place, check};
use assay_loads::scratch::{ScratchSession, Swept, sweep_directory};
use assay_model::load::{Http, Load};
use assay_model::plan::{Plan, PlanSpec, Settings, Slot};
use assay_model::run::{Origin, Run, RunId, RunState};
use assay_model::target::{TargetKind, is_url};
use assay_model::workload::Engine;
use assay_model::{Nanos, Planned, Sample};
use std::path::PathBuf;

/// Inputs of a run in addition to its plan.
#[derive(Clone, Debug)]
pub struct Begin {
    /// Id of the run: 128 random bits in hex.
    pub uid: String,
    /// Seed that is used if the plan has no seed.
    pub seed: u64,
    /// Permissions that the user gave on the command line.
    pub permission: Permission,
}

/// Time that a load other than fio is assumed to need to start and end.
const START_AND_END: Nanos = Nanos(10_000_000);

/// A run that has passed all checks and can begin.
pub struct PreparedRun {
    /// Run, as it will be stored.
    pub run: Run,
    /// Slots that remain to be measured, with their position in the plan's order.
    pub todo: Vec<(u32, Slot)>,
    /// Scratch files that earlier runs left on the targets, and that were removed.
    pub swept: Vec<Swept>,
    /// Estimated duration of the run, computed before anything is written.
    pub estimate: Nanos,
    pub(crate) tools: Tools,
    pub(crate) session: ScratchSession,
    pub(crate) targets: Vec<Option<Place>>,
    pub(crate) _measuring: Vec<Claim>,
    pub(crate) pace: PaceEstimate,
}

/// Checks a plan against this machine and makes its open choices.
///
/// # Errors
/// The plan cannot be executed here. In this case nothing was changed.
pub fn prepare(
    spec: &PlanSpec,
    targets: Vec<String>,
    begin: &Begin,
    env: &Environment<'_>,
) -> Result<PreparedRun, RunError> {
    let settled = |engine| {
        spec.resolve(&Settings {
            targets: targets.clone(),
            engine,
            seed: begin.seed,
        })
    };
    let tools = find_tools(&settled(Engine::Auto)?, env)?;
    let session = env.state.begin(&begin.uid)?;
    let fio = tools.fio.as_ref();
    let plan = settled(fio.map_or(Engine::Auto, |fio| {
        fio.best_engine(session.dir(), env.cancel)
    }))?;
    let checked = check(env.host, &plan, begin.permission)?;
    let swept = sweep_targets(&checked);
    let infos: Vec<_> = checked.iter().map(|target| target.info.clone()).collect();
    let paths: Vec<PathBuf> = checked
        .iter()
        .filter(|target| target.place.is_some())
        .map(|target| target.path.clone())
        .collect();
    let mut facts = assay_facts::survey(env.host, &paths).about(&infos);
    env.enter_open_changes(&mut facts);
    let mut remarks = collect_remarks(&plan, &infos, &facts);
    remarks.extend(tools.remarks());
    remarks.extend(checked.iter().filter_map(part_of));
    remarks.extend(measured_by_others(&checked));
    remarks.extend(fio.and_then(|fio| fio.remark.clone()));
    let run = Run {
        id: RunId(0),
        uid: begin.uid.clone(),
        assay_version: env.version.to_owned(),
        started: (env.now)(),
        ended: None,
        state: RunState::Running,
        origin: Origin::Measured,
        plan: plan.kept(),
        targets: infos,
        facts,
        remarks,
        ladder: None,
    };
    let todo = (0u32..).zip(run.plan.order.iter().copied()).collect();
    finish(run, todo, swept, tools, session, checked, env)
}

/// Checks whether an interrupted run can be continued.
///
/// # Errors
/// The run is complete, imported or still running, or its targets changed.
pub fn prepare_resume(
    mut run: Run,
    samples: &[Sample],
    permission: Permission,
    env: &Environment<'_>,
) -> Result<PreparedRun, RunError> {
    let refuse = |run: &Run, message: String| {
        Err(RunError::Resume {
            run: run.id,
            message,
        })
    };
    if run.origin != Origin::Measured {
        return refuse(
            &run,
            "it was imported, so there is nothing to go on with".to_owned(),
        );
    }
    if run.ladder.is_some() {
        return refuse(
            &run,
            "its rungs are gone; `assay stack TARGET --measure` makes new ones".to_owned(),
        );
    }
    let done: Vec<u32> = samples.iter().map(|sample| sample.slot).collect();
    let todo: Vec<(u32, Slot)> = (0u32..)
        .zip(run.plan.order.iter().copied())
        .filter(|(slot, _)| !done.contains(slot))
        .collect();
    if todo.is_empty() {
        return refuse(
            &run,
            "all of its samples are there; `assay run` starts a new one".to_owned(),
        );
    }
    env.enter_open_changes(&mut run.facts);
    let tools = find_tools(&run.plan, env)?;
    let session = env.state.begin(&run.uid)?;
    let checked = check(env.host, &run.plan, permission)?;
    for (then, now) in run.targets.iter().zip(&checked) {
        if then.mount_source != now.info.mount_source || then.fs_type != now.info.fs_type {
            let message = format!(
                "{} was on {} and is on {} now: start a new run",
                then.name,
                then.mount_source.as_deref().unwrap_or("something unknown"),
                now.info
                    .mount_source
                    .as_deref()
                    .unwrap_or("something unknown"),
            );
            return refuse(&run, message);
        }
    }
    let swept = sweep_targets(&checked);
    run.remarks.push(format!(
        "resumed at {:.0} after {} of {} samples: the rest was measured later, on a new test file",
        (env.now)(),
        done.len(),
        run.plan.order.len()
    ));
    run.remarks.extend(measured_by_others(&checked));
    run.state = RunState::Running;
    run.ended = None;
    finish(run, todo, swept, tools, session, checked, env)
}

fn measured_by_others(targets: &[Checked]) -> impl Iterator<Item = String> {
    let remarks = targets.iter().map(|target| target.measuring.remark());
    remarks.flatten().map(str::to_owned)
}

fn sweep_targets(targets: &[Checked]) -> Vec<Swept> {
    let directories = targets.iter().filter_map(|target| match &target.place {
        Some(Place::Directory(directory)) => Some(directory),
        Some(Place::File(_)) | None => None,
    });
    directories
        .flat_map(|directory| sweep_directory(directory))
        .collect()
}

fn finish(
    run: Run,
    todo: Vec<(u32, Slot)>,
    swept: Vec<Swept>,
    tools: Tools,
    session: ScratchSession,
    checked: Vec<Checked>,
    env: &Environment<'_>,
) -> Result<PreparedRun, RunError> {
    debug_assert!(
        run.plan
            .workloads
            .iter()
            .filter_map(Planned::fio)
            .all(|workload| workload.engine != Engine::Auto)
    );
    let pace = PaceEstimate {
        layout: None,
        overhead: match &tools.fio {
            Some(fio) => fio.overhead(session.dir(), env.cancel)?,
            None => START_AND_END,
        },
    };
    let layouts: u64 = run
        .targets
        .iter()
        .filter(|t| lays_out(&run.plan, t))
        .map(|t| t.size.0)
        .sum();
    let estimate = estimate::estimate_slots(&run.plan, todo.iter().map(|(_, slot)| slot), &pace)
        .and(estimate::layout(assay_model::Bytes(layouts), &pace));
    let (targets, measuring) = checked
        .into_iter()
        .map(|target| (target.place, target.measuring))
        .unzip();
    Ok(PreparedRun {
        run,
        todo,
        swept,
        estimate,
        tools,
        session,
        targets,
        _measuring: measuring,
        pace,
    })
}

/// Finds the tools of the plan's loads.
fn find_tools(plan: &Plan, env: &Environment<'_>) -> Result<Tools, RunError> {
    let loads: Vec<Load> = plan
        .workloads
        .iter()
        .flat_map(|planned| loads_on_targets(&planned.load, &plan.targets))
        .collect();
    Ok(Tools::find(env, plan.seed, &loads)?)
}

/// Returns the load once for each target to which it applies. A load without its own server is sent to each target that
/// is a URL.
fn loads_on_targets(load: &Load, targets: &[String]) -> Vec<Load> {
    match load.http() {
        Some(http) if http.url.is_empty() => targets
            .iter()
            .filter(|target| is_url(target))
            .map(|url| {
                Load::Http(Box::new(Http {
                    url: url.clone(),
                    ..http.clone()
                }))
            })
            .collect(),
        _ => vec![load.clone()],
    }
}

/// Returns whether the target is laid out (filled) before measuring. Scratch files are laid out, and so are targets
/// that the user released with `--destroy-data`. A read-only target is never laid out.
pub(crate) fn lays_out(plan: &Plan, target: &assay_model::TargetInfo) -> bool {
    plan.needs_file() && (target.kind == TargetKind::Directory || plan.writes())
}
