//! Reports what an imported result of fio, or an exported run, really measured. The files are
//! parsed in `assay-fio` and stored in `assay-store`.

mod in_flight;
mod tool_results;

pub use tool_results::ImportedTool;

use crate::lint::{JobDoubt, format_doubt};
use crate::{json, terminal};
use assay_fio::json::{DiskUtil, DocumentKind, FioDocument};
use assay_fio::options::JobOptions;
use assay_judge::doubts::JudgedJobs;
use assay_model::result::Judged;
use assay_model::sample::{Latency, Operations, Worker};
use assay_model::units::{format_significant, mb_per_s};
use assay_model::{Doubt, Machine, Nanos, Run, RunId, SCHEMA_VERSION, Sample};
use assay_render::Style;
use assay_render::text::format_paragraph;
use in_flight::describe_in_flight;
use tool_results::{ToolRow, format_tool_result, name_tool};

/// An imported result of fio.
#[derive(Debug)]
pub struct ImportedResult {
    /// Name of the file, with control characters escaped.
    pub file: String,
    /// Number of result documents in the file.
    pub documents: usize,
    /// The last document of the file, which is the one that is judged.
    pub document: FioDocument,
    /// The jobs of this document, with the doubts about them.
    pub judged: Vec<JudgedJobs>,
    /// The run as it is stored.
    pub run: Run,
    /// Samples that belong to the run.
    pub samples: Vec<Sample>,
    /// Whether the store did not contain the run before.
    pub new: bool,
}

/// An imported file.
#[derive(Debug)]
pub enum ImportedSource {
    /// A result of fio.
    Fio(Box<ImportedResult>),
    /// A result of another tool.
    Tool(Box<ImportedTool>),
    /// A run that another assay exported.
    Own(Box<ImportedRun>),
}

/// A run that another assay exported and the user imported.
#[derive(Debug)]
pub struct ImportedRun {
    /// Name of the file, with control characters escaped.
    pub file: String,
    /// The run as it is stored.
    pub run: Run,
    /// Samples that belong to the run.
    pub samples: Vec<Sample>,
    /// Result of judging the run, with its doubts.
    pub judged: Judged,
    /// The machine that measured the run, if known.
    pub machine: Option<Machine>,
}

impl ImportedSource {
    /// Whether there is any doubt about the figures in the file.
    #[must_use]
    pub fn is_doubted(&self) -> bool {
        match self {
            Self::Fio(result) => result.judged.iter().any(|jobs| !jobs.doubts.is_empty()),
            Self::Tool(tool) => !tool.judged.doubts.is_empty(),
            Self::Own(own) => {
                let mut results = own.judged.results.iter();
                results.any(|result| !result.doubts.is_empty())
            }
        }
    }
}

/// JSON document that `assay import --json` prints.
#[derive(serde::Serialize, schemars::JsonSchema)]
#[schemars(rename = "Answer")]
pub struct ImportDocument<'a> {
    schema: u32,
    /// Doubts about all files.
    doubts: Vec<DoubtInFile<'a>>,
    files: Vec<FileSeen<'a>>,
}

/// A doubt with its file and job.
#[derive(serde::Serialize, schemars::JsonSchema)]
#[schemars(rename = "Doubted")]
struct DoubtInFile<'a> {
    #[serde(flatten)]
    doubt: JobDoubt<'a>,
    file: &'a str,
}

/// An imported file with its content.
#[derive(serde::Serialize, schemars::JsonSchema)]
struct FileSeen<'a> {
    file: &'a str,
    /// Number of the run in the store; null if the run was not kept.
    run: Option<i64>,
    /// Time of the measurement, if the file contains it. For a result of fio, the time at which fio printed the result.
    time: Option<jiff::Timestamp>,
    #[serde(flatten)]
    what: FileContent<'a>,
}

/// What an imported file contains.
#[derive(serde::Serialize, schemars::JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "What")]
enum FileContent<'a> {
    /// A run that assay exported.
    Own { report: json::RunDocument<'a> },
    /// A result of another tool.
    Tool {
        /// Name and version of the tool.
        tool: String,
        /// Sentence that describes what the tool measures; null if the text does not contain the command.
        measures: Option<&'a str>,
        workloads: Vec<ToolRow<'a>>,
        /// Other figures of the result, as printed.
        others: &'a [String],
    },
    /// A result of fio.
    Fio {
        /// Version of fio that wrote the result.
        tool: &'a str,
        /// Number of documents in the file. Only the last one is judged.
        documents: usize,
        jobs: Vec<ImportedJobs<'a>>,
    },
}

/// Jobs that are copies of each other.
#[derive(serde::Serialize, schemars::JsonSchema)]
#[schemars(rename = "Jobs")]
struct ImportedJobs<'a> {
    name: &'a str,
    copies: usize,
    read: Option<DirectionSummary>,
    write: Option<DirectionSummary>,
    /// Codes of the doubts about these jobs.
    doubts: Vec<&'a str>,
}

