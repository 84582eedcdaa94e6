//! Doubts: reasons why a sample may not measure what it seems to measure. Each rule is a pure function in its own file.
//! Rules about HTTP loads are in [`crate::web`].
//!
//! The same rules judge a command line before it runs, an imported result, and assay's own samples. A rule without
//! evidence returns no doubt.

mod burst;
mod cache_hit_read;
mod compressible_data;
mod coordinated_omission;
mod cut_short;
mod depth_not_reached;
mod device_in_use;
mod direct_ignored_zfs;
mod doubt_constructors;
mod doubt_evidence;
mod engine_dependent;
mod flush_dropped_zfs;
mod flush_hidden;
mod foreign_io;
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
pub mod other_results;
pub mod other_tools;
mod overrun;
mod page_cache_read;
mod page_cache_write;
mod prefetched_read;
mod rate_capped;
mod repeated_offsets;
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
mod unknown_values;
mod wrong_mount;

pub(crate) use doubt_constructors::{clean_text, suspect_doubt, void_doubt};
pub use doubt_evidence::{DoubtEvidence, EvidenceOrigin};
pub(crate) use doubt_evidence::{ENOUGH, HALF};

use assay_fio::import;
use assay_fio::json::FioDocument;
use assay_fio::options::JobOptions;
use assay_model::sample::Worker;
use assay_model::{Doubt, Facts, Run, Sample, TargetInfo};
use std::ops::Range;

/// Doubts that do not apply if reads are intended to come from a cache.
pub(crate) const ABOUT_CACHED_READS: [&str; 5] = [
    page_cache_read::CODE,
    cache_hit_read::CODE,
    direct_ignored_zfs::CODE,
    l2arc_read::CODE,
    prefetched_read::CODE,
];

/// Kinds of load that a rule applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RuleLoads {
    /// fio only: the rule is about fio's options, its I/O or the storage below its file.
    Fio,
    /// All loads whose own CPU time can be separated from the CPU time of other programs. Requests and logins are
    /// excluded, because the server works for the load too.
    Told,
    /// Every load: the rule is about the machine.
    Every,
}

impl RuleLoads {
    fn includes(self, evidence: &DoubtEvidence) -> bool {
        match self {
            Self::Fio => evidence.is_fio(),
            Self::Told => !evidence.is_served(),
            Self::Every => true,
        }
    }
}

struct DoubtRule {
    code: &'static str,
    loads: RuleLoads,
    check: fn(&DoubtEvidence) -> Option<Doubt>,
}

macro_rules! rule {
    ($name:ident, $loads:ident) => {
        DoubtRule {
            code: $name::CODE,
            loads: RuleLoads::$loads,
            check: $name::check,
        }
    };
}

/// All rules, in the order in which reports list their doubts: first the rules that make a sample void, then the rules
/// about caches, time, access pattern and reporting.
const RULES: [DoubtRule; 47] = [
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
    rule!(foreign_io, Fio),
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

/// Returns the codes of all rules, in the order in which they are shown.
pub fn list_rule_codes() -> impl Iterator<Item = &'static str> {
    RULES.iter().map(|rule| rule.code)
}

/// Applies every rule to the evidence.
#[must_use]
pub fn apply_rules(evidence: &DoubtEvidence) -> Vec<Doubt> {
    RULES
        .iter()
        .filter(|rule| rule.loads.includes(evidence))
        .filter_map(|rule| (rule.check)(evidence))
        .collect()
}

/// Finds the doubts about each job of one fio command, from the options alone.
#[must_use]
pub fn judge_options(jobs: &[JobOptions]) -> Vec<Vec<Doubt>> {
    let stages = jobs_together::find_stages(jobs);
    let beside = jobs_together::find_jobs_on_same_files(jobs, &stages);
    let grouped = grouped_jobs::find_sections_reported_together(jobs, &stages);
    jobs.iter()
        .zip(&beside)
        .zip(&grouped)
        .map(|((options, beside), grouped)| {
            unknown_values::find_certain_doubts(options, |options| {
                apply_rules(&DoubtEvidence {
                    options: Some(options),
                    beside,
                    grouped,
                    source: EvidenceOrigin::CommandLine,
                    ..DoubtEvidence::default()
                })
            })
        })
        .collect()
}

