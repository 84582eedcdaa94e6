//! Figures that fio measures: converts a figure to a workload, and computes the figure from fio's result.

use crate::{StudyError, settings, to_observation};
use assay_fio::json::FioDocument;
use assay_loads::fio::Fio;
use assay_model::doubt::Severity;
use assay_model::sample::{Operations, Outcome, Worker};
use assay_model::study::{Configuration, Figure, Observation};
use assay_model::workload::{Durability, Engine, Pattern, Workload};
use assay_model::{Bytes, Nanos};
use serde::Deserialize;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Name of the file, directory or device in job files for [`Work::run`].
pub(crate) const TARGET: &str = "target";

/// Settings that turn a figure into a workload of fio.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    pattern: Pattern,
    block_size: Bytes,
    #[serde(default = "default_one")]
    queue_depth: u32,
    #[serde(default = "default_one")]
    jobs: u32,
    #[serde(default = "default_true")]
    direct: bool,
    #[serde(default)]
    durability: Durability,
    of: Of,
}

fn default_one() -> u32 {
    1
}

fn default_true() -> bool {
    true
}

/// Value of fio's result that a figure reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Of {
    /// I/O operations per second.
    Iops,
    /// Bytes per second in the workload's direction.
    Rate,
    /// Mean latency in nanoseconds.
    Latency,
}

/// Converts a figure to a workload that runs for `runtime`.
///
/// # Errors
/// A setting of the figure is invalid. The error names the figure and the setting.
pub(crate) fn to_workload(figure: &Figure, runtime: Nanos) -> Result<(Workload, Of), StudyError> {
    let wanted: Wanted = settings::of_figure(figure)?;
    let workload = Workload {
        name: figure.name.clone(),
        pattern: wanted.pattern,
        block_size: wanted.block_size,
        queue_depth: wanted.queue_depth,
        jobs: wanted.jobs,
        read_percent: None,
        engine: match wanted.queue_depth {
            1 => Engine::Psync,
            _ => Engine::Libaio,
        },
        direct: wanted.direct,
        durability: wanted.durability,
        runtime: Some(runtime),
        ramp: None,
    };
    Ok((workload, wanted.of))
}

/// Workloads of figures that are measured together. They run one after the other in one fio process.
pub(crate) struct Jobs<'a>(Vec<(Workload, Vec<(&'a Figure, Of)>)>);

