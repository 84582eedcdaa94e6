//! Parses fio's text for people (`--output-format=normal`), versions 2.0 to 3.4x, even if it is within other text.
//! [`lines`] parses single lines; [`crate::terse`] parses terse output.
//!
//! The text contains the pattern, block size, engine and queue depth of a job, but neither `direct` nor most other
//! options. Therefore [`FioJob::open`](assay_model::sample::FioJob::open) is true unless the text also contains the
//! command.

mod command;
mod lines;
mod quantities;

use crate::json::{DiskUtil, FioDocument};
use assay_model::sample::{FioJob, Latency, Operation, Operations, Worker};
use lines::{JobStart, LineError};
use std::collections::BTreeMap;

/// Reasons why a text cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: cannot read `{text}`: {message}")]
pub struct TextError {
    /// Line number, counted from 1.
    pub line: usize,
    /// Start of the line, without control characters.
    pub text: String,
    /// Content that was expected in the line.
    pub message: String,
}

/// Maximum number of characters of a line that a message contains.
const SHOWN: usize = 60;

impl TextError {
    /// Creates an error about the line with number `line`, counted from 1.
    pub(crate) fn new(line: usize, text: &str, message: impl Into<String>) -> Self {
        let clean: String = text.trim().chars().filter(|c| !c.is_control()).collect();
        let mut shown: String = clean.chars().take(SHOWN).collect();
        if shown.len() < clean.len() {
            shown.push('…');
        }
        Self {
            line,
            text: assay_model::secrets::withhold_in_text(&shown),
            message: message.into(),
        }
    }
}

/// Returns whether the text contains the result of a job.
#[must_use]
pub fn is_text_result(text: &str) -> bool {
    text.lines()
        .any(|line| lines::parse_job_start(strip_quote(line)).is_some())
}

/// Parses every run of fio in `text`, in order. Lines that do not belong to a run are skipped.
///
/// # Errors
/// A line of a job contains no valid figures, or no job has any figures; the error contains the line.
pub fn parse_text(text: &str) -> Result<Vec<FioDocument>, TextError> {
    let mut scan = Scan::default();
    let mut first_job = None;
    for (number, line) in (1..).zip(text.lines()) {
        let line = strip_quote(line);
        scan.read_line(line)
            .map_err(|LineError(message)| TextError::new(number, line, message))?;
        if lines::parse_job_start(line).is_some() {
            first_job.get_or_insert((number, line));
        }
    }
    let documents = scan.finish();
    match (documents.is_empty(), first_job) {
        (true, Some((number, line))) => Err(TextError::new(
            number,
            line,
            "the lines after it contain no figures of the job, such as `read: IOPS=…`",
        )),
        _ => Ok(documents),
    }
}

/// Removes quotation prefixes of mail and code (`> `, `// `, `| `) at the start of a line, and replaces no-break spaces
/// by spaces.
pub(crate) fn strip_quote(line: &str) -> &str {
    let line = line.trim_end();
    for mark in ["> ", ">> ", "// "] {
        if let Some(rest) = line.trim_start().strip_prefix(mark) {
            return rest;
        }
    }
    line
}

/// Kind of latency to which a line of percentiles belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LatencyKind {
    Slat,
    Clat,
    Lat,
    Sync,
}

/// State while a text is parsed.
#[derive(Default)]
struct Scan {
    done: Vec<FioDocument>,
    current: FioDocument,
    /// Header lines of the current run, as the name and the options of each job.
    headers: Vec<(String, BTreeMap<String, String>)>,
    /// Process ids of the jobs of the current run.
    pids: Vec<Option<String>>,
    command: command::SeenCommand,
    version: String,
    /// Direction (read, write or trim) to which the following lines belong.
    direction: Option<Operation>,
    /// Kind of latency to which the following lines of percentiles belong, and their unit in nanoseconds.
    percentiles: Option<(LatencyKind, f64)>,
    in_disks: bool,
}

impl Scan {
    fn read_line(&mut self, line: &str) -> Result<(), LineError> {
        let text = line.trim();
        if let Some((name, options)) = lines::parse_header(text)? {
            if !self.current.jobs.is_empty() {
                self.end_run();
            }
            self.headers.push((name, options));
        } else if lines::is_version(text) {
            self.version = if text.starts_with("fio-") {
                text.to_owned()
            } else {
                format!("fio-{text}")
            };
        } else if let Some(start) = lines::parse_job_start(text) {
            self.start_job(start?);
        } else if text.starts_with("Run status group") {
            self.direction = None;
            self.percentiles = None;
            self.in_disks = false;
        } else if text.starts_with("Disk stats") {
            self.in_disks = true;
        } else if self.in_disks {
            match lines::parse_disk(text)? {
                Some(disk) => self.add_disk(disk),
                None => self.in_disks = text.is_empty(),
            }
        } else if !self.current.jobs.is_empty() {
            self.read_job_line(text)?;
        }
        self.command.read_line(text, !self.current.jobs.is_empty());
        Ok(())
    }

    fn add_disk(&mut self, disk: DiskUtil) {
        let known = self.current.disks.iter().any(|one| one.name == disk.name);
        if !known {
            self.current.disks.push(disk);
        }
    }

