//! One load on one place, as a sample.

use crate::TrialError;
use assay_host::Host;
use assay_instruments::Cancel;
use assay_instruments::command;
use assay_instruments::counters::{Snapshot, Sources};
use assay_instruments::fio::{Fio, Request};
use assay_instruments::{Measured, Timing, attributes, http, imap};
use assay_model::sample::{Counters, JobResult, Outcome, RatePoint, Sample};
use assay_model::target::FileState;
use assay_model::trial::TrialPlan;
use assay_model::workload::Engine;
use assay_model::{Bytes, Load, Nanos, Workload};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What a load is done to. File and socket are names below the work directory, links to the real
/// ones, so that no load generator sees what a user called them.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// A file or block device.
    File {
        /// Its directory, where assay made the file system.
        dir: Option<PathBuf>,
        /// Link to it.
        link: String,
        /// What it looked like after layout.
        state: Option<FileState>,
    },
    /// An NBD export.
    Nbd {
        /// Link to its socket.
        link: String,
        /// Its name.
        export: String,
    },
    /// Something that listens.
    Address {
        /// Host.
        host: String,
        /// Port.
        port: u16,
    },
    /// What the load itself names.
    Named {
        /// The target, for `{path}` of a command.
        path: PathBuf,
    },
}

/// What does the load.
pub(crate) struct Loader<'a> {
    pub host: &'a dyn Host,
    pub cancel: &'a Cancel,
    pub now: &'a dyn Fn() -> jiff::Timestamp,
    pub fio: Option<Fio>,
    /// What `Engine::Auto` becomes on a file.
    pub engine: Engine,
    pub work: PathBuf,
    pub sources: Sources,
    /// Read once; it reaches no report.
    pub password: Option<imap::Secret>,
}

/// What an instrument gave.
struct Taken {
    outcome: Outcome,
    jobs: Vec<JobResult>,
    wall: Nanos,
    cpu: Option<Nanos>,
    tool: String,
    series: Vec<RatePoint>,
    workload: String,
}

impl Loader<'_> {
    /// Does the load once.
    pub(crate) fn run(
        &self,
        plan: &TrialPlan,
        place: &Place,
        pair: u32,
        slot: u32,
    ) -> Result<Sample, TrialError> {
        let started = (self.now)();
        let before = Snapshot::take(self.host, &self.sources);
        let taken = match &plan.load {
            // The same seed for both sides of a pair: the same offsets and data.
            Load::Fio { workload, size } => {
                self.fio(plan, workload, *size, place, plan.seed ^ u64::from(pair))?
            }
            load => self.operations(plan, load, place)?,
        };
        let after = Snapshot::take(self.host, &self.sources);
        Ok(Sample {
            workload: taken.workload,
            target: plan.target.clone(),
            round: pair,
            slot,
            started,
            wall: taken.wall,
            outcome: taken.outcome,
            tool: taken.tool,
            jobs: taken.jobs,
            counters: Counters {
                tool_cpu: taken.cpu,
                ..before.until(&after)
            },
            file: match place {
                Place::File { state, .. } => state.clone(),
                _ => None,
            },
            series: taken.series,
        })
    }

    fn fio(
        &self,
        plan: &TrialPlan,
        workload: &Workload,
        size: Bytes,
        place: &Place,
        seed: u64,
    ) -> Result<Taken, TrialError> {
        let fio = self.fio.as_ref().ok_or(TrialError::Unfit("fio"))?;
        let workload = settled(plan, workload, place, self.engine);
        let job = match place {
            Place::File { link, .. } => {
                assay_fio::job::render(&workload, Path::new(link), size, seed)
            }
            Place::Nbd { link, export } => {
                assay_fio::job::render_nbd(&workload, Path::new(link), export, size, seed)
            }
            Place::Address { .. } | Place::Named { .. } => {
                return Err(TrialError::Unfit("a file or an export for fio"));
            }
        }
        .map_err(|error| TrialError::Job(error.to_string()))?;
        let planned = plan.slot.0 + plan.washout.0;
        let output = fio.run(
            &Request {
                job: &job,
                work_dir: &self.work,
                log_every: Nanos((plan.slot.0 / 15).clamp(20_000_000, 10_000_000_000)),
                block: workload.block_size,
                limit: Nanos(planned + plan.slot.0 + 30_000_000_000),
            },
            self.cancel,
        )?;
        let (outcome, jobs) = assay_runner::read(&output);
        Ok(Taken {
            outcome,
            jobs,
            wall: output.wall,
            cpu: output.cpu,
            tool: fio.version.clone(),
            series: output.series,
            workload: workload.name,
        })
    }
}

