//! What a result of fio, or an exported run, really measured.

mod load;

use crate::lint::{DoubtOf, doubt_text};
use crate::{json, terminal};
use assay_fio::json::{DiskUtil, Document, Kind};
use assay_fio::options::JobOptions;
use assay_judge::doubts::JudgedJobs;
use assay_model::result::Judged;
use assay_model::sample::{Latency, Operations, Worker};
use assay_model::units::{mb_per_s, significant};
use assay_model::{Doubt, Machine, Nanos, Run, RunId, SCHEMA_VERSION, Sample};
use assay_render::Style;
use assay_render::text::paragraph;
use load::load;

/// One result of fio as read.
#[derive(Debug)]
pub struct Imported {
    /// Name of the file, control characters escaped.
    pub file: String,
    /// How many documents are in it.
    pub documents: usize,
    /// The last one.
    pub document: Document,
    /// What is to be doubted.
    pub judged: Vec<JudgedJobs>,
    /// As it is kept.
    pub run: Run,
    /// Its samples.
    pub samples: Vec<Sample>,
    /// False when the store had it before.
    pub new: bool,
}

/// A file as read.
#[derive(Debug)]
pub enum Source {
    /// A result of fio.
    Fio(Box<Imported>),
    /// A run that assay exported.
    Own(Box<Own>),
}

/// A run of assay as read.
#[derive(Debug)]
pub struct Own {
    /// Name of the file, control characters escaped.
    pub file: String,
    /// As it is kept.
    pub run: Run,
    /// Its samples.
    pub samples: Vec<Sample>,
    /// What is to be doubted.
    pub judged: Judged,
    /// Where it was measured, when that is known.
    pub machine: Option<Machine>,
}

impl Source {
    /// Whether anything in it is to be doubted.
    #[must_use]
    pub fn is_doubted(&self) -> bool {
        match self {
            Self::Fio(result) => result.judged.iter().any(|jobs| !jobs.doubts.is_empty()),
            Self::Own(own) => {
                let mut results = own.judged.results.iter();
                results.any(|result| !result.doubts.is_empty())
            }
        }
    }
}

/// What [`to_json`] writes.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct Answer<'a> {
    schema: u32,
    /// Of all files.
    doubts: Vec<Doubted<'a>>,
    files: Vec<FileSeen<'a>>,
}

/// A doubt, and where.
#[derive(serde::Serialize, schemars::JsonSchema)]
struct Doubted<'a> {
    #[serde(flatten)]
    doubt: DoubtOf<'a>,
    file: &'a str,
}

/// A file.
#[derive(serde::Serialize, schemars::JsonSchema)]
struct FileSeen<'a> {
    file: &'a str,
    /// Number in the store; null when it was not kept.
    run: Option<i64>,
    /// When it was measured, as far as the file says; when a result was printed.
    time: Option<jiff::Timestamp>,
    #[serde(flatten)]
    what: What<'a>,
}

/// What is in a file.
#[derive(serde::Serialize, schemars::JsonSchema)]
#[serde(untagged)]
enum What<'a> {
    /// A run that assay exported.
    Own { report: json::Document<'a> },
    /// A result of fio.
    Fio {
        /// Version of fio.
        tool: &'a str,
        /// How many documents are in it; the last one counts.
        documents: usize,
        jobs: Vec<Jobs<'a>>,
    },
}

/// Copies of a job.
#[derive(serde::Serialize, schemars::JsonSchema)]
struct Jobs<'a> {
    name: &'a str,
    copies: usize,
    read: Option<Direction>,
    write: Option<Direction>,
    /// Codes.
    doubts: Vec<&'a str>,
}

/// Reads or writes over copies of a job.
#[derive(serde::Serialize, schemars::JsonSchema)]
struct Direction {
    iops: f64,
    bytes_per_s: f64,
    ios: u64,
    p50_ns: Option<u64>,
    p99_ns: Option<u64>,
    p999_ns: Option<u64>,
    max_ns: u64,
}

/// One JSON object with the list `doubts`.
#[must_use]
pub fn to_json(sources: &[Source]) -> serde_json::Value {
    let mut answer = Answer {
        schema: SCHEMA_VERSION,
        doubts: Vec::new(),
        files: Vec::new(),
    };
    for source in sources {
        answer.add(source);
    }
    serde_json::json!(answer)
}

