//! fio's jobs as a study writes them, and what their results say.

use super::settings::Of;
use assay_fio::json::Document;
use assay_model::sample::JobResult;
use assay_model::{Bytes, Nanos};
use std::fmt::Write as _;

/// What the bench adds to a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    /// The directory for its files, when there is one.
    pub directory: Option<&'a str>,
    /// Else the block device.
    pub device: Option<&'a str>,
    /// Bytes, unless the job says.
    pub size: Bytes,
    /// How long; to the end of its size when none.
    pub time: Option<Nanos>,
    /// Seed of offsets and data.
    pub seed: u64,
}

/// The job file for the options of a study. Its own `size` is taken in plain bytes.
pub(super) fn render(options: &toml::Table, place: Place<'_>) -> String {
    let mut text = "[study]\n".to_owned();
    let mut line = |key: &str, value: &dyn std::fmt::Display| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{key}={value}");
    };
    match (place.directory, place.device) {
        (Some(dir), _) => line("directory", &dir),
        (None, Some(device)) => line("filename", &device),
        (None, None) => {}
    }
    for (key, value) in options {
        match value {
            toml::Value::String(text) => line(key, text),
            value => line(key, value),
        }
    }
    if !options.contains_key("size") {
        line("size", &place.size.0);
    }
    if let Some(time) = place.time
        && !options.contains_key("number_ios")
    {
        line("time_based", &1);
        line("runtime", &format_args!("{}ms", time.0.div_ceil(1_000_000)));
    }
    line("randrepeat", &0);
    line("randseed", &place.seed);
    // Data that ZFS can neither compress nor leave out, unless the study asks for others.
    if !options.contains_key("buffer_compress_percentage") {
        line("refill_buffers", &1);
    }
    text
}

/// Writes of all jobs.
pub(super) fn writes(document: &Document) -> u64 {
    let of = |job: &JobResult| job.write.as_ref().map_or(0, |write| write.ios);
    document.jobs.iter().map(of).sum()
}

/// Bytes written by all jobs.
pub(super) fn written(document: &Document) -> u64 {
    let of = |job: &JobResult| job.write.as_ref().map_or(0, |write| write.bytes.0);
    document.jobs.iter().map(of).sum()
}

/// A figure that fio's result alone tells; none when there was no I/O.
pub(super) fn figure(of: Of, document: &Document) -> Option<f64> {
    let sides = || {
        let jobs = document.jobs.iter();
        jobs.flat_map(|job| [job.read.as_ref(), job.write.as_ref()])
            .flatten()
    };
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    match of {
        Of::Iops => Some(sides().map(|side| side.iops).sum::<f64>()).filter(|sum| *sum > 0.0),
        // As fio's own `aggrb`: all bytes over the time of the longest job, the flush at its end
        // included.
        Of::Rate => {
            let bytes: u64 = sides().map(|side| side.bytes.0).sum();
            let time = sides().map(|side| side.runtime.0).max()?;
            (time > 0).then(|| bytes as f64 / (time as f64 / 1e9))
        }
        Of::Depth => {
            let depths: Vec<f64> = document.jobs.iter().filter_map(depth).collect();
            (!depths.is_empty()).then(|| depths.iter().sum::<f64>() / depths.len() as f64)
        }
        _ => None,
    }
}

/// I/Os in flight, averaged over submissions: fio's `iodepth_level` counts those up to 1, 2, 4, …
/// so that this is an upper bound (fio HOWTO, "IO depths").
fn depth(job: &JobResult) -> Option<f64> {
    let levels = job.iodepth_level.iter().filter_map(|(level, share)| {
        let depth: f64 = level.trim_start_matches(">=").parse().ok()?;
        Some((depth, *share))
    });
    let (sum, shares) = levels.fold((0.0, 0.0), |(sum, shares), (depth, share)| {
        (sum + depth * share, shares + share)
    });
    (shares > 0.0).then(|| sum / shares)
}