/// Figures of reads or writes over all copies of a job.
#[derive(serde::Serialize, schemars::JsonSchema)]
#[schemars(rename = "Direction")]
struct DirectionSummary {
    iops: f64,
    bytes_per_s: f64,
    ios: u64,
    p50_ns: Option<u64>,
    p99_ns: Option<u64>,
    p999_ns: Option<u64>,
    max_ns: u64,
}

/// Builds one JSON object for all imported files. Its list `doubts` contains the doubts of all files.
#[must_use]
pub fn import_to_json(sources: &[ImportedSource]) -> serde_json::Value {
    let mut answer = ImportDocument {
        schema: SCHEMA_VERSION,
        doubts: Vec::new(),
        files: Vec::new(),
    };
    for source in sources {
        answer.add_source(source);
    }
    serde_json::json!(answer)
}

impl<'a> ImportDocument<'a> {
    fn add_source(&mut self, source: &'a ImportedSource) {
        let (file, run, time, what) = match source {
            ImportedSource::Own(own) => {
                for result in &own.judged.results {
                    for counted in &result.doubts {
                        self.add_doubt(&own.file, &result.workload, &counted.doubt);
                    }
                }
                let report = json::build_document(&own.run, &own.judged, &own.samples);
                (
                    &own.file,
                    &own.run,
                    Some(own.run.started),
                    FileContent::Own { report },
                )
            }
            ImportedSource::Tool(tool) => {
                let name = tool.result.tool.name();
                for doubt in &tool.judged.doubts {
                    self.add_doubt(&tool.file, name, doubt);
                }
                let what = FileContent::Tool {
                    tool: name_tool(&tool.result),
                    measures: tool.judged.measures.as_deref(),
                    workloads: tool.result.rows.iter().map(ToolRow::of).collect(),
                    others: &tool.result.others,
                };
                let time = tool.result.time.map(|_| tool.run.started);
                (&tool.file, &tool.run, time, what)
            }
            ImportedSource::Fio(result) => {
                let jobs = result.judged.iter().map(|group| {
                    let entries = &result.document.jobs[group.jobs.clone()];
                    let name = entries.first().map_or("", |job| job.name.as_str());
                    for doubt in &group.doubts {
                        self.add_doubt(&result.file, name, doubt);
                    }
                    ImportedJobs {
                        name,
                        copies: entries.len(),
                        read: DirectionSummary::of(entries, |job| job.read()),
                        write: DirectionSummary::of(entries, |job| job.write()),
                        doubts: group.doubts.iter().map(|d| d.code.as_str()).collect(),
                    }
                });
                let what = FileContent::Fio {
                    jobs: jobs.collect(),
                    tool: &result.document.fio_version,
                    documents: result.documents,
                };
                (
                    &result.file,
                    &result.run,
                    find_print_time(&result.document),
                    what,
                )
            }
        };
        self.files.push(FileSeen {
            file,
            run: run_number(run.id),
            time,
            what,
        });
    }

    fn add_doubt(&mut self, file: &'a str, job: &'a str, doubt: &'a Doubt) {
        self.doubts.push(DoubtInFile {
            doubt: JobDoubt { doubt, job },
            file,
        });
    }
}

/// Returns the time at which a result was printed, if the result contains it. Local time is read as UTC.
fn find_print_time(document: &FioDocument) -> Option<jiff::Timestamp> {
    jiff::Timestamp::from_millisecond(document.timestamp_ms?).ok()
}

/// Returns the number of the run in the store; `None` if the run was not kept.
fn run_number(id: RunId) -> Option<i64> {
    (id.0 != 0).then_some(id.0)
}

type PickOperations = fn(&Worker) -> Option<&Operations>;

