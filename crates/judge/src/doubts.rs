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
mod l2arc_read;
mod many_jobs_one_file;
mod mix_ignored;
mod no_io;
mod no_random_map;
mod no_time_based;
mod null_engine;
mod offload_hang;
pub mod other_tools;
mod overrun;
mod page_cache_read;
mod page_cache_write;
mod prefetched_read;
mod rate_capped;
mod repeated_offsets;
mod short_io;
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
mod wrong_mount;

pub use evidence::{Evidence, Origin};

use assay_fio::import;
use assay_fio::json::Document;
use assay_fio::options::JobOptions;
use assay_model::doubt::Severity;
use assay_model::sample::JobResult;
use assay_model::{Doubt, Run, Sample};
use std::ops::Range;

/// Share of bytes or time from which something counts as reached: what is missing may be other
/// processes, rounding and the edges of the sample.
pub(crate) const ENOUGH: f64 = 0.9;
/// Share below which most of a figure comes from elsewhere.
pub(crate) const HALF: f64 = 0.5;

/// What is no reason to doubt reads that are meant to come from a cache.
pub(crate) const ABOUT_CACHED_READS: [&str; 5] = [
    page_cache_read::CODE,
    cache_hit_read::CODE,
    direct_ignored_zfs::CODE,
    l2arc_read::CODE,
    prefetched_read::CODE,
];

struct Rule {
    code: &'static str,
    check: fn(&Evidence) -> Option<Doubt>,
}

/// All rules, in the order in which their doubts are shown: first what voids, then the cache, the
/// time, the pattern, the reporting.
const RULES: [Rule; 43] = [
    Rule {
        code: no_io::CODE,
        check: no_io::check,
    },
    Rule {
        code: io_error::CODE,
        check: io_error::check,
    },
    Rule {
        code: short_io::CODE,
        check: short_io::check,
    },
    Rule {
        code: null_engine::CODE,
        check: null_engine::check,
    },
    Rule {
        code: tmpfs::CODE,
        check: tmpfs::check,
    },
    Rule {
        code: wrong_mount::CODE,
        check: wrong_mount::check,
    },
    Rule {
        code: device_in_use::CODE,
        check: device_in_use::check,
    },
    Rule {
        code: engine_dependent::CODE,
        check: engine_dependent::check,
    },
    Rule {
        code: depth_not_reached::CODE,
        check: depth_not_reached::check,
    },
    Rule {
        code: page_cache_read::CODE,
        check: page_cache_read::check,
    },
    Rule {
        code: cache_hit_read::CODE,
        check: cache_hit_read::check,
    },
    Rule {
        code: page_cache_write::CODE,
        check: page_cache_write::check,
    },
    Rule {
        code: unflushed_write::CODE,
        check: unflushed_write::check,
    },
    Rule {
        code: direct_ignored_zfs::CODE,
        check: direct_ignored_zfs::check,
    },
    Rule {
        code: l2arc_read::CODE,
        check: l2arc_read::check,
    },
    Rule {
        code: prefetched_read::CODE,
        check: prefetched_read::check,
    },
    Rule {
        code: sync_ignored_zfs::CODE,
        check: sync_ignored_zfs::check,
    },
    Rule {
        code: flush_dropped_zfs::CODE,
        check: flush_dropped_zfs::check,
    },
    Rule {
        code: sparse_file::CODE,
        check: sparse_file::check,
    },
    Rule {
        code: compressible_data::CODE,
        check: compressible_data::check,
    },
    Rule {
        code: no_time_based::CODE,
        check: no_time_based::check,
    },
    Rule {
        code: cut_short::CODE,
        check: cut_short::check,
    },
    Rule {
        code: overrun::CODE,
        check: overrun::check,
    },
    Rule {
        code: too_short::CODE,
        check: too_short::check,
    },
    Rule {
        code: burst::CODE,
        check: burst::check,
    },
    Rule {
        code: foreign_load::CODE,
        check: foreign_load::check,
    },
    Rule {
        code: throttled::CODE,
        check: throttled::check,
    },
    Rule {
        code: sync_on_read::CODE,
        check: sync_on_read::check,
    },
    Rule {
        code: flush_hidden::CODE,
        check: flush_hidden::check,
    },
    Rule {
        code: repeated_offsets::CODE,
        check: repeated_offsets::check,
    },
    Rule {
        code: no_random_map::CODE,
        check: no_random_map::check,
    },
    Rule {
        code: jobs_overlap::CODE,
        check: jobs_overlap::check,
    },
    Rule {
        code: many_jobs_one_file::CODE,
        check: many_jobs_one_file::check,
    },
    Rule {
        code: grouped_jobs::CODE,
        check: grouped_jobs::check,
    },
    Rule {
        code: mix_ignored::CODE,
        check: mix_ignored::check,
    },
    Rule {
        code: unit_trap::CODE,
        check: unit_trap::check,
    },
    Rule {
        code: unknown_option::CODE,
        check: unknown_option::check,
    },
    Rule {
        code: coordinated_omission::CODE,
        check: coordinated_omission::check,
    },
    Rule {
        code: rate_capped::CODE,
        check: rate_capped::check,
    },
    Rule {
        code: offload_hang::CODE,
        check: offload_hang::check,
    },
    Rule {
        code: tool_cpu::CODE,
        check: tool_cpu::check,
    },
    Rule {
        code: histogram_capped::CODE,
        check: histogram_capped::check,
    },
    Rule {
        code: unified_directions::CODE,
        check: unified_directions::check,
    },
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
        .filter_map(|rule| (rule.check)(evidence))
        .collect()
}

