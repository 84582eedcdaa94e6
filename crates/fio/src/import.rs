//! Converts a fio result that assay did not measure to a run with samples.

use crate::json::FioDocument;
use crate::options::{JobOptions, SyncOption};
use assay_model::plan::{Plan, Slot};
use assay_model::run::RunState;
use assay_model::sample::{Counters, Outcome, Sample, Worker};
use assay_model::target::{TargetInfo, TargetKind};
use assay_model::workload::{Durability, Engine, Pattern};
use assay_model::{Bytes, Facts, Nanos, Origin, Planned, Run, RunId, Workload};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::ops::Range;

/// Data for the run that the fio result does not contain.
#[derive(Clone, Debug)]
pub struct Context {
    /// Name of the file without its directory.
    pub file: String,
    /// Value for `Run::uid`.
    pub uid: String,
    /// Value for `Run::assay_version`.
    pub version: String,
    /// Time of the run. Used only if the result does not contain a time.
    pub now: Timestamp,
}

/// Returns the groups of equal jobs (`numjobs`). Jobs of a group are adjacent and have the same name, group number and
/// options.
#[must_use]
pub fn find_groups(document: &FioDocument) -> Vec<Range<usize>> {
    let jobs = &document.jobs;
    let mut out: Vec<Range<usize>> = Vec::new();
    for (index, job) in jobs.iter().enumerate() {
        match out.last_mut() {
            Some(range)
                if jobs[range.start].name == job.name
                    && jobs[range.start].fio.group == job.fio.group
                    && jobs[range.start].fio.options == job.fio.options =>
            {
                range.end = index + 1;
            }
            _ => out.push(index..index + 1),
        }
    }
    out
}

/// Converts a result to a run with one round, which has one sample for each group of equal jobs. Workload names are the
/// job names, simplified and made unique. Omits jobs that only trim.
#[must_use]
pub fn run(document: &FioDocument, context: &Context) -> (Run, Vec<Sample>) {
    let ended = document
        .timestamp_ms
        .and_then(|ms| Timestamp::from_millisecond(ms).ok())
        .unwrap_or(context.now);
    let mut names = BTreeMap::new();
    let mut targets: Vec<TargetInfo> = Vec::new();
    let mut plan = Plan {
        name: "imported".to_owned(),
        title: format!("Imported from {}", context.file),
        rounds: 1,
        ..Plan::default()
    };
    let mut samples = Vec::new();
    let mut remarks = Vec::new();
    for range in find_groups(document) {
        let jobs = &document.jobs[range];
        let Some(first) = jobs.first() else { continue };
        let options = JobOptions::from_result(first);
        let Some(pattern) = find_pattern(first, &options) else {
            continue;
        };
        let mut workload = to_workload(first, &options, pattern, jobs.len());
        workload.name = unique_name(&first.name, &mut names);
        if is_direct_unknown(&options) {
            remarks.push(format!(
                "{}: the result does not contain the option direct: the page cache may be part of the figures",
                workload.name
            ));
        }
        let target = to_target(&options);
        let index = match targets.iter().position(|known| known.name == target.name) {
            Some(index) => index,
            None => {
                targets.push(target);
                targets.len() - 1
            }
        };
        let wall = jobs.iter().map(longest_direction).max().unwrap_or_default();
        let slot = plan.order.len();
        plan.order.push(Slot {
            round: 1,
            workload: plan.workloads.len(),
            target: index,
            seed: 0,
        });
        samples.push(Sample {
            workload: workload.name.clone(),
            target: targets[index].name.clone(),
            round: 1,
            slot: u32::try_from(slot).unwrap_or(u32::MAX),
            started: subtract_time(ended, wall),
            wall,
            outcome: match jobs.iter().find(|job| job.fio.error != 0) {
                Some(job) => Outcome::Failed {
                    error: format!("fio ended with error {}", job.fio.error),
                },
                None => Outcome::Completed,
            },
            tool: document.fio_version.clone(),
            workers: jobs.to_vec(),
            counters: Counters::default(),
            file: None,
            series: Vec::new(),
        });
        plan.workloads.push(Planned::of_fio(workload));
    }
    plan.file_size = targets
        .iter()
        .map(|target| target.size)
        .max()
        .unwrap_or_default();
    plan.targets = targets.iter().map(|target| target.name.clone()).collect();
    let started = samples.iter().map(|sample| sample.started).min();
    let run = Run {
        id: RunId(0),
        uid: context.uid.clone(),
        assay_version: context.version.clone(),
        started: started.unwrap_or(ended),
        ended: Some(ended),
        state: RunState::Complete,
        origin: Origin::Imported {
            file: context.file.clone(),
        },
        plan,
        targets,
        facts: Facts::default(),
        remarks,
        ladder: None,
    };
    (run, samples)
}

/// Returns the longest run time among the directions of a job. `job_runtime` cannot be used, because it is a sum if
/// jobs are grouped.
fn longest_direction(job: &Worker) -> Nanos {
    let directions = [job.read(), job.write(), job.trim()];
    let longest = directions.into_iter().flatten().map(|io| io.runtime).max();
    longest.unwrap_or(job.runtime)
}

fn subtract_time(time: Timestamp, by: Nanos) -> Timestamp {
    let by = SignedDuration::from_nanos(i64::try_from(by.0).unwrap_or(i64::MAX));
    time.checked_sub(by).unwrap_or(time)
}