    fn end_run(&mut self) {
        let mut document = std::mem::take(&mut self.current);
        document.fio_version = self.version.clone();
        let headers = std::mem::take(&mut self.headers);
        // People who quote a result leave lines out.
        document
            .jobs
            .retain(|job| !job.operations.is_empty() || job.fio.error != 0);
        for job in &mut document.jobs {
            if let Some((_, options)) = headers.iter().find(|(name, _)| *name == job.name) {
                for (key, value) in options {
                    let known = job.fio.options.entry(key.clone());
                    known.or_insert_with(|| value.clone());
                }
            }
            job.fio.open = true;
            self.command.complete_options(job);
        }
        if !document.jobs.is_empty() {
            self.done.push(document);
        }
        self.command.end_run();
        self.pids.clear();
        self.direction = None;
        self.percentiles = None;
        self.in_disks = false;
    }

    fn finish(mut self) -> Vec<FioDocument> {
        self.end_run();
        self.done
    }

    fn start_job(&mut self, start: JobStart) {
        let JobStart {
            name,
            group,
            jobs,
            error,
            pid,
            time,
        } = start;
        // With --status-interval every job is printed again with the totals since the start.
        let known = self
            .pids
            .iter()
            .position(|known| pid.is_some() && *known == pid);
        if let Some(index) = known {
            self.pids.remove(index);
            self.current.jobs.remove(index);
        }
        let mut worker = Worker {
            name,
            fio: FioJob {
                error,
                group,
                ..FioJob::default()
            },
            ..Worker::default()
        };
        if jobs > 1 {
            // fio prints a number of jobs only with group_reporting.
            let options = &mut worker.fio.options;
            options.insert("numjobs".to_owned(), jobs.to_string());
            options.insert("group_reporting".to_owned(), String::new());
        }
        if let Some(ms) = time {
            self.current.timestamp_ms = Some(ms);
            self.current.local_time = true;
        }
        self.current.jobs.push(worker);
        self.pids.push(pid);
        self.direction = None;
        self.percentiles = None;
        self.in_disks = false;
    }

    fn read_job_line(&mut self, text: &str) -> Result<(), LineError> {
        let Some(job) = self.current.jobs.last_mut() else {
            return Ok(());
        };
        if let Some((kind, operations)) = lines::parse_direction(text)? {
            job.runtime = job.runtime.max(operations.runtime);
            job.operations.insert(kind, operations);
            self.direction = Some(kind);
            self.percentiles = None;
        } else if text.starts_with("fsync/fdatasync") {
            self.direction = Some(Operation::Flush);
            self.percentiles = None;
        } else if let Some((kind, latency, unit)) = lines::parse_latency(text)? {
            let Some(direction) = self.direction else {
                return Ok(());
            };
            let operations = job.operations.entry(direction).or_default();
            *pick_latency(operations, kind) = latency;
            self.percentiles = Some((kind, unit));
        } else if let Some((kind, unit)) = lines::parse_percentiles_title(text) {
            self.percentiles = Some((kind, unit));
        } else if let Some(rest) = text.strip_prefix('|') {
            if let (Some(direction), Some((kind, unit))) = (self.direction, self.percentiles) {
                let operations = job.operations.entry(direction).or_default();
                let percentiles = lines::parse_percentiles(rest, unit)?;
                pick_latency(operations, kind)
                    .percentiles
                    .extend(percentiles);
            }
        } else if let Some((usr, sys, ctx)) = lines::parse_cpu(text)? {
            (job.usr_cpu, job.sys_cpu, job.fio.ctx) = (usr, sys, ctx);
        } else if let Some(levels) = lines::parse_depths(text)? {
            job.fio.iodepth_level = levels;
        } else if let Some(issued) = lines::parse_issued(text)? {
            apply_issued(job, issued);
        }
        Ok(())
    }
}

fn pick_latency(operations: &mut Operations, kind: LatencyKind) -> &mut Latency {
    match kind {
        LatencyKind::Slat => &mut operations.slat,
        LatencyKind::Clat => &mut operations.clat,
        LatencyKind::Lat | LatencyKind::Sync => &mut operations.lat,
    }
}

/// Maximum relative difference between the printed rate and count ÷ run time. Above it, the two are about different
/// I/Os. fio prints three or four digits of the rate.
const ROUNDING: f64 = 0.02;

/// Sets the I/O counts of a job. If the printed rate agrees with count ÷ run time, replaces the rate by this exact
/// value.
fn apply_issued(job: &mut Worker, issued: lines::Issued) {
    for (kind, count, short) in [
        (Operation::Read, issued.total[0], issued.short[0]),
        (Operation::Write, issued.total[1], issued.short[1]),
        (Operation::Trim, issued.total[2], issued.short[2]),
    ] {
        let Some(operations) = job.operations.get_mut(&kind) else {
            continue;
        };
        operations.count = count;
        operations.short = short;
        let exact = count as f64 / operations.runtime.as_secs_f64();
        if exact.is_finite() && (exact - operations.per_s).abs() <= ROUNDING * exact {
            operations.per_s = exact;
        }
    }
    // The text has no count of flushes, but the shares of depths include them: 200 % is one flush per I/O.
    let all: f64 = job.fio.iodepth_level.values().sum();
    let ios: u64 = issued.total.iter().take(3).sum();
    if let Some(flushes) = job.operations.get_mut(&Operation::Flush) {
        flushes.count = ((all / 100.0 - 1.0).max(0.0) * ios as f64).round() as u64;
    }
}

#[cfg(test)]
mod tests;
