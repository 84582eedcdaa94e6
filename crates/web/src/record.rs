//! Converts a measurement of web servers into a stored run: one workload for each kind of step, one target for
//! each server, one sample for each step.

use crate::target::Target;
use assay_http::Url;
use assay_model::load::Http;
use assay_model::plan::Slot;
use assay_model::run::{Origin, RunId, RunState};
use assay_model::sample::Counters;
use assay_model::web::{Pace, Step};
use assay_model::{Bytes, Facts, Load, Nanos, Plan, Planned, Run, Sample, TargetInfo, secrets};
use jiff::Timestamp;

/// Name of the plan of runs that `assay web` stores.
pub const PLAN: &str = "web-server";

/// Data about a run that is known when the run starts.
pub struct Opening<'a> {
    /// Unique id of the run.
    pub uid: String,
    /// Version of assay that measures.
    pub version: &'static str,
    /// Time at which the run starts.
    pub started: Timestamp,
    /// Facts about the generator's machine.
    pub facts: Facts,
    /// Seed of all random choices in the run.
    pub seed: u64,
    /// Number of rounds, in each of which every step is measured once.
    pub rounds: u32,
    /// Names of the servers.
    pub targets: &'a [String],
    /// Warnings about each server for the reader of the results.
    pub remarks: &'a [Vec<String>],
}

/// Builds the record of a run before the first measurement.
#[must_use]
pub fn open(opening: Opening<'_>) -> Run {
    let names = opening.targets;
    let about = names.iter().zip(opening.remarks);
    let remarks = about.flat_map(|(name, remarks)| {
        let each = remarks.iter();
        each.map(move |remark| format!("{name}: {remark}"))
    });
    Run {
        id: RunId(0),
        uid: opening.uid,
        assay_version: opening.version.to_owned(),
        started: opening.started,
        ended: None,
        state: RunState::Running,
        origin: Origin::Measured,
        remarks: remarks.collect(),
        plan: Plan {
            name: PLAN.to_owned(),
            title: "How much can a web server do, and what do its users wait?".to_owned(),
            rounds: opening.rounds,
            seed: opening.seed,
            targets: names.to_vec(),
            ..Plan::default()
        },
        targets: names.iter().map(|name| TargetInfo::server(name)).collect(),
        facts: opening.facts,
        ladder: None,
    }
}

/// Returns the name of a server in results, which is its URL without parts that may be secret.
#[must_use]
pub fn name(target: &Target) -> String {
    name_of(&target.url)
}

/// Returns the URL without parts that may be secret.
#[must_use]
pub fn name_of(url: &Url) -> String {
    secrets::withhold_in_text(&url.to_string())
}

/// Adds a step to the run: its workload, its slot in the plan and its sample. The step started at `started`. `load`
/// describes the requests; its pace is ignored.
pub fn enter(
    run: &mut Run,
    load: &Http,
    times: [Nanos; 2],
    step: &Step,
    started: Timestamp,
) -> Sample {
    let [runtime, ramp] = times;
    let load = Http {
        url: String::new(),
        connections: step.connections,
        rate: step.pace.rate().filter(|_| step.share.is_none()),
        poisson: matches!(step.pace, Pace::Poisson { .. }),
        share: step.share,
        ..load.kept()
    };
    let load = match step.pace {
        // The times come from the log.
        Pace::Replay { .. } => Http { rate: None, ..load },
        _ => load,
    };
    let load = Load::Http(Box::new(load));
    let known = run.plan.workloads.iter().position(|one| one.load == load);
    let workload = known.unwrap_or_else(|| {
        let taken = |name: &String| run.plan.workloads.iter().any(|one| one.name == *name);
        let plain = called(step);
        let name = match taken(&plain) {
            true => format!("{plain}-c{}", step.connections),
            false => plain,
        };
        run.plan.workloads.push(Planned {
            name,
            load,
            runtime,
            ramp,
        });
        run.plan.workloads.len() - 1
    });
    let number = run.plan.order.len() as u32;
    run.plan.order.push(Slot {
        round: step.round + 1,
        workload,
        target: step.target,
        seed: run.plan.seed.wrapping_add(u64::from(number)),
    });
    Sample {
        workload: run.plan.workloads[workload].name.clone(),
        target: run.targets[step.target].name.clone(),
        round: step.round + 1,
        slot: number,
        started,
        wall: step.measured.window,
        outcome: step.measured.outcome(),
        tool: "assay-http".to_owned(),
        counters: Counters {
            elapsed: step.machine.window,
            tool_cpu: Some(step.measured.cpu),
            ..Counters::default()
        },
        file: None,
        series: step.measured.series(),
        workers: vec![step.clone().into_worker()],
    }
}

/// Returns the name of a step, such as `c8`, `at-25`, `rate-500` or `log`.
fn called(step: &Step) -> String {
    let number = |value: f64| value.to_string().replace('.', "-");
    match (step.pace, step.share) {
        (Pace::Closed, _) => format!("c{}", step.connections),
        (Pace::Replay { .. }, _) => "log".to_owned(),
        (_, Some(share)) => format!("at-{}", number((share * 1e4).round() / 100.0)),
        (Pace::Constant { per_s } | Pace::Poisson { per_s }, None) => {
            format!("rate-{}", number((per_s * 100.0).round() / 100.0))
        }
    }
}

/// Returns the steps of a run of web servers; `None` for other runs. The indices of the targets are the positions in
/// the run.
#[must_use]
pub fn steps(run: &Run, samples: &[Sample]) -> Option<Vec<Step>> {
    if run.plan.name != PLAN || run.plan.file_size != Bytes(0) {
        return None;
    }
    let step = |sample: &Sample| {
        let target = run
            .targets
            .iter()
            .position(|one| one.name == sample.target)?;
        let seen = sample
            .workers
            .iter()
            .find_map(|worker| worker.http.as_deref())?;
        Some(Step {
            target,
            ..seen.clone()
        })
    };
    samples.iter().map(step).collect()
}