impl<'a> Answer<'a> {
    fn add(&mut self, source: &'a Source) {
        let (file, run, time, what) = match source {
            Source::Own(own) => {
                for result in &own.judged.results {
                    for counted in &result.doubts {
                        self.doubt(&own.file, &result.workload, &counted.doubt);
                    }
                }
                let report = json::document(&own.run, &own.judged, &own.samples);
                (
                    &own.file,
                    &own.run,
                    Some(own.run.started),
                    What::Own { report },
                )
            }
            Source::Fio(result) => {
                let jobs = result.judged.iter().map(|group| {
                    let entries = &result.document.jobs[group.jobs.clone()];
                    let name = entries.first().map_or("", |job| job.name.as_str());
                    for doubt in &group.doubts {
                        self.doubt(&result.file, name, doubt);
                    }
                    Jobs {
                        name,
                        copies: entries.len(),
                        read: Direction::of(entries, |job| job.read()),
                        write: Direction::of(entries, |job| job.write()),
                        doubts: group.doubts.iter().map(|d| d.code.as_str()).collect(),
                    }
                });
                let what = What::Fio {
                    jobs: jobs.collect(),
                    tool: &result.document.fio_version,
                    documents: result.documents,
                };
                (&result.file, &result.run, printed(&result.document), what)
            }
        };
        self.files.push(FileSeen {
            file,
            run: number(run.id),
            time,
            what,
        });
    }

    fn doubt(&mut self, file: &'a str, job: &'a str, doubt: &'a Doubt) {
        self.doubts.push(Doubted {
            doubt: DoubtOf { doubt, job },
            file,
        });
    }
}

/// When a result was printed, where it says so.
fn printed(document: &Document) -> Option<jiff::Timestamp> {
    jiff::Timestamp::from_millisecond(document.timestamp_ms?).ok()
}

/// Number in the store, none when it was not kept.
fn number(id: RunId) -> Option<i64> {
    (id.0 != 0).then_some(id.0)
}

type Pick = fn(&Worker) -> Option<&Operations>;

impl Direction {
    fn of(jobs: &[Worker], pick: Pick) -> Option<Self> {
        let summary = Summary::of(jobs, pick)?;
        let at = |percent| summary.latency.percentile(percent);
        Some(Self {
            iops: summary.iops,
            bytes_per_s: summary.bytes_per_s,
            ios: summary.ios,
            p50_ns: at(50.0),
            p99_ns: at(99.0),
            p999_ns: at(99.9),
            max_ns: summary.latency.max,
        })
    }
}

/// One direction over copies of a job.
struct Summary {
    iops: f64,
    bytes_per_s: f64,
    ios: u64,
    latency: Latency,
}

impl Summary {
    fn of(jobs: &[Worker], pick: Pick) -> Option<Self> {
        let all: Vec<&Operations> = jobs.iter().filter_map(pick).collect();
        let first = all.first()?;
        let mut latency = Latency::default();
        for io in &all {
            latency.histogram.merge(&io.clat.histogram);
            latency.max = latency.max.max(io.clat.max);
        }
        if all.len() == 1 {
            // Percentiles of several jobs cannot be merged without their histograms.
            latency.percentiles.clone_from(&first.clat.percentiles);
        }
        Some(Self {
            iops: all.iter().map(|io| io.per_s).sum(),
            bytes_per_s: all.iter().map(|io| io.bytes_per_s).sum(),
            ios: all.iter().map(|io| io.count).fold(0, u64::saturating_add),
            latency,
        })
    }

    fn text(&self, what: &str, columns: usize) -> String {
        let rate = format!(
            "{what}: {} IOPS, {} MB/s",
            significant(self.iops),
            mb_per_s(self.bytes_per_s)
        );
        let rate = joined(&rate);
        paragraph(
            &format!("{rate}; {}", latency_text(&self.latency)),
            2,
            columns,
        )
    }
}

/// Kept on one line.
fn joined(text: &str) -> String {
    text.replace(' ', "\u{a0}")
}

fn latency_text(latency: &Latency) -> String {
    let mut out = String::new();
    for (name, percent) in [("p50", 50.0), ("p99", 99.0), ("p99.9", 99.9)] {
        if let Some(ns) = latency.percentile(percent) {
            out.push_str(&joined(&format!("{name} {}", Nanos(ns))));
            out.push_str(", ");
        }
    }
    out + &joined(&format!("max {}", Nanos(latency.max)))
}