impl<'a> Jobs<'a> {
    /// Builds the jobs of figures. Figures with equal workloads share a job. Each round starts with a different job, so
    /// that the order varies.
    ///
    /// # Errors
    /// See [`to_workload`].
    pub fn of(figures: &[&'a Figure], runtime: Nanos, round: u32) -> Result<Self, StudyError> {
        let mut jobs: Vec<(Workload, Vec<(&Figure, Of)>)> = Vec::new();
        for figure in figures {
            let (workload, of) = to_workload(figure, runtime)?;
            let same = jobs.iter_mut().find(|(known, _)| {
                let name = known.name.clone();
                *known
                    == Workload {
                        name,
                        ..workload.clone()
                    }
            });
            match same {
                Some((_, wanted)) => wanted.push((figure, of)),
                None => jobs.push((workload, vec![(figure, of)])),
            }
        }
        let first = round as usize % jobs.len().max(1);
        jobs.rotate_left(first);
        Ok(Self(jobs))
    }

    /// Renders the job file.
    ///
    /// # Errors
    /// A workload does not fit the size of the file, or fio cannot use the file.
    pub fn render(&self, file: &Path, size: Bytes, seed: u64) -> Result<String, StudyError> {
        let mut text = String::new();
        for (workload, _) in &self.0 {
            let job = assay_fio::job::render(workload, file, size, seed);
            text += &job.map_err(|error| StudyError::measure("fio", error))?;
            text += "stonewall\n";
        }
        Ok(text)
    }

    /// Returns the time that the jobs take together.
    pub fn time(&self) -> Duration {
        let times = self
            .0
            .iter()
            .map(|(workload, _)| workload.runtime.unwrap_or_default());
        times.map(Duration::from).sum()
    }

    /// Computes the observations from fio's result. They contain the judge's doubts (reasons to distrust a figure).
    pub fn observations(
        &self,
        configuration: &Configuration,
        round: u32,
        document: &FioDocument,
    ) -> Vec<Observation> {
        let mut all = Vec::new();
        for (workload, wanted) in &self.0 {
            let jobs: Vec<Worker> = document
                .jobs
                .iter()
                .filter(|job| job.name == workload.name)
                .cloned()
                .collect();
            let (iops, rate, latency) = total(&jobs, workload);
            let doubts = assay_judge::judge_jobs(&jobs);
            for (figure, of) in wanted {
                let value = match of {
                    Of::Iops => iops,
                    Of::Rate => rate,
                    Of::Latency => latency,
                };
                all.push(Observation {
                    doubts: doubts.iter().map(|doubt| doubt.code.clone()).collect(),
                    void: doubts.iter().any(|doubt| doubt.severity == Severity::Void),
                    ..to_observation(configuration, figure, round, value)
                });
            }
        }
        all
    }
}

/// Returns operations per second, bytes per second and mean latency over all jobs, in the workload's direction.
fn total(jobs: &[Worker], workload: &Workload) -> (f64, f64, f64) {
    let side = |job: &Worker| match workload.pattern.reads() {
        true => job.read().cloned(),
        false => job.write().cloned(),
    };
    let all: Vec<Operations> = jobs.iter().filter_map(side).collect();
    let ios: f64 = all.iter().map(|stats| stats.count as f64).sum();
    let time: f64 = all
        .iter()
        .map(|stats| stats.lat.mean * stats.count as f64)
        .sum();
    (
        all.iter().map(|stats| stats.per_s).sum(),
        all.iter().map(|stats| stats.bytes_per_s).sum(),
        time / ios.max(1.0),
    )
}

/// Private directory for the job files and results of the host's fio.
pub(crate) struct Work(PathBuf);

impl Work {
    /// Creates the directory so that no other user can access it.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub fn new(dir: PathBuf) -> Result<Self, StudyError> {
        let made = std::fs::DirBuilder::new().mode(0o700).create(&dir);
        made.map_err(StudyError::io(&dir))?;
        Ok(Self(dir))
    }

    /// Runs jobs on a file of `size` bytes.
    ///
    /// # Errors
    /// fio is missing, fails, or was interrupted.
    pub fn jobs(
        &self,
        place: &crate::BenchContext<'_>,
        jobs: &Jobs<'_>,
        file: &Path,
        size: Bytes,
        seed: u64,
    ) -> Result<FioDocument, StudyError> {
        let job = jobs.render(Path::new(TARGET), size, seed)?;
        self.run(place, file, &job, jobs.time() + Duration::from_secs(60))
    }

    /// Runs a job file that refers to its file, directory or device as [`TARGET`]. fio never receives the real name, so
    /// names need no escaping.
    ///
    /// # Errors
    /// fio is missing, fails, exceeds `limit`, or was interrupted.
    pub fn run(
        &self,
        place: &crate::BenchContext<'_>,
        target: &Path,
        job: &str,
        limit: Duration,
    ) -> Result<FioDocument, StudyError> {
        let fail = |reason: &dyn std::fmt::Display| StudyError::measure("fio", reason);
        let fio = Fio::find(place.env.host, place.env.fio).map_err(|error| fail(&error))?;
        assay_measure::engine::link(&self.0, TARGET, target).map_err(|error| fail(&error))?;
        let done =
            assay_measure::engine::fio::run_job_file(&fio, &self.0, job, limit, place.env.cancel);
        let (outcome, document) = done.map_err(|error| fail(&error))?;
        match outcome {
            Outcome::Completed => Ok(document),
            Outcome::Interrupted => Err(StudyError::Cancelled),
            Outcome::TimedOut { .. } => Err(fail(&"it did not end and was stopped")),
            Outcome::Failed { error } => Err(fail(&error)),
        }
    }
}
