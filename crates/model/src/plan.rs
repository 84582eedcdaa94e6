//! Plans of measurements. A user writes a [`PlanSpec`] as TOML or as command-line options. [`PlanSpec::resolve`]
//! converts it to a [`Plan`], in which every value is fixed. The [`Plan`] is executed, printed by `--print-plan`, and
//! stored with the run.

mod builtin;
mod parse;
mod planned;

pub use builtin::{BUILTIN, builtin_plan};
pub use parse::PlanError;
pub use planned::Planned;

use crate::criterion::Criterion;
use crate::load::Load;
use crate::target::is_url;
use crate::units::{Bytes, Nanos};
use crate::workload::{Durability, Engine, Pattern};
use rand_chacha::rand_core::SeedableRng as _;
use serde::{Deserialize, Serialize};

/// A plan as the user writes it. All fields except the workloads have defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanSpec {
    /// Name of the plan, as in `assay run NAME`.
    pub name: String,
    /// The question that the plan answers, as a title on one line.
    #[serde(default)]
    pub title: String,
    /// Number of samples of each workload on each target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u32>,
    /// Duration of the measurement in one sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Nanos>,
    /// Ramp: duration of the load before the measurement starts, in each sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ramp: Option<Nanos>,
    /// Size of the scratch file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_size: Option<Bytes>,
    /// Seed of the measuring order, and of fio's offsets and data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Success criteria such as `randwrite-4k-qd1.p99 <= 20ms`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub want: Vec<Criterion>,
    /// Directories, files or devices to measure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<String>,
    /// Single workloads (`[[workload]]` in TOML).
    #[serde(default, rename = "workload", skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<WorkloadSpec>,
    /// Workloads as Cartesian products of lists (`[[grid]]` in TOML).
    #[serde(default, rename = "grid", skip_serializing_if = "Vec::is_empty")]
    pub grids: Vec<Grid>,
}

/// A workload as the user writes it: parameters of fio, or another load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkloadSpec {
    /// Name of the workload; derived from its parameters if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A load other than fio. If present, only the name and the times may be set in addition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
    /// Order and direction of the I/Os.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Pattern>,
    /// Size of one I/O in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_size: Option<Bytes>,
    /// I/Os in flight for each job; 1 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_depth: Option<u32>,
    /// Number of concurrent jobs; 1 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<u32>,
    /// Percentage of reads in mixed patterns; 50 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_percent: Option<u8>,
    /// I/O engine; selected automatically if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<Engine>,
    /// Whether to bypass the page cache; true if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct: Option<bool>,
    /// When a write counts as complete; `none` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durability: Option<Durability>,
    /// Duration of the measurement in one sample; that of the plan if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Nanos>,
    /// Duration of the load before the measurement; that of the plan if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ramp: Option<Nanos>,
}

/// Several workloads: the Cartesian product of the lists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    /// Access patterns of the workloads.
    pub pattern: Vec<Pattern>,
    /// Sizes of one I/O in bytes.
    pub block_size: Vec<Bytes>,
    /// I/Os in flight for each job.
    pub queue_depth: Vec<u32>,
    /// I/O engine; selected automatically if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<Engine>,
    /// Whether to bypass the page cache; true if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct: Option<bool>,
    /// When a write counts as complete; `none` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durability: Option<Durability>,
}

/// Values that the execution needs and that a plan may omit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Targets from the command line. If there are any, they replace the targets of the plan.
    pub targets: Vec<String>,
    /// Engine that replaces `Engine::Auto`.
    pub engine: Engine,
    /// Seed that is used if the plan has none.
    pub seed: u64,
}

/// A plan in which every value is fixed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Plan {
    /// Name of the plan.
    pub name: String,
    /// The question that the plan answers, as a title on one line.
    pub title: String,
    /// Number of rounds. In each round, every workload is measured once on every target.
    pub rounds: u32,
    /// Size of the scratch file.
    pub file_size: Bytes,
    /// Success criteria of the user.
    pub seed: u64,
    /// Targets as the user wrote them.
    pub want: Vec<Criterion>,
    /// Targets as the user named them.
    pub targets: Vec<String>,
    /// Loads with their names and times. No engine of a fio load is `Auto`.
    pub workloads: Vec<Planned>,
    /// Slots in execution order.
    pub order: Vec<Slot>,
}

/// One sample to take: a workload on a target in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Slot {
    /// Number of the round, counted from 1.
    pub round: u32,
    /// Index into `Plan::workloads`.
    pub workload: usize,
    /// Index into `Plan::targets`.
    pub target: usize,
    /// Seed of fio's offsets and data in this sample (`randseed`).
    pub seed: u64,
}

