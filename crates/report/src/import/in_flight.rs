//! Describes what limited an imported result, from the number of I/Os in flight. The limits of assay's own runs are
//! found in `assay-judge`.

use assay_fio::json::DiskUtil;
use assay_fio::options::JobOptions;
use assay_model::sample::Worker;
use assay_model::units::format_significant;

/// Percentage of use from which a CPU or a device counts as full.
const FULL: f64 = 95.0;
/// Maximum mean number of I/Os in flight at which the I/Os count as running one after the other.
const ALONE: f64 = 1.1;

/// Describes the number of I/Os in flight (Little's law: rate × latency), and what follows from it about the limit.
pub(super) fn describe_in_flight(jobs: &[Worker], disks: &[DiskUtil]) -> String {
    let mut in_flight = 0.0;
    let mut flushing = 0.0;
    for job in jobs {
        for io in job.read().into_iter().chain(job.write()) {
            let mean = if io.lat.mean > 0.0 {
                io.lat.mean
            } else {
                io.slat.mean + io.clat.mean
            };
            in_flight += io.per_s * mean / 1e9;
        }
        if let Some(flushes) = job.flush()
            && job.runtime.0 > 0
        {
            // Relative to the time of all jobs: a group reports the flushes of all of them
            // together.
            let options = JobOptions::from_result(job);
            let together = match options.is_on("group_reporting", false) {
                true => options.numjobs,
                false => 1,
            };
            let time = job.runtime.0 as f64 * together as f64 * jobs.len() as f64;
            flushing += flushes.count as f64 * flushes.lat.mean / time * 100.0;
        }
    }
    // A job that flushes from several threads can wait for more than its own time.
    let flushing = flushing.min(100.0);
    let busiest = jobs
        .iter()
        .map(|job| job.usr_cpu + job.sys_cpu)
        .fold(0.0, f64::max);
    let util = disks.iter().map(|disk| disk.util).fold(0.0, f64::max);
    let which = if jobs.len() > 1 {
        " in the busiest job"
    } else {
        ""
    };
    let flight = match in_flight > 0.0 {
        true => format!("{} in flight on average", format_significant(in_flight)),
        false => "I/Os in flight unknown".to_owned(),
    };
    // A result without its line of CPU times, or of a clock too coarse to count any.
    let cpu = match busiest > 0.0 {
        true => format!("{busiest:.0} % of a CPU{which}"),
        false => "fio's CPU time unknown".to_owned(),
    };
    let mut out = format!("{flight}; {cpu}");
    out.push_str(&if busiest >= FULL {
        ": fio's processor was the limit".to_owned()
    } else if flushing >= HALF {
        format!("; {flushing:.0} % of the time went into flushes: they were the limit")
    } else if in_flight > 0.0 && in_flight <= ALONE * jobs.len() as f64 && jobs.len() == 1 {
        "; one at a time: the latency was the limit".to_owned()
    } else if util >= FULL {
        format!("; the device was busy {util:.0} % of the time")
    } else {
        String::new()
    });
    out
}

/// Percentage of the time from which flushes count as the limit.
const HALF: f64 = 50.0;
