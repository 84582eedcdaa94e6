//! Rule `depth-not-reached`: the requested queue depth was not reached. A synchronous engine does
//! one I/O at a time whatever `iodepth` is; libaio without `direct=1` blocks in submission,
//! although fio counts the I/Os as in flight (`iodepth_level`).

use crate::doubts::{DoubtEvidence, clean_text, suspect_doubt, void_doubt};
use assay_fio::options::{self, DepthLimit};
use assay_model::Doubt;
use assay_model::sample::Worker;
use std::fmt::Write as _;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "depth-not-reached";
/// If at least this percentage of the I/Os was alone in flight, the requested depth was not reached. The start and the
/// end of a run explain only a smaller percentage.
const ALONE: f64 = 90.0;
/// Fraction of the run time inside the submitting system call from which submission counts as blocking. Observed
/// fractions (fio 3.33): 1.0 for buffered libaio, 0.3 for direct I/O at 118,000 IOPS.
const SUBMITTING: f64 = 0.8;
/// CPU use of a job, in percent, from which the busy CPU explains slow submission.
const CPU_BOUND: f64 = 90.0;

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    check_options(evidence).or_else(|| check_result(evidence))
}

fn check_options(evidence: &DoubtEvidence) -> Option<Doubt> {
    let options = evidence.options?;
    let depth = options.iodepth;
    if depth < 2 {
        return None;
    }
    let engine = options.engine.as_str();
    // fio's own count outweighs the engine's name, which may be the default of another system.
    let reached = evidence.results.iter().any(options::reached_depth);
    let limit = options.depth_limit();
    if limit == Some(DepthLimit::SynchronousEngine) && !reached {
        let named = match options.given("ioengine") {
            Some(_) => format!("ioengine={engine}"),
            None => format!("the default engine {engine}"),
        };
        return Some(void_doubt(
            CODE,
            format!(
                "{named} does one I/O at a time: iodepth={depth} has no effect, the depth is 1"
            ),
            "Use ioengine=io_uring or libaio with direct=1, or set iodepth=1 and say so.",
        ));
    }
    if let Some(deepest) = deepest_level(evidence)
        && u64::from(deepest) < depth / 2
        && engine == "posixaio"
    {
        return Some(void_doubt(
            CODE,
            format!(
                "iodepth={depth}, and fio counted at most {deepest} in flight in a job: the system limits how many \
                 requests of posixaio a process may have (macOS: kern.aioprocmax, \
                 FreeBSD: vfs.aio.max_aio_queue_per_proc)"
            ),
            "Ask for a depth that the system allows, or raise its limit; several jobs add their depths.",
        ));
    }
    if limit == Some(DepthLimit::PosixAioOfOneFile) {
        return Some(void_doubt(
            CODE,
            format!(
                "posixaio is done by threads of the C library, and glibc does the requests of one file \
                 descriptor one after another: with one file iodepth={depth} is a depth of 1"
            ),
            "Use ioengine=io_uring or libaio with direct=1, or as many files as the depth (nrfiles).",
        ));
    }
    if limit == Some(DepthLimit::BufferedLibaio) {
        let mut seen = format!(
            "libaio without direct=1 blocks in submission: iodepth={depth} is counted, but one I/O at a time is done"
        );
        if let Some(share) = share_of_time_submitting(evidence) {
            let _ = write!(
                seen,
                "; {:.0} % of the time was spent submitting",
                share * 100.0
            );
        }
        return Some(void_doubt(
            CODE,
            seen,
            "Add direct=1, or use ioengine=psync with iodepth=1 and several jobs.",
        ));
    }
    None
}

/// Returns the deepest queue that fio counted in a job, as a level of fio's table (16 stands for 9 to 16). `None`
/// without a count, or for the last level, which has no upper end.
fn deepest_level(evidence: &DoubtEvidence) -> Option<u32> {
    let levels = evidence
        .results
        .iter()
        .flat_map(|job| &job.fio.iodepth_level);
    let used = levels.filter(|(_, share)| **share > 0.0);
    let deepest = used.map(|(level, _)| level.parse::<u32>().unwrap_or(u32::MAX));
    deepest.max().filter(|level| *level < u32::MAX)
}

fn check_result(evidence: &DoubtEvidence) -> Option<Doubt> {
    // A rate limit or think time keeps the queue short on purpose.
    let asked = match evidence.options {
        Some(options)
            if ["rate", "rate_iops", "thinktime"]
                .iter()
                .any(|key| options.given(key).is_some()) =>
        {
            return None;
        }
        Some(options) => options.iodepth,
        None => 0,
    };
    // The remedy must not recommend an option that is already set.
    let direct = evidence.options.is_some_and(|options| options.direct);
    for job in evidence.results {
        let alone = job.fio.iodepth_level.get("1").copied().unwrap_or(0.0);
        if asked >= 2 && alone >= ALONE {
            return Some(void_doubt(
                CODE,
                format!(
                    "iodepth={asked}, but {alone:.0} % of the I/Os of `{}` were submitted with no other in flight",
                    clean_text(&job.name)
                ),
                match direct {
                    true => {
                        "Look at what serialises the I/O: a lock of the file system, flushes after each write, \
                         the layer below; several jobs on files of their own tell them apart."
                    }
                    false => {
                        "Use an asynchronous engine with direct=1; look at what serialises the I/O."
                    }
                },
            ));
        }
        // fio itself counted more than one in flight.
        if alone < ALONE
            && !job.fio.iodepth_level.is_empty()
            && let Some(share) = share_submitting_of_job(job)
            && share >= SUBMITTING
            && job.usr_cpu + job.sys_cpu < CPU_BOUND
        {
            return Some(suspect_doubt(
                CODE,
                format!(
                    "{:.0} % of the time of `{}` was spent submitting: I/O is done one at a time \
                     although more is counted as in flight",
                    share * 100.0,
                    clean_text(&job.name)
                ),
                match direct {
                    true => {
                        "The file system or device blocks in submission: use io_uring or several jobs."
                    }
                    false => {
                        "Add direct=1; on a file system that still blocks, use io_uring or several jobs."
                    }
                },
            ));
        }
    }
    None
}

/// Computes the fraction of the time that the job spent inside the submitting system call.
fn share_submitting_of_job(job: &Worker) -> Option<f64> {
    let time = job
        .read()
        .into_iter()
        .chain(job.write())
        .map(|io| io.runtime.0)
        .max()? as f64;
    let busy: f64 = job
        .read()
        .into_iter()
        .chain(job.write())
        .map(|io| io.slat.mean * io.count as f64)
        .sum();
    (time > 0.0 && busy > 0.0).then(|| (busy / time).min(1.0))
}

fn share_of_time_submitting(evidence: &DoubtEvidence) -> Option<f64> {
    evidence
        .results
        .iter()
        .filter_map(share_submitting_of_job)
        .reduce(f64::max)
}
