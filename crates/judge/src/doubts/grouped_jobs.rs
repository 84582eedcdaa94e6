//! Rule `grouped-jobs`: `group_reporting` sums jobs. A slow job disappears in the sum (observed: a job with 50 IOPS),
//! options and name come from different jobs, and `job_runtime` is a sum. Sections without `stonewall` or `new_group`
//! between them are summed too: the sum has the name of the first section and the options of the last.

use crate::doubts::{DoubtEvidence, EvidenceOrigin, clean_text, suspect_doubt, void_doubt};
use assay_fio::options::JobOptions;
use assay_model::Doubt;
use assay_model::sample::Worker;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "grouped-jobs";
/// Ratio of `job_runtime` to the longest run time from which `job_runtime` must be a sum over jobs.
const SUMMED: f64 = 1.5;

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let options = evidence.options?;
    // assay's own jobs have no sections.
    let entry = match (evidence.results, evidence.source) {
        ([entry], EvidenceOrigin::Imported) => Some(entry),
        _ => None,
    };
    let jobs = entry.map_or(1, |entry| count_jobs(entry, options.iodepth));
    // Copies of one section are equal jobs; more jobs than copies mean several sections.
    let sections = jobs > options.numjobs && jobs as f64 >= options.numjobs as f64 * SUMMED;
    if !evidence.grouped.is_empty() || sections {
        let seen = match evidence.grouped {
            [] => format!(
                "{jobs} jobs of several sections are one figure: it has the name of the first, and the options \
                 that are echoed are those of the last"
            ),
            [one] => format!("`{}` is summed up with it into one figure", clean_text(one)),
            [one, rest @ ..] => format!(
                "`{}` and {} more sections are summed up with it into one figure",
                clean_text(one),
                rest.len()
            ),
        };
        return Some(void_doubt(
            CODE,
            seen,
            "Leave group_reporting out, or put stonewall or new_group between sections that differ.",
        ));
    }
    if options.numjobs < 2 {
        return None;
    }
    let by_flag = options.is_on("group_reporting", false);
    let by_runtime = evidence
        .results
        .iter()
        .any(|job| count_summed_runtimes(job) > SUMMED);
    (by_flag || by_runtime).then(|| {
        suspect_doubt(
            CODE,
            format!(
                "{} jobs are reported as one: differences between them are hidden",
                options.numjobs
            ),
            "Leave group_reporting out and sum up the jobs yourself.",
        )
    })
}

/// Returns, for each job of a command, the other sections that are reported together with it.
pub(super) fn find_sections_reported_together<'a>(
    jobs: &'a [JobOptions],
    stages: &[usize],
) -> Vec<Vec<&'a str>> {
    let mut group = 0usize;
    let groups: Vec<(usize, usize)> = jobs
        .iter()
        .zip(stages)
        .map(|(job, stage)| {
            group +=
                usize::from(job.is_on("new_group", false) || job.unknown.contains("new_group"));
            (*stage, group)
        })
        .collect();
    let reported = |at: usize| jobs[at].is_on("group_reporting", false);
    (0..jobs.len())
        .map(|a| {
            let others = (0..jobs.len()).filter(|b| {
                *b != a
                    && groups[a] == groups[*b]
                    && reported(a)
                    && reported(*b)
                    && ask_for_different_loads(&jobs[a], &jobs[*b])
            });
            others.map(|b| jobs[b].name.as_str()).collect()
        })
        .collect()
}

/// Whether two sections describe different loads.
fn ask_for_different_loads(a: &JobOptions, b: &JobOptions) -> bool {
    const LOAD: [&str; 8] = [
        "rw", "bs", "bsrange", "bssplit", "iodepth", "ioengine", "direct", "rate",
    ];
    LOAD.iter().any(|key| a.given(key) != b.given(key))
}

/// Computes `job_runtime` ÷ the run time of the longest direction of an entry.
fn count_summed_runtimes(job: &Worker) -> f64 {
    let directions = [job.read(), job.write(), job.trim()];
    let longest = directions
        .into_iter()
        .flatten()
        .map(|io| io.runtime.0)
        .max();
    match longest {
        Some(longest) if longest > 0 => job.runtime.0 as f64 / longest as f64,
        _ => 1.0,
    }
}

/// Estimates how many jobs an entry sums: from the summed run times, else from the number of I/Os in flight if one job
/// cannot have so many.
fn count_jobs(job: &Worker, depth: u64) -> u64 {
    let by_time = count_summed_runtimes(job);
    if job.runtime.0 > 0 {
        return by_time.round() as u64;
    }
    let in_flight: f64 = [job.read(), job.write()]
        .into_iter()
        .flatten()
        .map(|io| io.per_s * io.lat.mean.max(io.slat.mean + io.clat.mean) / 1e9)
        .sum();
    (in_flight / depth.max(1) as f64).round() as u64
}
