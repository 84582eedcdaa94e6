//! `assay import`: what a result of fio really measured; kept as a run.

mod clean;
mod load;

use super::lint::{doubt_json, doubt_text};
use crate::context::paragraph;
use crate::context::{self, print};
use crate::global::Global;
use crate::input;
use crate::status::Status;
use anyhow::Context as _;
use assay_fio::import;
use assay_fio::json::{self, DiskUtil, Document, Kind};
use assay_fio::options::JobOptions;
use assay_judge::doubts::{self, JudgedJobs};
use assay_model::result::Judged;
use assay_model::sample::{Latency, Operations, Worker};
use assay_model::units::{mb_per_s, significant};
use assay_model::{Machine, Nanos, Run, RunId, SCHEMA_VERSION, Sample};
use load::load;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  assay import result.json                  explain it, and keep it as a run
  assay import run-7.json                   a run that another assay exported
  assay import result.json --json --no-store
  assay import - <result.json               from standard input
  assay import before.json after.json && assay compare 1 2

Reads what fio 2.x to 3.4x print with --output-format=json or json+, also with text around it and
with several documents (--status-interval: the last one counts).
Exit status: 0 nothing to doubt, 1 doubts, 2 not a result of fio, 3 cannot be read.";

/// Explain what a result of fio really measured, and keep it as a run
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Results of fio (JSON or JSON+), or runs that assay exported
    #[arg(value_name = "RESULT", required = true)]
    files: Vec<PathBuf>,
    /// Print one JSON object with the list `doubts`
    #[arg(long)]
    json: bool,
    /// Only explain, keep nothing
    #[arg(long)]
    no_store: bool,
}

/// One result of fio as read.
struct Imported {
    file: String,
    documents: usize,
    document: Document,
    judged: Vec<JudgedJobs>,
    run: Run,
    samples: Vec<Sample>,
    /// False when the store had it before.
    new: bool,
}

/// A file as read.
enum Source {
    /// A result of fio.
    Fio(Box<Imported>),
    /// A run that assay exported.
    Own(Box<Own>),
}

/// A run of assay as read.
struct Own {
    file: String,
    run: Run,
    samples: Vec<Sample>,
    judged: Judged,
    machine: Option<Machine>,
}

/// Runs the verb.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    // Everything is read before anything is kept: a wrong file leaves no half of an import.
    let mut sources = args
        .files
        .iter()
        .map(|path| read(path))
        .collect::<anyhow::Result<Vec<_>>>()?;
    if !args.no_store {
        let mut store = context::open_store(global)?;
        for source in &mut sources {
            match source {
                Source::Fio(result) => {
                    let (id, new) = store.import_run(&result.run, &result.samples, None)?;
                    (result.run.id, result.new) = (id, new);
                }
                Source::Own(own) => {
                    let machine = own.machine.as_ref();
                    own.run.id = store.import_run(&own.run, &own.samples, machine)?.0;
                }
            }
        }
    }
    let found = sources.iter().any(|source| match source {
        Source::Fio(result) => result.judged.iter().any(|jobs| !jobs.doubts.is_empty()),
        Source::Own(own) => own
            .judged
            .results
            .iter()
            .any(|result| !result.doubts.is_empty()),
    });
    if args.json {
        print(&format!("{:#}\n", to_json(&sources)))?;
    } else {
        let style = context::style(global);
        let text = |source: &Source| match source {
            Source::Fio(result) => to_text(result),
            Source::Own(own) => assay_report::terminal::run(&own.run, &own.judged, style),
        };
        print(&sources.iter().map(text).collect::<Vec<_>>().join("\n"))?;
    }
    Ok(if found { Status::Findings } else { Status::Ok })
}

/// A result of a thousand jobs with all their bins has some tens of MB. Without an end, /dev/zero
/// would fill the memory.
const LONGEST: u64 = 512 << 20;

/// Whether it begins as what `assay export` writes.
fn is_export(bytes: &[u8]) -> bool {
    let text = bytes.trim_ascii_start().strip_prefix(b"{");
    text.is_some_and(|text| text.trim_ascii_start().starts_with(b"\"assay\""))
}

fn own(bytes: Vec<u8>, shown: String) -> anyhow::Result<Own> {
    let text = String::from_utf8(bytes)
        .ok()
        .with_context(|| format!("{shown}: not UTF-8"))?;
    let export = assay_store::from_json(&text).context(shown.clone())?;
    let machine = export.machine();
    let (mut run, samples) = clean::clean(export.run, export.samples).context(shown.clone())?;
    run.id = RunId(0);
    let judged = assay_judge::judge(&run, &samples);
    Ok(Own {
        file: shown,
        run,
        samples,
        judged,
        machine,
    })
}

