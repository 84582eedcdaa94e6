//! Parses fio's JSON and JSON+ results, versions 2.x to 3.4x.
//!
//! Differences between versions that are normalised here (fio `stat.c`, releases named): `clat`, `slat`, `lat`
//! in microseconds become `*_ns` in 2.99; `io_bytes` counts KiB before 2.21; `bw_bytes` is new in 3.2, `sync`
//! in 3.4, `job_runtime` in 3.8, `N` in 3.18; JSON+ bins were indices, later values. Text may precede,
//! separate and follow the documents, and `--status-interval` prints several documents, each with the totals
//! since the start.
//!
//! Results are parsed in one pass directly into the model without a tree of values, so a JSON+ file of 100 MB
//! needs about its own size in memory.

mod read;
mod repair;
mod scalars;

use assay_model::sample::Worker;
use std::collections::BTreeMap;

/// Kind of a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DocumentKind {
    /// `jobs`: fio ran locally.
    #[default]
    Normal,
    /// `client_stats`: fio `--client`. The entry "All clients", the sum of the others, is omitted.
    Client,
}

/// One JSON document of fio.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FioDocument {
    /// Version as printed: `fio-3.33`; empty if missing.
    pub fio_version: String,
    /// Time of the output in milliseconds since 1970: `timestamp_ms`, else `timestamp` × 1000.
    pub timestamp_ms: Option<i64>,
    /// Whether the time is the local time of an unknown time zone, here treated as UTC.
    pub local_time: bool,
    /// Maximum `elapsed` of a job: seconds since fio started, including earlier stages; 0 if missing.
    pub elapsed_s: u64,
    /// The `global options` of the document.
    pub global_options: BTreeMap<String, String>,
    /// One entry per job, or per group with group_reporting.
    pub jobs: Vec<Worker>,
    /// Indexes of jobs whose directions were reported together (`unified_rw_reporting`). Their figures are
    /// under `write` if the job writes, else under `read`.
    pub unified: Vec<usize>,
    /// `disk_util`: the block devices below the files.
    pub disks: Vec<DiskUtil>,
    /// Local or client run.
    pub kind: DocumentKind,
}

impl FioDocument {
    /// Returns major and minor version: `(3, 33)`.
    #[must_use]
    pub fn version(&self) -> Option<(u32, u32)> {
        parse_version(&self.fio_version)
    }
}

/// An entry of `disk_util`: differences of the device's counters over the whole fio process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiskUtil {
    /// Kernel name.
    pub name: String,
    /// Completed reads.
    pub read_ios: u64,
    /// Completed writes.
    pub write_ios: u64,
    /// Milliseconds spent reading, summed over requests.
    pub read_ms: u64,
    /// Milliseconds spent writing, summed over requests.
    pub write_ms: u64,
    /// Sum over time of the requests in flight, in request-milliseconds.
    pub in_queue_ms: u64,
    /// Percent of time in which the device was busy.
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
    /// No `{` starts a fio document.
    #[error(
        "no fio result in it: expected `{{ \"fio version\": … }}`; run fio with --output-format=json+{hint}"
    )]
    NoDocument {
        /// The probable kind of the text, as a clause that starts with `; `; empty if unknown.
        hint: String,
    },
    /// The text ends in the middle of a document.
    #[error(
        "cut off at line {line} (byte {byte}): the end of the JSON is missing; {} and {jobs} of the cut one could still be read; run fio again, or copy the whole file",
        count(documents.len(), "complete document"),
        jobs = count(partial.jobs.len(), "complete job")
    )]
    Truncated {
        /// Line, from 1.
        line: usize,
        /// Byte offset, from 0.
        byte: usize,
        /// Earlier complete documents.
        documents: Vec<FioDocument>,
        /// Complete parts of the truncated document.
        partial: Box<FioDocument>,
    },
    /// Invalid JSON, or a value of the wrong type.
    #[error("line {line}, column {column}: {message}; this is not what fio 2.x to 3.4x print")]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// Description of the error.
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

/// Parses major and minor version from `fio-3.33`, `fio-2.2.10`, `fio-3.33-15-gabcd`.
#[must_use]
pub fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text
        .trim_start_matches("fio-")
        .split(|c: char| !c.is_ascii_digit())
        .map(|part| part.parse::<u32>().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// Parses every document in `text`, in order.
///
/// Invalid UTF-8 (in file names) is replaced by U+FFFD.
///
/// # Errors
/// The text is empty, contains no document, is truncated (with the readable part), or has a syntax error (with
/// its line).
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

/// Returns the last document: with `--status-interval`, each contains the totals since the start.
#[must_use]
pub fn final_document(documents: &[FioDocument]) -> Option<&FioDocument> {
    documents.last()
}

#[cfg(test)]
mod tests;
