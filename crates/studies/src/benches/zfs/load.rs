//! Builds fio jobs from a study and evaluates their results.

use super::requirements::Of;
use assay_fio::json::FioDocument;
use assay_model::sample::Worker;
use assay_model::{Bytes, Nanos};
use std::fmt::Write as _;

/// A job of a study, with the values that the bench adds to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job<'a> {
    /// fio options from the study.
    pub options: &'a toml::Table,
    /// Number of bytes that the job uses, unless the study sets them.
    pub size: Bytes,
    /// Runtime of the job; `None` means that the job ends after `size` bytes.
    pub time: Option<Nanos>,
    /// Seed of offsets and data.
    pub seed: u64,
}

impl Job<'_> {
    /// Builds the job file. `key` is `directory` or `filename`, and `on` is the value of this key. Sizes in the job are
    /// written in bytes, without a unit.
    pub fn render(&self, key: &str, on: &str) -> String {
        let mut text = "[study]\n".to_owned();
        let mut line = |key: &str, value: &dyn std::fmt::Display| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{key}={value}");
        };
        line(key, &on);
        for (key, value) in self.options {
            match value {
                toml::Value::String(text) => line(key, text),
                value => line(key, value),
            }
        }
        if !self.options.contains_key("size") {
            line("size", &self.size.0);
        }
        if let Some(time) = self.time
            && !self.options.contains_key("number_ios")
        {
            line("time_based", &1);
            line("runtime", &format_args!("{}ms", time.0.div_ceil(1_000_000)));
        }
        line("randrepeat", &0);
        line("randseed", &self.seed);
        // By default, data that ZFS can neither compress nor deduplicate.
        if !self.options.contains_key("buffer_compress_percentage") {
            line("refill_buffers", &1);
        }
        text
    }
}

/// Returns the number of writes of all jobs.
pub(super) fn count_writes(document: &FioDocument) -> u64 {
    let of = |job: &Worker| job.write().map_or(0, |write| write.count);
    document.jobs.iter().map(of).sum()
}

/// Returns the bytes written by all jobs.
pub(super) fn count_written_bytes(document: &FioDocument) -> u64 {
    let of = |job: &Worker| job.write().map_or(0, |write| write.bytes.0);
    document.jobs.iter().map(of).sum()
}

/// Returns a figure from fio's result; `None` if there was no I/O.
pub(super) fn fio_figure(of: Of, document: &FioDocument) -> Option<f64> {
    let sides = || {
        let jobs = document.jobs.iter();
        jobs.flat_map(|job| [job.read(), job.write()]).flatten()
    };
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    match of {
        Of::Iops => Some(sides().map(|side| side.per_s).sum::<f64>()).filter(|sum| *sum > 0.0),
        // As fio's `aggrb`: all bytes divided by the time of the longest job, including its final flush.
        Of::Rate => {
            let bytes: u64 = sides().map(|side| side.bytes.0).sum();
            let time = sides().map(|side| side.runtime.0).max()?;
            (time > 0).then(|| bytes as f64 / (time as f64 / 1e9))
        }
        Of::Depth => {
            let depths: Vec<f64> = document.jobs.iter().filter_map(mean_depth).collect();
            (!depths.is_empty()).then(|| depths.iter().sum::<f64>() / depths.len() as f64)
        }
        _ => None,
    }
}

/// Returns the mean queue depth over submissions. fio's `iodepth_level` counts depths up to 1, 2, 4, …, so
/// this is an upper bound (fio HOWTO, "IO depths").
fn mean_depth(job: &Worker) -> Option<f64> {
    let levels = job.fio.iodepth_level.iter().filter_map(|(level, share)| {
        let depth: f64 = level.trim_start_matches(">=").parse().ok()?;
        Some((depth, *share))
    });
    let (sum, shares) = levels.fold((0.0, 0.0), |(sum, shares), (depth, share)| {
        (sum + depth * share, shares + share)
    });
    (shares > 0.0).then(|| sum / shares)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> FioDocument {
        assay_fio::json::parse(text).unwrap().pop().unwrap()
    }

    fn near(found: Option<f64>, expected: f64) {
        let found = found.unwrap();
        assert!((found / expected - 1.0).abs() < 1e-6, "{found}");
    }

    #[test]
    fn figures_are_those_of_fios_result() {
        let synced = document(include_str!(
            "../../../../fio/fixtures/fio-3.33-fdatasync.json"
        ));
        assert_eq!(
            (count_writes(&synced), count_written_bytes(&synced)),
            (3572, 14_630_912)
        );
        near(fio_figure(Of::Iops, &synced), 7_129.740_519);
        near(fio_figure(Of::Rate, &synced), 14_630_912.0 / 0.501);
        // fio counts a flush as an I/O of depth 1, so its fractions add up to 200 %.
        near(fio_figure(Of::Depth, &synced), 1.0);
        let mix = document(include_str!("../../../../fio/fixtures/fio-3.33-mix.json"));
        near(
            fio_figure(Of::Rate, &mix),
            (29_270_016.0 + 69_144_576.0) / 0.501,
        );
        let depth = fio_figure(Of::Depth, &mix).unwrap();
        assert!((7.9..=8.0).contains(&depth), "{depth}");
        assert_eq!(fio_figure(Of::Iops, &FioDocument::default()), None);
        assert_eq!(fio_figure(Of::Depth, &FioDocument::default()), None);
    }

    #[test]
    fn a_job_is_what_the_study_says_and_where() {
        let options = "sync = 1\nrw = \"randwrite\"\nbs = \"4k\"".parse().unwrap();
        let job = Job {
            options: &options,
            size: Bytes(1 << 20),
            time: Some(Nanos(1_500_000_000)),
            seed: 7,
        };
        let expected = "[study]\nfilename=/dev/nbd3\nbs=4k\nrw=randwrite\nsync=1\nsize=1048576\n\
            time_based=1\nruntime=1500ms\nrandrepeat=0\nrandseed=7\nrefill_buffers=1\n";
        assert_eq!(job.render("filename", "/dev/nbd3"), expected);
        // A number of I/Os and a size in the job are kept.
        let options = "number_ios = 20\nsize = 65536\nrw = \"write\""
            .parse()
            .unwrap();
        let text = Job {
            options: &options,
            ..job
        }
        .render("directory", "/study");
        assert!(
            !text.contains("time_based") && text.matches("size=").count() == 1,
            "{text}"
        );
    }
}