/// What a job would not measure, by its options alone.
#[must_use]
pub fn judge_options(options: &JobOptions) -> Vec<Doubt> {
    judge(&Evidence {
        options: Some(options),
        source: Origin::CommandLine,
        ..Evidence::default()
    })
}

/// What each group of equal jobs of a foreign result did not measure.
#[must_use]
pub fn judge_result(document: &Document) -> Vec<JudgedJobs> {
    let groups = import::groups(document);
    let alone = groups.len() == 1;
    groups
        .into_iter()
        .map(|range| {
            let jobs = &document.jobs[range.clone()];
            let options = jobs.first().and_then(options_of);
            let doubts = judge(&Evidence {
                options: options.as_ref(),
                results: jobs,
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

/// What a sample of a run did not measure.
#[must_use]
pub fn for_sample(run: &Run, sample: &Sample) -> Vec<Doubt> {
    let options = sample.jobs.first().and_then(options_of);
    let source = match run.origin {
        assay_model::Origin::Measured => Origin::Measured,
        assay_model::Origin::Imported { .. } => Origin::Imported,
    };
    judge(&Evidence {
        options: options.as_ref(),
        results: &sample.jobs,
        series: &sample.series,
        counters: Some(&sample.counters),
        target: run
            .targets
            .iter()
            .find(|target| target.name == sample.target),
        file: sample.file.as_ref(),
        facts: Some(&run.facts),
        source,
        ..Evidence::default()
    })
}

/// What jobs of ours that ran together did not measure, by their result alone.
pub(crate) fn for_jobs(jobs: &[JobResult]) -> Vec<Doubt> {
    judge(&Evidence {
        options: jobs.first().and_then(options_of).as_ref(),
        results: jobs,
        source: Origin::Measured,
        ..Evidence::default()
    })
}

/// The options of a job, none when the result does not tell them (fio before 2.2): defaults must
/// not be taken for what was asked.
fn options_of(job: &JobResult) -> Option<JobOptions> {
    (!job.options.is_empty()).then(|| JobOptions::from_result(job))
}

fn doubt(code: &str, severity: Severity, evidence: String, remedy: &str) -> Doubt {
    Doubt {
        code: code.to_owned(),
        severity,
        evidence,
        remedy: remedy.to_owned(),
    }
}

pub(crate) fn suspect(code: &str, evidence: String, remedy: &str) -> Doubt {
    doubt(code, Severity::Suspect, evidence, remedy)
}

pub(crate) fn void(code: &str, evidence: String, remedy: &str) -> Doubt {
    doubt(code, Severity::Void, evidence, remedy)
}

/// Foreign text as part of a sentence: control characters escaped, long values cut.
pub(crate) fn clean(text: &str) -> String {
    const LONGEST: usize = 80;
    let mut out = String::new();
    for (at, c) in text.chars().enumerate() {
        if at == LONGEST {
            out.push('…');
            break;
        }
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests;
