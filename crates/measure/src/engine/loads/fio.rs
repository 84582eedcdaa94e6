//! Runs fio: writes the job for each kind of target, and converts fio's output to a sample.

use super::Taken;
use crate::engine::{EngineError, LoadTarget, Meter, MeterSlot};
use assay_fio::job;
use assay_fio::json::FioDocument;
use assay_loads::Cancel;
use assay_loads::fio::{Fio, FioEnd, FioError, FioOutput, FioRequest, find_complaint};
use assay_model::sample::{Outcome, Worker};
use assay_model::workload::Engine;
use assay_model::{Bytes, Nanos, Workload};
use std::path::Path;
use std::time::Duration;

/// Number of points in a sample's rate over time. 15 points show a slope or a stall without storing much data.
const POINTS: u64 = 15;
/// Minimum and maximum interval between two points of the rate over time, in nanoseconds.
const POINT: (u64, u64) = (20_000_000, 10_000_000_000);
/// Time that fio may need to start and end in addition to the load, in nanoseconds.
const START_AND_END: u64 = 30_000_000_000;

/// Interval between two points of the rate over time, for a job file with an unknown duration.
const LOG_EVERY: Nanos = Nanos(500_000_000);

/// Durations of a sample with fio.
struct Times {
    /// Duration of the load: ramp and runtime.
    planned: Nanos,
    log_every: Nanos,
    /// Time after which fio counts as hanging and is killed.
    limit: Nanos,
}

impl Times {
    fn of(workload: &Workload) -> Self {
        let [runtime, ramp] = [workload.runtime, workload.ramp].map(Option::unwrap_or_default);
        let planned = Nanos(runtime.0 + ramp.0);
        Self {
            planned,
            log_every: Nanos((runtime.0 / POINTS).clamp(POINT.0, POINT.1)),
            limit: Nanos(planned.0 + runtime.0 + START_AND_END),
        }
    }
}

pub(crate) fn run<E: From<EngineError>>(
    meter: &Meter<'_>,
    slot: &MeterSlot<'_>,
    workload: &Workload,
    guest: &mut dyn FnMut(&str, Nanos) -> Result<FioOutput, E>,
) -> Result<Taken, E> {
    let workload = &Workload {
        runtime: Some(slot.runtime),
        ramp: Some(slot.ramp),
        ..workload.clone()
    };
    let place = slot.place;
    let job = render(place, workload, slot.size, slot.seed)?;
    let times = Times::of(workload);
    let (output, tool) = if let LoadTarget::Guest { .. } = place {
        (guest(&job, times.planned)?, "fio in the guest".to_owned())
    } else {
        let fio = meter.tools.fio.as_ref().ok_or(EngineError::Unfit("fio"))?;
        let request = FioRequest {
            job: &job,
            work_dir: meter.work,
            log_every: times.log_every,
            block: workload.block_size,
            limit: times.limit,
        };
        let output = fio.run(&request, meter.cancel).map_err(EngineError::Fio)?;
        (output, fio.version.clone())
    };
    let (outcome, workers) = read(&output);
    Ok(Taken {
        outcome,
        workers,
        // The guest has another clock.
        wall: (!matches!(place, LoadTarget::Guest { .. })).then_some(output.wall),
        cpu: output.cpu,
        tool,
        series: output.series,
    })
}

/// Returns the job file of a workload for a target.
fn render(
    place: &LoadTarget,
    workload: &Workload,
    size: Bytes,
    seed: u64,
) -> Result<String, EngineError> {
    match place {
        LoadTarget::File { link, .. } => job::render(workload, Path::new(link), size, seed),
        LoadTarget::Guest { path } => job::render(workload, path, size, seed),
        LoadTarget::Nbd { link, export } => {
            let workload = Workload {
                engine: Engine::Nbd,
                ..workload.clone()
            };
            job::render_nbd(&workload, Path::new(link), export, size, seed)
        }
        LoadTarget::Itself | LoadTarget::Address { .. } | LoadTarget::Named { .. } => {
            return Err(EngineError::Unfit("a file or an export for fio"));
        }
    }
    .map_err(|source| EngineError::Job {
        workload: workload.name.clone(),
        source,
    })
}

/// Runs a job file unchanged in a work directory, for jobs that are not one of assay's workloads. Returns how the job
/// ended, and the output of fio.
///
/// # Errors
/// fio cannot be started, or its output cannot be stored.
pub fn run_job_file(
    fio: &Fio,
    work: &Path,
    job: &str,
    limit: Duration,
    cancel: &Cancel,
) -> Result<(Outcome, FioDocument), FioError> {
    let request = FioRequest {
        job,
        work_dir: work,
        log_every: LOG_EVERY,
        block: Bytes(4096),
        limit: limit.into(),
    };
    Ok(parse_result(&fio.run(&request, cancel)?))
}

/// Parses fio's result. Returns the outcome of the sample, and one worker per job.
#[must_use]
pub fn read(output: &FioOutput) -> (Outcome, Vec<Worker>) {
    let (outcome, document) = parse_result(output);
    (outcome, document.jobs)
}

