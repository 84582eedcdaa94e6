//! Parses fio's bandwidth logs, which contain the rate over time.
//!
//! There is one log file per job. Each line is `msec, KiB/s, direction, block size, offset[, priority]` (fio HOWTO,
//! "Log File Formats"). With `log_avg_msec`, a line is the mean over the interval that ends at the time of the line.

use assay_model::sample::{Operation, RatePoint};
use assay_model::{Bytes, Nanos};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Prefix of the log files' names in the work directory.
pub(super) const PREFIX: &str = "rate";

fn find_log_files(dir: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    entries.filter(|path| {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        name.starts_with("rate_bw.") && name.ends_with(".log")
    })
}

/// Removes the logs of an earlier sample from the work directory.
pub(super) fn remove(dir: &Path) {
    for path in find_log_files(dir) {
        let _ = fs::remove_file(path);
    }
}

/// Reads the logs of all jobs and adds their rates.
pub(super) fn read(dir: &Path, every: Nanos, block: Bytes) -> Vec<RatePoint> {
    let texts: Vec<String> = find_log_files(dir)
        .filter_map(|path| fs::read_to_string(path).ok())
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    parse(&texts, (every.0 / 1_000_000).max(1), block)
}

/// Adds the rates of all jobs in each interval. Intervals end at multiples of `every_ms`. A line belongs to the nearest
/// multiple, because fio's timer is inaccurate. If a job has several lines for one interval, the last line counts.
/// Averaged lines contain the block size 0, so the size `block` of the workload is used.
fn parse(logs: &[&str], every_ms: u64, block: Bytes) -> Vec<RatePoint> {
    let mut points: BTreeMap<u64, RatePoint> = BTreeMap::new();
    for log in logs {
        let mut job: BTreeMap<(u64, u8), (f64, f64)> = BTreeMap::new();
        for line in log.lines() {
            let mut fields = line.split(',').map(|field| field.trim().parse::<u64>());
            let (Some(Ok(ms)), Some(Ok(kib)), Some(Ok(direction @ 0..=1))) =
                (fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            let bytes = kib as f64 * 1024.0;
            let at = (ms + every_ms / 2) / every_ms;
            job.insert(
                (at, direction as u8),
                (bytes, bytes / block.0.max(1) as f64),
            );
        }
        for ((at, direction), (bytes, ios)) in job {
            let point = points.entry(at).or_insert_with(|| RatePoint {
                at_ms: at * every_ms,
                rates: BTreeMap::new(),
            });
            let kind = match direction {
                0 => Operation::Read,
                _ => Operation::Write,
            };
            let rate = point.rates.entry(kind).or_default();
            rate.per_s += ios;
            rate.bytes_per_s += bytes;
        }
    }
    points.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_model::sample::Rate;

    #[test]
    fn jobs_and_directions_are_summed_per_interval() {
        let one = "100, 4, 0, 0, 0, 0\n100, 8, 1, 0, 0, 0\n199, 40, 0, 0, 0, 0\n";
        let two = "101, 4, 0, 0, 0, 0\ngarbage\n1,2\n";
        let points = parse(&[one, two], 100, Bytes(4096));
        assert_eq!(points.len(), 2);
        let rate = |per_s, bytes_per_s| Rate { per_s, bytes_per_s };
        let both = [
            (Operation::Read, rate(2.0, 8192.0)),
            (Operation::Write, rate(2.0, 8192.0)),
        ];
        assert_eq!((points[0].at_ms, &points[0].rates), (100, &both.into()));
        assert_eq!((points[1].at_ms, points[1].bytes_per_s()), (200, 40960.0));
    }
}
