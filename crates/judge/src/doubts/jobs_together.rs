//! Sections of a job file run at the same time unless `stonewall` keeps them apart. Two that are meant as
//! two measurements of one file then measure each other.

use crate::doubts::{Evidence, clean, suspect};
use assay_fio::options::JobOptions;
use assay_model::Doubt;

/// Name of the rule.
pub const CODE: &str = "jobs-together";

pub(super) fn check(evidence: &Evidence) -> Option<Doubt> {
    let first = evidence.beside.first()?;
    let others = match evidence.beside.len() {
        1 => format!("`{}`", clean(first)),
        n => format!("`{}` and {} more", clean(first), n - 1),
    };
    Some(suspect(
        CODE,
        format!("it runs at the same time as {others}, on the same file"),
        "Put stonewall=1 into each section but the first, so that one begins when the other has ended.",
    ))
}

/// For each job, the names of those that run at the same time on one of its files.
#[must_use]
pub(super) fn beside(jobs: &[JobOptions]) -> Vec<Vec<&str>> {
    let mut stage = 0usize;
    let stages: Vec<usize> = jobs
        .iter()
        .map(|job| {
            stage += usize::from(job.is_on("stonewall", false));
            stage
        })
        .collect();
    let together = |a: usize, b: usize| {
        let waits = |at: usize| jobs[at].given("wait_for").is_some();
        a != b && stages[a] == stages[b] && !waits(a) && !waits(b) && share(&jobs[a], &jobs[b])
    };
    (0..jobs.len())
        .map(|a| {
            let others = (0..jobs.len()).filter(|&b| together(a, b));
            others.map(|b| jobs[b].name.as_str()).collect()
        })
        .collect()
}

/// Whether they name a file in common. Without a name each job has files of its own.
fn share(a: &JobOptions, b: &JobOptions) -> bool {
    let (Some(mine), Some(theirs)) = (a.given("filename"), b.given("filename")) else {
        return false;
    };
    a.given("directory") == b.given("directory")
        && mine
            .split(':')
            .any(|file| theirs.split(':').any(|other| other == file))
}
