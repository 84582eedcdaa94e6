//! Why a sample may not mean what it seems to: one rule per file, all of them pure.
//!
//! The same rules judge a command line before it runs, a result that somebody else measured, and
//! assay's own samples: a rule takes what evidence there is and says nothing where there is none.

mod burst;
mod cache_hit_read;
mod compressible_data;
mod coordinated_omission;
mod cut_short;
mod depth_not_reached;
mod device_in_use;
mod direct_ignored_zfs;
mod engine_dependent;
mod evidence;
mod flush_dropped_zfs;
mod flush_hidden;
mod foreign_load;
mod grouped_jobs;
mod histogram_capped;
mod io_error;
mod jobs_overlap;
mod jobs_together;
mod l2arc_read;
mod many_jobs_one_file;
mod mix_ignored;
mod no_io;
mod no_random_map;
mod no_time_based;
mod null_engine;
mod offload_hang;
mod open_change;
pub mod other_tools;
mod overrun;
mod page_cache_read;
mod page_cache_write;
mod prefetched_read;
mod rate_capped;
mod repeated_offsets;
mod say;
mod short_io;
mod small_target;
mod sparse_file;
mod sync_ignored_zfs;
mod sync_on_read;
mod throttled;
mod tmpfs;
mod too_short;
mod tool_cpu;
mod unflushed_write;
mod unified_directions;
mod unit_trap;
mod unknown_option;
mod worlds;
mod wrong_mount;

pub(crate) use evidence::{ENOUGH, HALF};
pub use evidence::{Evidence, Origin};
pub(crate) use say::{clean, suspect, void};

use assay_fio::import;
use assay_fio::json::Document;
use assay_fio::options::JobOptions;
use assay_model::sample::Worker;
use assay_model::{Doubt, Facts, Run, Sample, TargetInfo};
use std::ops::Range;

/// What is no reason to doubt reads that are meant to come from a cache.
pub(crate) const ABOUT_CACHED_READS: [&str; 5] = [
    page_cache_read::CODE,
    cache_hit_read::CODE,
    direct_ignored_zfs::CODE,
    l2arc_read::CODE,
    prefetched_read::CODE,
];

/// To which loads a rule applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loads {
    /// fio: the rule is about its options, its I/O or what lies under its file.
    Fio,
    /// Those whose own work is told from that of other programs. A server that answers requests and
    /// logins works for the load too, and nobody counts it apart.
    Told,
    /// All: the rule is about the machine.
    Every,
}

impl Loads {
    fn include(self, evidence: &Evidence) -> bool {
        match self {
            Self::Fio => evidence.is_fio(),
            Self::Told => !evidence.is_served(),
            Self::Every => true,
        }
    }
}

struct Rule {
    code: &'static str,
    loads: Loads,
    check: fn(&Evidence) -> Option<Doubt>,
}

macro_rules! rule {
    ($name:ident, $loads:ident) => {
        Rule {
            code: $name::CODE,
            loads: Loads::$loads,
            check: $name::check,
        }
    };
}

/// All rules, in the order in which their doubts are shown: first what voids, then the cache, the
/// time, the pattern, the reporting.
const RULES: [Rule; 46] = [
    rule!(no_io, Fio),
    rule!(io_error, Fio),
    rule!(short_io, Fio),
    rule!(null_engine, Fio),
    rule!(tmpfs, Fio),
    rule!(wrong_mount, Every),
    rule!(device_in_use, Fio),
    rule!(engine_dependent, Fio),
    rule!(depth_not_reached, Fio),
    rule!(page_cache_read, Fio),
    rule!(cache_hit_read, Fio),
    rule!(small_target, Fio),
    rule!(page_cache_write, Fio),
    rule!(unflushed_write, Fio),
    rule!(direct_ignored_zfs, Fio),
    rule!(l2arc_read, Fio),
    rule!(prefetched_read, Fio),
    rule!(sync_ignored_zfs, Fio),
    rule!(flush_dropped_zfs, Fio),
    rule!(sparse_file, Fio),
    rule!(compressible_data, Fio),
    rule!(no_time_based, Fio),
    rule!(cut_short, Fio),
    rule!(overrun, Fio),
    rule!(too_short, Fio),
    rule!(burst, Fio),
    rule!(open_change, Every),
    rule!(foreign_load, Told),
    rule!(throttled, Every),
    rule!(sync_on_read, Fio),
    rule!(flush_hidden, Fio),
    rule!(repeated_offsets, Fio),
    rule!(no_random_map, Fio),
    rule!(jobs_overlap, Fio),
    rule!(jobs_together, Fio),
    rule!(many_jobs_one_file, Fio),
    rule!(grouped_jobs, Fio),
    rule!(mix_ignored, Fio),
    rule!(unit_trap, Fio),
    rule!(unknown_option, Fio),
    rule!(coordinated_omission, Fio),
    rule!(rate_capped, Fio),
    rule!(offload_hang, Fio),
    rule!(tool_cpu, Fio),
    rule!(histogram_capped, Fio),
    rule!(unified_directions, Fio),
];

