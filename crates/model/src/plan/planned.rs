//! A load of a plan, and its stored form. A fio workload is stored key by key, any other load in a table of its own.
//! The store and JSON documents use the same form.

use super::{DEFAULT_RAMP, DEFAULT_RUNTIME, WorkloadSpec};
use crate::load::Load;
use crate::units::Nanos;
use crate::workload::{Engine, Workload};
use serde::{Deserialize, Serialize};

/// A load of a plan, in which every value is fixed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "WorkloadSpec", into = "WorkloadSpec")]
pub struct Planned {
    /// Name of the load in results and criteria: letters, digits, `-` and `_`.
    pub name: String,
    /// The load.
    pub load: Load,
    /// Duration of the measurement.
    pub runtime: Nanos,
    /// Ramp: duration of the load before the measurement starts.
    pub ramp: Nanos,
}

impl Planned {
    /// Creates a load from a fio workload that has a name. Missing times get the defaults.
    #[must_use]
    pub fn of_fio(workload: Workload) -> Self {
        Self {
            name: workload.name.clone(),
            runtime: workload.runtime.unwrap_or(DEFAULT_RUNTIME),
            ramp: workload.ramp.unwrap_or(DEFAULT_RAMP),
            load: Load::Fio {
                workload,
                size: None,
            },
        }
    }

    /// Returns the fio workload; `None` for a load other than fio.
    #[must_use]
    pub fn fio(&self) -> Option<&Workload> {
        self.load.fio()
    }

    /// Returns the total time of a sample: ramp and runtime.
    #[must_use]
    pub fn time(&self) -> Nanos {
        Nanos(self.runtime.0.saturating_add(self.ramp.0))
    }

    /// Returns a description on one line.
    #[must_use]
    pub fn describe(&self) -> String {
        match self.fio() {
            Some(workload) => workload.describe(),
            None => self.load.describe(),
        }
    }
}

impl WorkloadSpec {
    /// Sets all missing values. `auto` is the engine that replaces `Engine::Auto`; `times` are the default runtime and
    /// ramp.
    ///
    /// # Errors
    /// A value is missing or inconsistent.
    pub(super) fn settle(self, auto: Engine, times: [Nanos; 2]) -> Result<Planned, String> {
        let [runtime, ramp] = times;
        let (runtime, ramp) = (self.runtime.unwrap_or(runtime), self.ramp.unwrap_or(ramp));
        let name = self.name.clone();
        let mut load = match self.load.clone() {
            None => self.of_fio()?,
            Some(load) if self.bare() => load,
            Some(_) => {
                return Err(
                    "`load` names what is done; leave out pattern, block_size and the other keys of \
                     fio, or leave out `load`"
                        .to_owned(),
                );
            }
        };
        if let Load::Fio { workload, size } = &mut load {
            if size.is_some() {
                return Err("the size of fio's file is the plan's `file_size`".to_owned());
            }
            (workload.runtime, workload.ramp) = (Some(runtime), Some(ramp));
            if workload.engine == Engine::Auto {
                workload.engine = auto;
            }
            if let Some(name) = &name {
                workload.name.clone_from(name);
            }
        }
        Ok(Planned {
            name: name.unwrap_or_else(|| load.name().to_owned()),
            load,
            runtime,
            ramp,
        })
    }

    /// Returns whether no parameter of fio is set.
    fn bare(&self) -> bool {
        let rest = Self {
            name: self.name.clone(),
            load: self.load.clone(),
            runtime: self.runtime,
            ramp: self.ramp,
            ..Self::default()
        };
        *self == rest
    }

    fn of_fio(self) -> Result<Load, String> {
        let missing = |key: &str| format!("`{key}` is missing; or name another load as `load`");
        let pattern = self.pattern.ok_or_else(|| missing("pattern"))?;
        let mut workload = Workload {
            name: String::new(),
            pattern,
            block_size: self.block_size.ok_or_else(|| missing("block_size"))?,
            queue_depth: self.queue_depth.unwrap_or(1),
            jobs: self.jobs.unwrap_or(1),
            read_percent: pattern.mixed().then(|| self.read_percent.unwrap_or(50)),
            engine: self.engine.unwrap_or_default(),
            direct: self.direct.unwrap_or(true),
            durability: self.durability.unwrap_or_default(),
            runtime: None,
            ramp: None,
        };
        workload.name = self.name.unwrap_or_else(|| workload.default_name());
        Ok(Load::Fio {
            workload,
            size: None,
        })
    }
}

impl TryFrom<WorkloadSpec> for Planned {
    type Error = String;

    fn try_from(written: WorkloadSpec) -> Result<Self, String> {
        written.settle(Engine::Auto, [DEFAULT_RUNTIME, DEFAULT_RAMP])
    }
}

impl From<Planned> for WorkloadSpec {
    fn from(planned: Planned) -> Self {
        let named = Self {
            name: Some(planned.name),
            runtime: Some(planned.runtime),
            ramp: Some(planned.ramp),
            ..Self::default()
        };
        match planned.load {
            Load::Fio { workload, .. } => Self {
                pattern: Some(workload.pattern),
                block_size: Some(workload.block_size),
                queue_depth: Some(workload.queue_depth),
                jobs: Some(workload.jobs),
                read_percent: workload.read_percent,
                engine: Some(workload.engine),
                direct: Some(workload.direct),
                durability: Some(workload.durability),
                ..named
            },
            load => Self {
                load: Some(load),
                ..named
            },
        }
    }
}
