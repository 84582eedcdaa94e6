//! fio's JSON and JSON+ results, versions 2.x to 3.4x.
//!
//! Differences between versions that are evened out here (fio `stat.c`, releases named):
//! `clat`, `slat`, `lat` in microseconds become `*_ns` in 2.99; `io_bytes` counts KiB before 2.21;
//! `bw_bytes` is new in 3.2, `sync` in 3.4, `job_runtime` in 3.8, `N` in 3.18; JSON+ bins were
//! indices, later values. Text may stand before, between and after the documents, and
//! `--status-interval` prints several documents, each with the totals since the start.
//!
//! Results are read in one pass straight into the model: no tree of values, so that a JSON+ file
//! of 100 MB costs about its own size in memory.

mod read;
mod repair;
mod scalars;

use assay_model::sample::Worker;
use std::collections::BTreeMap;

/// What kind of document it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DocumentKind {
    /// `jobs`: fio ran here.
    #[default]
    Normal,
    /// `client_stats`: fio `--client`; the entry "All clients", a sum over the others, is left out.
    Client,
}

/// One JSON document of fio.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FioDocument {
    /// As printed: `fio-3.33`; empty when missing.
    pub fio_version: String,
    /// `timestamp_ms`, else `timestamp` × 1000: milliseconds since 1970, when it was printed.
    pub timestamp_ms: Option<i64>,
    /// The longest `elapsed` of a job, seconds since fio began, stages before it included; 0 when missing.
    pub elapsed_s: u64,
    /// `global options`.
    pub global_options: BTreeMap<String, String>,
    /// One entry per job, or per group when group_reporting was on.
    pub jobs: Vec<Worker>,
    /// Names of jobs whose directions were reported as one (`unified_rw_reporting`); their figures
    /// stand under `write` when the job writes, else under `read`.
    pub unified: Vec<usize>,
    /// `disk_util`: the block devices fio found under the files.
    pub disks: Vec<DiskUtil>,
    /// Run here or on other machines.
    pub kind: DocumentKind,
}

impl FioDocument {
    /// Major and minor version: `(3, 33)`.
    #[must_use]
    pub fn version(&self) -> Option<(u32, u32)> {
        parse_version(&self.fio_version)
    }
}

/// One entry of `disk_util`: differences of the device's counters over the whole fio process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiskUtil {
    /// Kernel name.
    pub name: String,
    /// Reads completed.
    pub read_ios: u64,
    /// Writes completed.
    pub write_ios: u64,
    /// Milliseconds spent reading, summed over requests.
    pub read_ms: u64,
    /// Milliseconds spent writing, summed over requests.
    pub write_ms: u64,
    /// Milliseconds × requests in flight.
    pub in_queue_ms: u64,
    /// Percent of time in which the device was busy.
    pub util: f64,
}

/// Why a result could not be read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum JsonError {
    /// Nothing but white space.
    #[error(
        "it is empty: fio wrote no result; it was killed, or its output went elsewhere (--output)"
    )]
    Empty,
    /// No `{` that begins a document of fio.
    #[error(
        "no fio result in it: expected `{{ \"fio version\": … }}`; run fio with --output-format=json+{hint}"
    )]
    NoDocument {
        /// What it looks like instead, starting with `; `, or nothing.
        hint: String,
    },
    /// It ends in the middle of a document.
    #[error(
        "cut off at line {line} (byte {byte}): the end of the JSON is missing; {} and {jobs} of the cut one could still be read; run fio again, or copy the whole file",
        count(documents.len(), "complete document"),
        jobs = count(partial.jobs.len(), "complete job")
    )]
    Truncated {
        /// 1-based line.
        line: usize,
        /// 0-based byte.
        byte: usize,
        /// Complete documents before.
        documents: Vec<FioDocument>,
        /// What was complete in the one that is cut.
        partial: Box<FioDocument>,
    },
    /// Not JSON, or a value of the wrong type.
    #[error("line {line}, column {column}: {message}; this is not what fio 2.x to 3.4x print")]
    Syntax {
        /// 1-based line.
        line: usize,
        /// 1-based column.
        column: usize,
        /// What is wrong there.
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

/// Major and minor of `fio-3.33`, `fio-2.2.10`, `fio-3.33-15-gabcd`.
#[must_use]
pub fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text
        .trim_start_matches("fio-")
        .split(|c: char| !c.is_ascii_digit())
        .map(|part| part.parse::<u32>().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// Reads every document in `text`, in order.
///
/// Bytes that are not UTF-8 (file names) are replaced by U+FFFD.
///
/// # Errors
/// Empty, no document, cut off (with what could be read), or wrong syntax with its line.
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

/// The document that counts: `--status-interval` prints totals since the start again and again,
/// so the last one holds everything.
#[must_use]
pub fn final_document(documents: &[FioDocument]) -> Option<&FioDocument> {
    documents.last()
}

#[cfg(test)]
mod tests;