fn read(path: &Path) -> anyhow::Result<Source> {
    let shown = path.to_string_lossy().escape_debug().to_string();
    let raw = input::bytes(path, LONGEST, "a result of fio")?;
    // PowerShell's `>` writes UTF-16; the same result in UTF-8 is the same run.
    let bytes = match raw.starts_with(&[0xff, 0xfe]) || raw.starts_with(&[0xfe, 0xff]) {
        true => assay_fio::options::decode(raw)
            .with_context(|| format!("{shown}: begins as UTF-16 and is none"))?
            .into_bytes(),
        false => raw,
    };
    if is_export(&bytes) {
        return Ok(Source::Own(Box::new(own(bytes, shown)?)));
    }
    let parsed = json::parse(&bytes);
    let uid = fingerprint(&bytes);
    drop(bytes);
    let mut documents = parsed.context(shown.clone())?;
    let count = documents.len();
    let document = documents
        .pop()
        .with_context(|| format!("{shown}: no document in it"))?;
    anyhow::ensure!(
        !document.jobs.is_empty(),
        "{shown}: no job in it: fio was stopped before one had begun; run it again"
    );
    let name = path.file_name().unwrap_or(path.as_os_str());
    let about = import::Context {
        file: name.to_string_lossy().escape_debug().to_string(),
        uid,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        now: context::now(),
    };
    let (run, samples) = import::run(&document, &about);
    let judged = doubts::judge_result(&document);
    Ok(Source::Fio(Box::new(Imported {
        file: shown,
        documents: count,
        document,
        judged,
        run,
        samples,
        new: true,
    })))
}

/// The same file is the same run, however often it is imported: 128 bits, as of other runs.
fn fingerprint(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..32].to_owned()
}

fn to_json(sources: &[Source]) -> serde_json::Value {
    let mut doubts = Vec::new();
    let mut files = Vec::new();
    for source in sources {
        let result = match source {
            Source::Fio(result) => result,
            Source::Own(own) => {
                for result in &own.judged.results {
                    for counted in &result.doubts {
                        let mut value = doubt_json(&result.workload, &counted.doubt);
                        value["file"] = own.file.clone().into();
                        doubts.push(value);
                    }
                }
                files.push(serde_json::json!({
                    "file": own.file,
                    "run": number(own.run.id),
                    "report": assay_report::json::run(&own.run, &own.judged, &own.samples),
                }));
                continue;
            }
        };
        let mut jobs = Vec::new();
        for group in &result.judged {
            let entries = &result.document.jobs[group.jobs.clone()];
            let name = entries.first().map_or("", |job| job.name.as_str());
            for doubt in &group.doubts {
                let mut value = doubt_json(name, doubt);
                value["file"] = result.file.clone().into();
                doubts.push(value);
            }
            let codes: Vec<&str> = group.doubts.iter().map(|d| d.code.as_str()).collect();
            jobs.push(serde_json::json!({
                "name": name,
                "copies": entries.len(),
                "read": direction_json(entries, |job| job.read()),
                "write": direction_json(entries, |job| job.write()),
                "doubts": codes,
            }));
        }
        files.push(serde_json::json!({
            "file": result.file,
            "run": number(result.run.id),
            "tool": result.document.fio_version,
            "documents": result.documents,
            "jobs": jobs,
        }));
    }
    serde_json::json!({ "schema": SCHEMA_VERSION, "doubts": doubts, "files": files })
}

/// Number in the store, none when it was not kept.
fn number(id: RunId) -> Option<i64> {
    (id.0 != 0).then_some(id.0)
}

type Pick = fn(&Worker) -> Option<&Operations>;

fn direction_json(jobs: &[Worker], pick: Pick) -> Option<serde_json::Value> {
    let summary = Summary::of(jobs, pick)?;
    let at = |percent| summary.latency.percentile(percent);
    Some(serde_json::json!({
        "iops": summary.iops,
        "bytes_per_s": summary.bytes_per_s,
        "ios": summary.ios,
        "p50_ns": at(50.0),
        "p99_ns": at(99.0),
        "p999_ns": at(99.9),
        "max_ns": summary.latency.max,
    }))
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

    fn text(&self, what: &str) -> String {
        let rate = format!(
            "{what}: {} IOPS, {} MB/s",
            significant(self.iops),
            mb_per_s(self.bytes_per_s)
        );
        let rate = joined(&rate);
        paragraph(&format!("{rate}; {}", latency_text(&self.latency)), 2)
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

fn to_text(result: &Imported) -> String {
    let document = &result.document;
    let mut out = result.file.clone();
    if !document.fio_version.is_empty() {
        out.push_str(&format!(": {}", document.fio_version.escape_debug()));
    }
    out.push_str(&format!(
        ", {}",
        result.run.started.strftime("%Y-%m-%d %H:%M UTC")
    ));
    if document.kind == Kind::Client {
        out.push_str(", run by fio --client on other machines");
    }
    if result.documents > 1 {
        out.push_str(&format!(
            "; the last of {} documents, which holds the totals",
            result.documents
        ));
    }
    let mut out = paragraph(&out, 0);
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
        ));
    }
    match result.run.id.0 {
        0 => {}
        id if !result.new => out.push_str(&format!("run {id} holds it already\n")),
        id => out.push_str(&format!("kept as run {id}\n")),
    }
    out
}

fn group_text(jobs: &[Worker], group: &JudgedJobs, disks: &[DiskUtil]) -> String {
    let Some(first) = jobs.first() else {
        return String::new();
    };
    let mut out = format!("\n{}: {}\n", first.name.escape_debug(), describe(jobs));
    for (what, pick) in [
        ("read", (|job| job.read()) as Pick),
        ("write", |job| job.write()),
    ] {
        if let Some(summary) = Summary::of(jobs, pick) {
            out.push_str(&summary.text(phase(first, what)));
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
        ));
    }
    out.push_str(&paragraph(&load(jobs, disks), 2));
    for doubt in &group.doubts {
        out.push_str(&doubt_text(doubt, 2));
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