/// What was found, sentences in at most `columns`.
#[must_use]
pub fn to_text(sources: &[Source], style: Style, columns: usize) -> String {
    let text = |source: &Source| match source {
        Source::Fio(result) => fio_text(result, columns),
        Source::Own(own) => terminal::run(&own.run, &own.judged, style),
    };
    sources.iter().map(text).collect::<Vec<_>>().join("\n")
}

fn fio_text(result: &Imported, columns: usize) -> String {
    let document = &result.document;
    let mut out = result.file.clone();
    if !document.fio_version.is_empty() {
        out.push_str(&format!(": {}", document.fio_version.escape_debug()));
    }
    out.push_str(&match printed(document) {
        Some(_) => format!(", {}", result.run.started.strftime("%Y-%m-%d %H:%M UTC")),
        None => ", when is not known".to_owned(),
    });
    if document.kind == Kind::Client {
        out.push_str(", run by fio --client on other machines");
    }
    if result.documents > 1 {
        out.push_str(&format!(
            "; the last of {} documents, which holds the totals",
            result.documents
        ));
    }
    let mut out = paragraph(&out, 0, columns);
    // fio counts the disks over all jobs together.
    let disks: &[DiskUtil] = if result.judged.len() == 1 {
        &document.disks
    } else {
        &[]
    };
    for group in &result.judged {
        out.push_str(&group_text(
            &document.jobs[group.jobs.clone()],
            group,
            disks,
            columns,
        ));
    }
    match result.run.id.0 {
        0 => {}
        id if !result.new => out.push_str(&format!("run {id} holds it already\n")),
        id => out.push_str(&format!("kept as run {id}\n")),
    }
    out
}

fn group_text(jobs: &[Worker], group: &JudgedJobs, disks: &[DiskUtil], columns: usize) -> String {
    let Some(first) = jobs.first() else {
        return String::new();
    };
    let mut out = format!("\n{}: {}\n", first.name.escape_debug(), describe(jobs));
    for (what, pick) in [
        ("read", (|job| job.read()) as Pick),
        ("write", |job| job.write()),
    ] {
        if let Some(summary) = Summary::of(jobs, pick) {
            out.push_str(&summary.text(phase(first, what), columns));
        }
    }
    if let [job] = jobs
        && let Some(done) = job.flush()
    {
        let flushes = format!(
            "flush: {} of them, mean {}",
            done.count,
            Nanos(done.lat.mean as u64)
        );
        out.push_str(&paragraph(
            &format!("{flushes}; {}", latency_text(&done.lat)),
            2,
            columns,
        ));
    }
    out.push_str(&paragraph(&load(jobs, disks), 2, columns));
    for doubt in &group.doubts {
        out.push_str(&doubt_text(doubt, 2, columns));
    }
    out
}

/// What a direction is: reads of a job that only writes and verifies are its check, not a mix.
fn phase<'a>(job: &Worker, what: &'a str) -> &'a str {
    let options = JobOptions::from_result(job);
    let checks =
        options.given("verify").is_some() && options.access.writes && !options.access.reads;
    match what == "read" && checks {
        true => "verify (reads)",
        false => what,
    }
}

/// What ran, in one line.
fn describe(jobs: &[Worker]) -> String {
    let Some(first) = jobs.first() else {
        return String::new();
    };
    let time = jobs
        .iter()
        .flat_map(|job| job.read().into_iter().chain(job.write()));
    let time = time.map(|io| io.runtime).max().unwrap_or_default();
    if first.fio.options.is_empty() {
        return format!("options unknown, {time}");
    }
    let options = JobOptions::from_result(first);
    let block = if options.access.reads {
        options.block_size.0
    } else {
        options.block_size.1
    };
    let mut out = format!(
        "{}, {block}, {}, iodepth {}",
        options.given("rw").unwrap_or("read").escape_debug(),
        options.engine.escape_debug(),
        options.iodepth
    );
    if jobs.len() > 1 {
        out.push_str(&format!(", {} jobs", jobs.len()));
    }
    out.push_str(if options.direct {
        ", direct"
    } else {
        ", through the page cache"
    });
    out.push_str(&format!(", {time}"));
    out
}