impl DirectionSummary {
    fn of(jobs: &[Worker], pick: PickOperations) -> Option<Self> {
        let summary = DirectionTotals::of(jobs, pick)?;
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

/// Sums over all copies of a job, in one direction (reads or writes).
struct DirectionTotals {
    iops: f64,
    bytes_per_s: f64,
    ios: u64,
    latency: Latency,
}

impl DirectionTotals {
    fn of(jobs: &[Worker], pick: PickOperations) -> Option<Self> {
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

    fn format_text(&self, what: &str, columns: usize) -> String {
        let rate = format!(
            "{what}: {} IOPS, {} MB/s",
            format_significant(self.iops),
            mb_per_s(self.bytes_per_s)
        );
        let rate = keep_on_one_line(&rate);
        format_paragraph(
            &format!("{rate}; {}", format_latency_summary(&self.latency)),
            2,
            columns,
        )
    }
}

/// Replaces spaces by no-break spaces, so that the text stays on one line.
fn keep_on_one_line(text: &str) -> String {
    text.replace(' ', "\u{a0}")
}

fn format_latency_summary(latency: &Latency) -> String {
    if latency.max == 0 {
        return "latencies unknown".to_owned();
    }
    let mut out = String::new();
    for (name, percent) in [("p50", 50.0), ("p99", 99.0), ("p99.9", 99.9)] {
        if let Some(ns) = latency.percentile(percent) {
            out.push_str(&keep_on_one_line(&format!("{name} {}", Nanos(ns))));
            out.push_str(", ");
        }
    }
    out + &keep_on_one_line(&format!("max {}", Nanos(latency.max)))
}

/// Formats the results of an import. Sentences are wrapped at `columns`.
#[must_use]
pub fn import_to_text(sources: &[ImportedSource], style: Style, columns: usize) -> String {
    let text = |source: &ImportedSource| match source {
        ImportedSource::Fio(result) => format_fio_result(result, columns),
        ImportedSource::Tool(tool) => {
            let mut out = format_tool_result(tool, columns);
            for doubt in &tool.judged.doubts {
                out.push_str(&format_doubt(doubt, 2, columns));
            }
            out.push_str(&format_run_number(tool.run.id.0, tool.new));
            out
        }
        ImportedSource::Own(own) => terminal::render_run(&own.run, &own.judged, style),
    };
    sources.iter().map(text).collect::<Vec<_>>().join("\n")
}

fn format_fio_result(result: &ImportedResult, columns: usize) -> String {
    let document = &result.document;
    let mut out = result.file.clone();
    if !document.fio_version.is_empty() {
        out.push_str(&format!(": {}", document.fio_version.escape_debug()));
    }
    out.push_str(&match find_print_time(document) {
        Some(_) if document.local_time => {
            let time = result.run.started.strftime("%Y-%m-%d %H:%M");
            format!(", {time} in an unknown time zone")
        }
        Some(_) => format!(", {}", result.run.started.strftime("%Y-%m-%d %H:%M UTC")),
        None => ", time unknown".to_owned(),
    });
    if document.kind == DocumentKind::Client {
        out.push_str(", run by fio --client on other machines");
    }
    if result.documents > 1 {
        out.push_str(&format!(
            "; the last of {} documents, which holds the totals",
            result.documents
        ));
    }
    let mut out = format_paragraph(&out, 0, columns);
    // fio counts the I/O of the disks over all jobs together.
    let disks: &[DiskUtil] = if result.judged.len() == 1 {
        &document.disks
    } else {
        &[]
    };
    for group in &result.judged {
        out.push_str(&format_group(
            &document.jobs[group.jobs.clone()],
            group,
            disks,
            columns,
        ));
    }
    out.push_str(&format_run_number(result.run.id.0, result.new));
    out
}

/// Formats the number of the run in the store; empty if the result was not kept.
fn format_run_number(id: i64, new: bool) -> String {
    match (id, new) {
        (0, _) => String::new(),
        (id, false) => format!("run {id} holds it already\n"),
        (id, true) => format!("kept as run {id}\n"),
    }
}

fn format_group(jobs: &[Worker], group: &JudgedJobs, disks: &[DiskUtil], columns: usize) -> String {
    let Some(first) = jobs.first() else {
        return String::new();
    };
    let mut out = format!("\n{}: {}\n", first.name.escape_debug(), describe_jobs(jobs));
    for (what, pick) in [
        ("read", (|job| job.read()) as PickOperations),
        ("write", |job| job.write()),
    ] {
        if let Some(summary) = DirectionTotals::of(jobs, pick) {
            out.push_str(&summary.format_text(direction_name(first, what), columns));
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
        out.push_str(&format_paragraph(
            &format!("{flushes}; {}", format_latency_summary(&done.lat)),
            2,
            columns,
        ));
    }
    out.push_str(&format_paragraph(
        &describe_in_flight(jobs, disks),
        2,
        columns,
    ));
    for doubt in &group.doubts {
        out.push_str(&format_doubt(doubt, 2, columns));
    }
    out
}

/// Returns the name of a direction. Reads of a job that writes and then verifies are called verification, because they
/// are not part of a mix.
fn direction_name<'a>(job: &Worker, what: &'a str) -> &'a str {
    let options = JobOptions::from_result(job);
    let checks =
        options.given("verify").is_some() && options.access.writes && !options.access.reads;
    match what == "read" && checks {
        true => "verify (reads)",
        false => what,
    }
}

/// Describes the jobs in one line.
fn describe_jobs(jobs: &[Worker]) -> String {
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
    let direct_known = ["direct", "buffered"]
        .iter()
        .any(|key| options.given(key).is_some());
    out.push_str(match (options.open && !direct_known, options.direct) {
        (true, _) => ", direct or not is unknown",
        (false, true) => ", direct",
        (false, false) => ", through the page cache",
    });
    out.push_str(&format!(", {time}"));
    out
}