/// Finds the doubts about each group of equal jobs in an imported result.
#[must_use]
pub fn judge_result(document: &FioDocument) -> Vec<JudgedJobs> {
    let groups = import::find_groups(document);
    let alone = groups.len() == 1;
    let options: Vec<JobOptions> = groups
        .iter()
        .map(|range| {
            let first = document.jobs[range.clone()].first();
            first.and_then(read_job_options).unwrap_or_default()
        })
        .collect();
    let stages = jobs_together::find_result_stages(document, &groups, &options);
    let beside = jobs_together::find_jobs_on_same_files(&options, &stages);
    groups
        .into_iter()
        .zip(&beside)
        .map(|(range, beside)| {
            let jobs = &document.jobs[range.clone()];
            let options = jobs.first().and_then(read_job_options);
            let doubts = apply_with_options(
                options.as_ref(),
                &DoubtEvidence {
                    results: jobs,
                    beside,
                    // fio counts the disks over all jobs together.
                    disks: if alone { &document.disks } else { &[] },
                    unified: document.unified.iter().any(|index| range.contains(index)),
                    source: EvidenceOrigin::Imported,
                    ..DoubtEvidence::default()
                },
            );
            JudgedJobs {
                jobs: range,
                doubts,
            }
        })
        .collect()
}

/// A group of equal jobs (fio's `numjobs`) with the doubts about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgedJobs {
    /// Indices of the jobs in the imported document.
    pub jobs: Range<usize>,
    /// Doubts about the jobs of this group.
    pub doubts: Vec<Doubt>,
}

/// Circumstances of a sample that the rules need and that the sample does not record.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SampleContext<'a> {
    /// Where the sample comes from, such as an imported result.
    pub source: EvidenceOrigin,
    /// Target that was measured; `None` if unknown.
    pub target: Option<&'a TargetInfo>,
    /// Facts of the machine; `None` if unknown.
    pub facts: Option<&'a Facts>,
}

impl<'a> SampleContext<'a> {
    /// Builds the context of a sample from the run that contains the sample.
    pub fn of(run: &'a Run, sample: &Sample) -> Self {
        Self {
            source: match run.origin {
                assay_model::Origin::Measured => EvidenceOrigin::Measured,
                assay_model::Origin::Imported { .. } => EvidenceOrigin::Imported,
            },
            target: run
                .targets
                .iter()
                .find(|target| target.name == sample.target),
            facts: Some(&run.facts),
        }
    }
}

/// Finds the doubts about a sample.
#[must_use]
pub(crate) fn find_sample_doubts(around: SampleContext<'_>, sample: &Sample) -> Vec<Doubt> {
    let options = sample.workers.first().and_then(read_job_options);
    apply_with_options(
        options.as_ref(),
        &DoubtEvidence {
            results: &sample.workers,
            series: &sample.series,
            counters: Some(&sample.counters),
            target: around.target,
            file: sample.file.as_ref(),
            facts: around.facts,
            source: around.source,
            ..DoubtEvidence::default()
        },
    )
}

/// Applies every rule to the evidence and the options. If some options are unknown, returns only the doubts that apply
/// for every possible value of these options.
fn apply_with_options(options: Option<&JobOptions>, evidence: &DoubtEvidence<'_>) -> Vec<Doubt> {
    // fio's own count shows whether I/Os were in flight together, whatever submitted them.
    let alone = !evidence.results.is_empty()
        && !evidence
            .results
            .iter()
            .any(assay_fio::options::reached_depth);
    let mut inline = None;
    if let Some(options) = options.filter(|options| options.open && alone) {
        let mut options = options.clone();
        let mode = options.given.entry("io_submit_mode".to_owned());
        mode.or_insert_with(|| "inline".to_owned());
        inline = Some(options);
    }
    match inline.as_ref().or(options) {
        None => apply_rules(evidence),
        Some(options) => unknown_values::find_certain_doubts(options, |options| {
            apply_rules(&DoubtEvidence {
                options: Some(options),
                ..*evidence
            })
        }),
    }
}

/// Finds the doubts about jobs that assay ran together, from fio's result alone.
pub(crate) fn find_job_doubts(jobs: &[Worker]) -> Vec<Doubt> {
    apply_rules(&DoubtEvidence {
        options: jobs.first().and_then(read_job_options).as_ref(),
        results: jobs,
        source: EvidenceOrigin::Measured,
        ..DoubtEvidence::default()
    })
}

/// Reads the options of a job; `None` if the result does not contain them (fio before 2.2). fio's defaults are not
/// assumed, because they may differ from the real options.
fn read_job_options(job: &Worker) -> Option<JobOptions> {
    (!job.fio.options.is_empty()).then(|| JobOptions::from_result(job))
}

#[cfg(test)]
mod tests;