/// Determines the access pattern from the options, else from the operations.
fn find_pattern(job: &Worker, options: &JobOptions) -> Option<Pattern> {
    let (reads, writes, random) = if options.given("rw").is_some() {
        let access = options.access;
        (access.reads, access.writes, access.random)
    } else {
        (job.read().is_some(), job.write().is_some(), false)
    };
    Some(match (reads, writes, random) {
        (true, false, false) => Pattern::Read,
        (true, false, true) => Pattern::RandRead,
        (false, true, false) => Pattern::Write,
        (false, true, true) => Pattern::RandWrite,
        (true, true, false) => Pattern::Rw,
        (true, true, true) => Pattern::RandRw,
        (false, false, _) => return None,
    })
}

fn to_workload(job: &Worker, options: &JobOptions, pattern: Pattern, jobs: usize) -> Workload {
    let block_size = if job.fio.options.is_empty() {
        // Without options, only the mean size of an I/O is known.
        let io = job.read().or(job.write());
        Bytes(io.map_or(4096, |io| io.bytes.0.checked_div(io.count).unwrap_or(4096)))
    } else if pattern.reads() {
        options.block_size.0
    } else {
        options.block_size.1
    };
    Workload {
        name: String::new(),
        pattern,
        block_size,
        queue_depth: u32::try_from(options.iodepth).unwrap_or(u32::MAX),
        jobs: u32::try_from(jobs).unwrap_or(u32::MAX),
        read_percent: pattern.mixed().then(|| {
            let share = options
                .given("rwmixread")
                .and_then(|text| text.parse().ok());
            share.filter(|share: &u8| *share <= 100).unwrap_or(50)
        }),
        engine: match options.engine.as_str() {
            "io_uring" => Engine::IoUring,
            "libaio" => Engine::Libaio,
            "psync" | "sync" | "pvsync" | "pvsync2" | "vsync" => Engine::Psync,
            "nbd" => Engine::Nbd,
            _ => Engine::Auto,
        },
        // Unknown counts as assay's default; the run's remarks contain it.
        direct: options.direct || is_direct_unknown(options),
        durability: if !pattern.writes() {
            Durability::None
        } else if options.sync != SyncOption::No {
            Durability::Dsync
        } else if options.fdatasync > 0 {
            Durability::Fdatasync
        } else if options.fsync > 0 {
            Durability::Fsync
        } else {
            Durability::None
        },
        runtime: options.runtime,
        ramp: options.ramp,
    }
}

/// Returns whether it is unknown if the job bypassed the page cache.
fn is_direct_unknown(options: &JobOptions) -> bool {
    let given = ["direct", "buffered"]
        .iter()
        .any(|key| options.given(key).is_some());
    options.open && !given
}

fn to_target(options: &JobOptions) -> TargetInfo {
    let name = options
        .given("filename")
        .or_else(|| options.given("uri"))
        .or_else(|| options.given("directory"));
    let name = name.filter(|name| !name.is_empty()).unwrap_or("unknown");
    TargetInfo {
        name: name.to_owned(),
        kind: if name.starts_with("/dev/") && !name.starts_with("/dev/shm/") {
            TargetKind::BlockDevice
        } else {
            TargetKind::File
        },
        fs_type: None,
        mount_point: None,
        mount_options: None,
        mount_source: None,
        devices: Vec::new(),
        disks: Vec::new(),
        size: options.size.unwrap_or_default(),
        free: None,
    }
}

/// Converts a name to a name that criteria can contain: letters, digits, `-` and `_`, at most 60 characters. Appends a
/// number if the name is already in use.
fn unique_name(name: &str, seen: &mut BTreeMap<String, u32>) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' {
            c
        } else {
            '-'
        }
    };
    let mut base: String = name.chars().map(plain).take(56).collect();
    if base.trim_matches('-').is_empty() {
        base = "job".to_owned();
    }
    let mut candidate = base.clone();
    while seen.contains_key(&candidate) {
        let count = seen.entry(base.clone()).or_insert(1);
        *count += 1;
        candidate = format!("{base}-{count}");
    }
    seen.insert(candidate.clone(), 1);
    candidate
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_model::sample::FioJob;

    fn context() -> Context {
        Context {
            file: "r.json".to_owned(),
            uid: "00".to_owned(),
            version: "0".to_owned(),
            now: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn copies_are_one_sample_and_names_are_unique() {
        let job = |name: &str, bs: &str| Worker {
            name: name.to_owned(),
            fio: FioJob {
                options: [("rw", "randread"), ("bs", bs)]
                    .map(|(k, v)| (k.to_owned(), v.to_owned()))
                    .into(),
                ..FioJob::default()
            },
            ..Worker::default()
        };
        let document = FioDocument {
            jobs: vec![
                job("a b", "4k"),
                job("a b", "4k"),
                job("a b", "8k"),
                job("\n", "4k"),
            ],
            ..FioDocument::default()
        };
        let (run, samples) = run(&document, &context());
        let names: Vec<_> = run.plan.workloads.iter().map(|w| w.name.as_str()).collect();
        assert_eq!(names, ["a-b", "a-b-2", "job"]);
        assert_eq!(samples[0].workers.len(), 2);
        let fio = |at: usize| run.plan.workloads[at].fio().unwrap();
        assert_eq!(fio(0).jobs, 2);
        assert_eq!(fio(1).block_size, Bytes(8192));
    }

    #[test]
    fn a_real_result() {
        let text = include_str!("../fixtures/fio-3.33-mix.json");
        let document = &crate::json::parse(text).unwrap()[0];
        let (run, samples) = run(document, &context());
        let workload = run.plan.workloads[0].fio().unwrap();
        assert_eq!(workload.pattern, Pattern::RandRw);
        assert_eq!((workload.read_percent, workload.queue_depth), (Some(70), 8));
        assert_eq!(workload.engine, Engine::Libaio);
        assert_eq!(samples.len(), 1);
        assert!(samples[0].started < run.ended.unwrap());
        assert_eq!(run.targets[0].name, "/srv/t/f");
    }
}