/// Default number of rounds.
pub const DEFAULT_ROUNDS: u32 = 5;
/// Default duration of the measurement in a sample.
pub const DEFAULT_RUNTIME: Nanos = Nanos(5_000_000_000);
/// Default duration of the load before the measurement.
pub const DEFAULT_RAMP: Nanos = Nanos(500_000_000);
/// Default size of the scratch file.
pub const DEFAULT_FILE_SIZE: Bytes = Bytes(1 << 30);

impl Grid {
    /// Returns the workloads of the product. The outermost loop is over block sizes, then patterns, then queue depths.
    fn expand(&self) -> impl Iterator<Item = WorkloadSpec> + '_ {
        self.block_size.iter().flat_map(move |&block_size| {
            self.pattern.iter().flat_map(move |&pattern| {
                self.queue_depth
                    .iter()
                    .map(move |&queue_depth| WorkloadSpec {
                        pattern: Some(pattern),
                        block_size: Some(block_size),
                        queue_depth: Some(queue_depth),
                        engine: self.engine,
                        direct: self.direct,
                        durability: self.durability,
                        ..WorkloadSpec::default()
                    })
            })
        })
    }
}

impl PlanSpec {
    /// Sets all missing values, and determines the measuring order. Within each round, all workloads × targets are
    /// shuffled, so that drift of the machine affects all workloads equally.
    ///
    /// # Errors
    /// A value is missing, duplicated, zero or inconsistent.
    pub fn resolve(&self, settings: &Settings) -> Result<Plan, PlanError> {
        let targets = if settings.targets.is_empty() {
            self.targets.clone()
        } else {
            settings.targets.clone()
        };
        let grid = self.grids.iter().flat_map(Grid::expand);
        let times = [
            self.runtime.unwrap_or(DEFAULT_RUNTIME),
            self.ramp.unwrap_or(DEFAULT_RAMP),
        ];
        let workloads = (1..).zip(self.workloads.iter().cloned().chain(grid));
        let workloads: Result<Vec<Planned>, PlanError> = workloads
            .map(|(number, workload)| {
                let settled = workload.settle(settings.engine, times);
                settled.map_err(|message| PlanError::Content {
                    plan: self.name.clone(),
                    message: format!("workload {number}: {message}"),
                })
            })
            .collect();
        let mut plan = Plan {
            name: self.name.clone(),
            title: self.title.clone(),
            rounds: self.rounds.unwrap_or(DEFAULT_ROUNDS),
            file_size: self.file_size.unwrap_or(DEFAULT_FILE_SIZE),
            seed: self.seed.unwrap_or(settings.seed),
            want: self.want.clone(),
            targets,
            workloads: workloads?,
            order: Vec::new(),
        };
        parse::check(&plan)?;
        plan.order = order(&plan);
        Ok(plan)
    }
}

fn order(plan: &Plan) -> Vec<Slot> {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(plan.seed);
    let mut slots = Vec::new();
    for round in 1..=plan.rounds {
        let mut in_round: Vec<Slot> = (0..plan.targets.len())
            .flat_map(|target| (0..plan.workloads.len()).map(move |workload| (workload, target)))
            .map(|(workload, target)| Slot {
                round,
                workload,
                target,
                seed: 0,
            })
            .collect();
        crate::shuffle(&mut in_round, &mut rng);
        slots.extend(in_round);
    }
    for (i, slot) in slots.iter_mut().enumerate() {
        // fio's randseed differs in every sample, so that offsets do not repeat (randrepeat).
        slot.seed = plan.seed.wrapping_add(1 + i as u64) & i64::MAX as u64;
    }
    slots
}

impl Plan {
    /// Returns whether any workload writes.
    #[must_use]
    pub fn writes(&self) -> bool {
        let mut fio = self.workloads.iter().filter_map(Planned::fio);
        fio.any(|workload| workload.pattern.writes())
    }

    /// Returns whether any load is fio on a file.
    #[must_use]
    pub fn needs_file(&self) -> bool {
        self.workloads.iter().any(|load| load.fio().is_some())
    }

    /// Returns the plan without secrets of HTTP loads, for storing and printing.
    #[must_use]
    pub fn kept(mut self) -> Self {
        for target in self.targets.iter_mut().filter(|target| is_url(target)) {
            *target = crate::secrets::withhold_in_text(target);
        }
        self.workloads = self
            .workloads
            .into_iter()
            .map(|planned| Planned {
                load: planned.load.kept(),
                ..planned
            })
            .collect();
        self
    }

    /// Returns the plan as a TOML file that resolves to the same plan.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let spec = PlanSpec {
            name: self.name.clone(),
            title: self.title.clone(),
            rounds: Some(self.rounds),
            runtime: None,
            ramp: None,
            file_size: Some(self.file_size),
            seed: Some(self.seed),
            want: self.want.clone(),
            targets: self.targets.clone(),
            grids: Vec::new(),
            workloads: self.workloads.iter().cloned().map(Into::into).collect(),
        };
        parse::print(&spec)
    }
}

#[cfg(test)]
mod tests;