fn parse_result(output: &FioOutput) -> (Outcome, FioDocument) {
    let failed = |error: String| Outcome::Failed { error };
    let said = find_complaint(&output.stderr)
        .map(|line| format!(": {line}"))
        .unwrap_or_default();
    let document = match assay_fio::json::parse(&output.json) {
        Ok(documents) => documents.into_iter().next_back().unwrap_or_default(),
        Err(_) if output.ended == FioEnd::Cancelled => {
            return (Outcome::Interrupted, FioDocument::default());
        }
        Err(error) => {
            let outcome = match output.ended {
                FioEnd::TimedOut => Outcome::TimedOut { after: output.wall },
                FioEnd::Exited(0) => failed(format!("fio printed no usable result: {error}{said}")),
                FioEnd::Exited(code) => failed(format!("fio ended with status {code}{said}")),
                FioEnd::Cancelled => Outcome::Interrupted,
            };
            return (outcome, FioDocument::default());
        }
    };
    let outcome = match output.ended {
        FioEnd::Cancelled => Outcome::Interrupted,
        FioEnd::TimedOut => Outcome::TimedOut { after: output.wall },
        FioEnd::Exited(code) => {
            let mut errnos = document.jobs.iter().map(|job| job.fio.error);
            match errnos.find(|errno| *errno != 0) {
                Some(errno) => {
                    let reason = std::io::Error::from_raw_os_error(errno);
                    failed(format!("I/O error: {reason}{said}"))
                }
                None if code != 0 => failed(format!("fio ended with status {code}{said}")),
                None if document.jobs.is_empty() => failed(format!("fio reported no job{said}")),
                None => Outcome::Completed,
            }
        }
    };
    (outcome, document)
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_model::workload::{Durability, Pattern};

    fn output(json: &str, stderr: &str, ended: FioEnd) -> FioOutput {
        FioOutput {
            json: json.as_bytes().to_vec(),
            stderr: stderr.to_owned(),
            ended,
            wall: Nanos(1),
            cpu: None,
            series: Vec::new(),
        }
    }

    fn error(output: &FioOutput) -> String {
        match read(output).0 {
            Outcome::Failed { error } => error,
            other => panic!("{other:?}"),
        }
    }

    fn workload(runtime: u64, ramp: u64) -> Workload {
        Workload {
            name: "w".to_owned(),
            pattern: Pattern::RandRead,
            block_size: Bytes(4096),
            queue_depth: 1,
            jobs: 1,
            read_percent: None,
            engine: Engine::Psync,
            direct: true,
            durability: Durability::None,
            runtime: Some(Nanos(runtime)),
            ramp: Some(Nanos(ramp)),
        }
    }

    #[test]
    fn a_short_sample_has_few_points_and_a_long_one_no_gaps() {
        let second = 1_000_000_000;
        let seen: Vec<_> = [
            (second / 10, 0),
            (15 * second, 2 * second),
            (3600 * second, 0),
        ]
        .map(|(runtime, ramp)| Times::of(&workload(runtime, ramp)))
        .iter()
        .map(|times| (times.planned.0, times.log_every.0, times.limit.0))
        .collect();
        assert_eq!(
            seen,
            [
                (second / 10, second / 50, second / 5 + 30 * second),
                (17 * second, second, 62 * second),
                (3600 * second, 10 * second, 7230 * second),
            ]
        );
    }

    #[test]
    fn an_export_is_loaded_over_nbd_whatever_the_workload_says() {
        let place = LoadTarget::Nbd {
            link: "image".to_owned(),
            export: "it".to_owned(),
        };
        let job = render(&place, &workload(1, 0), Bytes(1 << 20), 1).unwrap();
        assert!(
            job.contains("ioengine=nbd") && job.contains("socket=image"),
            "{job}"
        );
    }

    #[test]
    fn fio_has_no_job_for_an_address() {
        let place = LoadTarget::Address {
            host: "localhost".to_owned(),
            port: 80,
        };
        let refused = render(&place, &workload(1, 0), Bytes(1 << 20), 1);
        assert!(matches!(refused, Err(EngineError::Unfit(_))));
    }

    #[test]
    fn garbage_truncation_and_silence_are_failures_with_a_reason() {
        let said = error(&output(
            "",
            "fio: engine libaio not loadable\n",
            FioEnd::Exited(1),
        ));
        insta::assert_snapshot!(said, @"fio ended with status 1: fio: engine libaio not loadable");
        insta::assert_snapshot!(error(&output("not json", "", FioEnd::Exited(0))), @r#"fio printed no usable result: no fio result in it: expected `{ "fio version": … }`; run fio with --output-format=json+"#);
        let said = error(&output(
            "{\"fio version\": \"fio-3.33\", \"jobs\": [",
            "",
            FioEnd::Exited(0),
        ));
        insta::assert_snapshot!(said, @"fio printed no usable result: cut off at line 1 (byte 37): the end of the JSON is missing; no complete document and no complete job of the cut one could still be read; run fio again, or copy the whole file");
    }

    #[test]
    fn a_timeout_is_a_timeout_whatever_was_printed() {
        let (outcome, _) = read(&output("", "", FioEnd::TimedOut));
        assert!(matches!(outcome, Outcome::TimedOut { .. }));
        let (outcome, _) = read(&output("", "", FioEnd::Cancelled));
        assert_eq!(outcome, Outcome::Interrupted);
    }

    #[test]
    fn an_io_error_names_itself() {
        let json = r#"{"fio version":"fio-3.33","jobs":[{"jobname":"a","error":28}]}"#;
        let said = error(&output(json, "", FioEnd::Exited(1)));
        insta::assert_snapshot!(said, @"I/O error: No space left on device (os error 28)");
    }
}