/// The codes of all rules, in the order in which they are shown.
pub fn codes() -> impl Iterator<Item = &'static str> {
    RULES.iter().map(|rule| rule.code)
}

/// Every rule on this evidence.
#[must_use]
pub fn judge(evidence: &Evidence) -> Vec<Doubt> {
    RULES
        .iter()
        .filter(|rule| rule.loads.include(evidence))
        .filter_map(|rule| (rule.check)(evidence))
        .collect()
}

/// What each job of one call of fio would not measure, by its options alone.
#[must_use]
pub fn judge_options(jobs: &[JobOptions]) -> Vec<Vec<Doubt>> {
    let stages = jobs_together::stages(jobs);
    let beside = jobs_together::beside(jobs, &stages);
    let grouped = grouped_jobs::sections(jobs, &stages);
    jobs.iter()
        .zip(&beside)
        .zip(&grouped)
        .map(|((options, beside), grouped)| {
            worlds::certain(options, |options| {
                judge(&Evidence {
                    options: Some(options),
                    beside,
                    grouped,
                    source: Origin::CommandLine,
                    ..Evidence::default()
                })
            })
        })
        .collect()
}

/// What each group of equal jobs of a foreign result did not measure.
#[must_use]
pub fn judge_result(document: &Document) -> Vec<JudgedJobs> {
    let groups = import::groups(document);
    let alone = groups.len() == 1;
    let options: Vec<JobOptions> = groups
        .iter()
        .map(|range| {
            let first = document.jobs[range.clone()].first();
            first.and_then(options_of).unwrap_or_default()
        })
        .collect();
    let stages = jobs_together::stages_of_result(document, &groups, &options);
    let beside = jobs_together::beside(&options, &stages);
    groups
        .into_iter()
        .zip(&beside)
        .map(|(range, beside)| {
            let jobs = &document.jobs[range.clone()];
            let options = jobs.first().and_then(options_of);
            let doubts = judge(&Evidence {
                options: options.as_ref(),
                results: jobs,
                beside,
                // fio counts the disks over all jobs together.
                disks: if alone { &document.disks } else { &[] },
                unified: document.unified.iter().any(|index| range.contains(index)),
                source: Origin::Imported,
                ..Evidence::default()
            });
            JudgedJobs {
                jobs: range,
                doubts,
            }
        })
        .collect()
}

/// Jobs that are copies of one another (`numjobs`), and their doubts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgedJobs {
    /// Indices into `Document::jobs`.
    pub jobs: Range<usize>,
    /// Their doubts.
    pub doubts: Vec<Doubt>,
}

/// What is known about a sample from elsewhere.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Around<'a> {
    /// Who measured.
    pub source: Origin,
    /// What was measured on.
    pub target: Option<&'a TargetInfo>,
    /// The machine.
    pub facts: Option<&'a Facts>,
}

impl<'a> Around<'a> {
    /// What a run knows about one of its samples.
    pub fn of(run: &'a Run, sample: &Sample) -> Self {
        Self {
            source: match run.origin {
                assay_model::Origin::Measured => Origin::Measured,
                assay_model::Origin::Imported { .. } => Origin::Imported,
            },
            target: run
                .targets
                .iter()
                .find(|target| target.name == sample.target),
            facts: Some(&run.facts),
        }
    }
}

/// What a sample did not measure.
#[must_use]
pub(crate) fn for_sample(around: Around<'_>, sample: &Sample) -> Vec<Doubt> {
    let options = sample.workers.first().and_then(options_of);
    judge(&Evidence {
        options: options.as_ref(),
        results: &sample.workers,
        series: &sample.series,
        counters: Some(&sample.counters),
        target: around.target,
        file: sample.file.as_ref(),
        facts: around.facts,
        source: around.source,
        ..Evidence::default()
    })
}

/// What jobs of ours that ran together did not measure, by their result alone.
pub(crate) fn for_jobs(jobs: &[Worker]) -> Vec<Doubt> {
    judge(&Evidence {
        options: jobs.first().and_then(options_of).as_ref(),
        results: jobs,
        source: Origin::Measured,
        ..Evidence::default()
    })
}

/// The options of a job, none when the result does not tell them (fio before 2.2): defaults must
/// not be taken for what was asked.
fn options_of(job: &Worker) -> Option<JobOptions> {
    (!job.fio.options.is_empty()).then(|| JobOptions::from_result(job))
}

#[cfg(test)]
mod tests;