/// The workload as fio does it: times from the plan, the engine that the place needs.
pub(crate) fn settled(
    plan: &TrialPlan,
    workload: &Workload,
    place: &Place,
    engine: Engine,
) -> Workload {
    let engine = match (place, workload.engine) {
        (Place::Nbd { .. }, _) => Engine::Nbd,
        (_, Engine::Auto) if workload.queue_depth == 1 && !workload.direct => Engine::Psync,
        (_, Engine::Auto) => engine,
        (_, other) => other,
    };
    Workload {
        engine,
        runtime: Some(plan.slot),
        ramp: Some(plan.washout),
        ..workload.clone()
    }
}

/// Longest that one request, login or command may take.
const OPERATION_LIMIT: Nanos = Nanos(60_000_000_000);

impl Loader<'_> {
    /// A load of our own: requests, logins, commands.
    fn operations(
        &self,
        plan: &TrialPlan,
        load: &Load,
        place: &Place,
    ) -> Result<Taken, TrialError> {
        let timing = Timing {
            washout: plan.washout,
            runtime: plan.slot,
            limit: OPERATION_LIMIT,
        };
        let (tool, measured) = match load {
            Load::Fio { .. } => return Err(TrialError::Unfit("fio")),
            Load::Command { argv } => {
                let argv = argv.iter().map(|word| filled(word, place)).collect();
                (
                    "assay-command",
                    command::run(&command::Request { argv, timing }, self.cancel),
                )
            }
            Load::Attributes { files, size } => {
                let Place::File { dir: Some(dir), .. } = place else {
                    return Err(TrialError::Unfit("a file system of assay's own"));
                };
                let request = attributes::Request {
                    dir: dir.clone(),
                    files: *files,
                    size: *size,
                    timing,
                };
                ("assay-attributes", attributes::run(&request, self.cancel))
            }
            Load::Http {
                url,
                connections,
                keep_alive,
            } => {
                let request = http::Request {
                    url: url.clone(),
                    connections: *connections,
                    keep_alive: *keep_alive,
                    timing,
                };
                ("assay-http", http::run(&request, self.cancel))
            }
            Load::Imap {
                address,
                user,
                sessions,
                ..
            } => {
                let request = imap::Request {
                    address: address.clone(),
                    user: user.clone(),
                    password: self
                        .password
                        .clone()
                        .ok_or(TrialError::Unfit("a password"))?,
                    sessions: *sessions,
                    timing,
                };
                ("assay-imap", imap::run(&request, self.cancel))
            }
        };
        let workload = tool.trim_start_matches("assay-").to_owned();
        let tool = tool.to_owned();
        Ok(match measured {
            Ok(measured) => Taken {
                outcome: outcome(&measured),
                jobs: vec![measured.job],
                wall: measured.wall,
                cpu: Some(measured.cpu),
                tool,
                series: Vec::new(),
                workload,
            },
            Err(error) => Taken {
                outcome: Outcome::Failed {
                    error: error.to_string(),
                },
                jobs: Vec::new(),
                wall: Nanos(0),
                cpu: None,
                tool,
                series: Vec::new(),
                workload,
            },
        })
    }
}

/// Operations that failed make the figure of those that did not one of other work.
fn outcome(measured: &Measured) -> Outcome {
    match (measured.cancelled, measured.errors.first()) {
        (true, _) => Outcome::Interrupted,
        (false, None) => Outcome::Completed,
        (false, Some(failures)) => Outcome::Failed {
            error: format!(
                "{} of {} failed: {}",
                failures.count,
                failures.count + measured.job.read.as_ref().map_or(0, |read| read.ios),
                failures.first
            ),
        },
    }
}

/// `{host}`, `{port}` and `{path}` filled in.
fn filled(word: &str, place: &Place) -> OsString {
    match place {
        Place::Address { host, port } => word
            .replace("{host}", host)
            .replace("{port}", &port.to_string())
            .into(),
        Place::Named { path } if word == "{path}" => path.clone().into(),
        Place::Named { path } => word.replace("{path}", &path.to_string_lossy()).into(),
        Place::File { .. } | Place::Nbd { .. } => word.into(),
    }
}
