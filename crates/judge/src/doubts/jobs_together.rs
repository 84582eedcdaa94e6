//! Rule `jobs-together`: sections of a job file run at the same time unless `stonewall` separates them. Two sections
//! that were meant as separate measurements of one file then disturb each other.

use crate::doubts::{DoubtEvidence, clean_text, suspect_doubt};
use assay_fio::json::FioDocument;
use assay_fio::options::JobOptions;
use assay_model::Doubt;
use std::collections::BTreeMap;
use std::ops::Range;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "jobs-together";

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let first = evidence.beside.first()?;
    let others = match evidence.beside.len() {
        1 => format!("`{}`", clean_text(first)),
        n => format!("`{}` and {} more", clean_text(first), n - 1),
    };
    Some(suspect_doubt(
        CODE,
        format!("it runs at the same time as {others}, on the same file"),
        "Put stonewall=1 into each section but the first, so that one begins when the other has ended.",
    ))
}

/// Finds the stage of each job of a job file; jobs of one stage run at the same time.
pub(super) fn find_stages(jobs: &[JobOptions]) -> Vec<usize> {
    let mut stage = 0usize;
    jobs.iter()
        .map(|job| {
            stage +=
                usize::from(job.is_on("stonewall", false) || job.unknown.contains("stonewall"));
            stage
        })
        .collect()
}

/// Maximum number of seconds by which fio's elapsed time exceeds the sum of its stages. fio counts whole seconds and
/// lays out files.
const BESIDE: f64 = 2.0;

/// Finds the stage of each group of equal jobs of a result. A result does not contain `stonewall`. fio begins a new
/// `groupid` after `stonewall`, but also after `new_group`. Only after `stonewall` is `elapsed` the sum of the run
/// times.
pub(super) fn find_result_stages(
    document: &FioDocument,
    groups: &[Range<usize>],
    jobs: &[JobOptions],
) -> Vec<usize> {
    let by_option = find_stages(jobs);
    let first = |range: &Range<usize>| document.jobs.get(range.start);
    let ids: Vec<u32> = groups
        .iter()
        .map(|range| first(range).map_or(0, |job| job.fio.group))
        .collect();
    // Time of each group, its warm-up included.
    let mut times: BTreeMap<u32, f64> = BTreeMap::new();
    for ((range, id), options) in groups.iter().zip(&ids).zip(jobs) {
        let ramp = options.ramp.map_or(0.0, |ramp| ramp.0 as f64 / 1e9);
        for job in document.jobs.get(range.clone()).unwrap_or_default() {
            let directions = [job.read(), job.write(), job.trim()];
            let longest = directions
                .into_iter()
                .flatten()
                .map(|io| io.runtime.0)
                .max();
            let took = longest.unwrap_or(0) as f64 / 1e9 + ramp;
            let known = times.entry(*id).or_default();
            *known = known.max(took);
        }
    }
    let sum: f64 = times.values().sum();
    let longest = times.values().copied().fold(0.0, f64::max);
    let elapsed = document.elapsed_s as f64;
    let at_once =
        elapsed > 0.0 && sum - longest > BESIDE && elapsed < longest + (sum - longest) / 2.0;
    match at_once {
        true => by_option,
        false => ids
            .iter()
            .zip(by_option)
            .map(|(id, stage)| *id as usize * (jobs.len() + 1) + stage)
            .collect(),
    }
}

/// Returns, for each job, the names of the jobs that run at the same time on one of its files.
#[must_use]
pub(super) fn find_jobs_on_same_files<'a>(
    jobs: &'a [JobOptions],
    stages: &[usize],
) -> Vec<Vec<&'a str>> {
    let together = |a: usize, b: usize| {
        let waits = |at: usize| jobs[at].given("wait_for").is_some();
        a != b
            && stages[a] == stages[b]
            && !waits(a)
            && !waits(b)
            && share_a_file(&jobs[a], &jobs[b])
    };
    (0..jobs.len())
        .map(|a| {
            let others = (0..jobs.len()).filter(|&b| together(a, b));
            others.map(|b| jobs[b].name.as_str()).collect()
        })
        .collect()
}

/// Whether two jobs use a common file. A job without `filename` has its own files.
fn share_a_file(a: &JobOptions, b: &JobOptions) -> bool {
    let (Some(mine), Some(theirs)) = (a.given("filename"), b.given("filename")) else {
        return false;
    };
    a.given("directory") == b.given("directory")
        && mine
            .split(':')
            .any(|file| theirs.split(':').any(|other| other == file))
}
