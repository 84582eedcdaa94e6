//! Parses fio's JSON and JSON+ results, versions 2.x to 3.4x.
//!
//! These differences between versions are normalised (fio `stat.c`). `clat`, `slat` and `lat` in microseconds became
//! `*_ns` in 2.99. `io_bytes` counts KiB before 2.21. `bw_bytes` is new in 3.2, `sync` in 3.4, `job_runtime` in 3.8,
//! and `N` in 3.18. JSON+ bins were indices at first, and values later. Text may precede, separate and follow the
//! documents. With `--status-interval`, there are several documents, each with the totals since the start.
//!
//! Results are parsed in one pass directly into the model, without a tree of values. A JSON+ file of 100 MB therefore
//! needs about 100 MB of memory.

mod read;
mod repair;
mod scalars;

use assay_model::sample::Worker;
use std::collections::BTreeMap;

/// How fio ran, which determines the form of a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DocumentKind {
    /// `jobs`: fio ran on one machine.
    #[default]
    Normal,
    /// `client_stats`: fio ran with `--client`. The entry "All clients", which is the sum of the others, is omitted.
    Client,
}

/// One JSON document of fio.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FioDocument {
    /// Version as fio prints it, such as `fio-3.33`. Empty if it is missing.
    pub fio_version: String,
    /// Time of the output in milliseconds since 1970: `timestamp_ms`, or `timestamp` × 1000.
    pub timestamp_ms: Option<i64>,
    /// Whether the time is in an unknown local time zone. It is then interpreted as UTC.
    pub local_time: bool,
    /// Maximum `elapsed` of the jobs: seconds since fio started, including earlier stages; 0 if missing.
    pub elapsed_s: u64,
    /// Options in `global options` of the document.
    pub global_options: BTreeMap<String, String>,
    /// Results, one per job, or one per group with group_reporting.
    pub jobs: Vec<Worker>,
    /// Indices of jobs whose directions were reported together (`unified_rw_reporting`). Their figures are under
    /// `write` if the job writes, else under `read`.
    pub unified: Vec<usize>,
    /// `disk_util`: statistics of the block devices below the files.
    pub disks: Vec<DiskUtil>,
    /// Whether fio ran on one machine or with `--client`.
    pub kind: DocumentKind,
}

impl FioDocument {
    /// Returns major and minor version, such as `(3, 33)`.
    #[must_use]
    pub fn version(&self) -> Option<(u32, u32)> {
        parse_version(&self.fio_version)
    }
}

/// An entry of `disk_util`: the differences of a device's counters over the whole run of fio.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiskUtil {
    /// Kernel name of the device.
    pub name: String,
    /// Number of completed reads.
    pub read_ios: u64,
    /// Number of completed writes.
    pub write_ios: u64,
    /// Milliseconds spent reading, summed over requests.
    pub read_ms: u64,
    /// Milliseconds spent writing, summed over requests.
    pub write_ms: u64,
    /// Number of requests in flight, integrated over time, in milliseconds.
    pub in_queue_ms: u64,
    /// Percentage of the time in which the device was busy.
    pub util: f64,
}

/// Reasons why a result cannot be parsed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum JsonError {
    /// The text contains only white space.
    #[error(
        "it is empty: fio wrote no result; it was killed, or its output went elsewhere (--output)"
    )]
    Empty,
    /// The text contains no `{` with which a fio document starts.
    #[error(
        "no fio result in it: expected `{{ \"fio version\": … }}`; run fio with --output-format=json+{hint}"
    )]
    NoDocument {
        /// Guess of what the text is, as a clause that starts with `; `. Empty if unknown.
        hint: String,
    },
    /// The text ends in the middle of a document.
    #[error(
        "cut off at line {line} (byte {byte}): the end of the JSON is missing; {} and {jobs} of the cut one could still be read; run fio again, or copy the whole file",
        count(documents.len(), "complete document"),
        jobs = count(partial.jobs.len(), "complete job")
    )]
    Truncated {
        /// Line number, counted from 1.
        line: usize,
        /// Byte offset, counted from 0.
        byte: usize,
        /// Complete documents before the truncated one.
        documents: Vec<FioDocument>,
        /// Complete parts of the truncated document.
        partial: Box<FioDocument>,
    },
    /// The text is not valid JSON, or a value has the wrong type.
    #[error("line {line}, column {column}: {message}; this is not what fio 2.x to 3.4x print")]
    Syntax {
        /// Line number, counted from 1.
        line: usize,
        /// Column, counted from 1.
        column: usize,
        /// Description of the syntax error.
        message: String,
    },
}

fn count(n: usize, what: &str) -> String {
    match n {
        0 => format!("no {what}"),
        1 => format!("one {what}"),
        n => format!("{n} {what}s"),
    }
}

/// Parses the major and minor version in texts such as `fio-3.33`, `fio-2.2.10` or `fio-3.33-15-gabcd`.
#[must_use]
pub fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text
        .trim_start_matches("fio-")
        .split(|c: char| !c.is_ascii_digit())
        .map(|part| part.parse::<u32>().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// Parses every fio document in `text`, in order. Invalid UTF-8 (in file names) is replaced by U+FFFD.
///
/// # Errors
/// The text is empty, contains no document, is truncated (the error contains the readable part), or has a syntax error
/// (the error contains its line).
pub fn parse(text: impl AsRef<[u8]>) -> Result<Vec<FioDocument>, JsonError> {
    let text = String::from_utf8_lossy(text.as_ref());
    match read::read_documents(&text) {
        Err(first @ JsonError::Syntax { .. }) => match repair::repair_json(&text) {
            Some(repaired) => read::read_documents(&repaired).map_err(|_| first),
            None => Err(first),
        },
        other => other,
    }
}

/// Returns the last document. With `--status-interval`, each document contains the totals since the start.
#[must_use]
pub fn final_document(documents: &[FioDocument]) -> Option<&FioDocument> {
    documents.last()
}

#[cfg(test)]
mod tests;
