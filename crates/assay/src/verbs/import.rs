//! `assay report import`: explains a result of fio or another tool, and stores the result as a run.

mod clean;

use crate::context::{self, columns, print};
use crate::global::Global;
use crate::input;
use crate::status::Status;
use anyhow::Context as _;
use assay_fio::import;
use assay_fio::json::{self, FioDocument, JsonError};
use assay_fio::{terse, text_result};
use assay_imports::ToolResult;
use assay_judge::doubts::{self, other_results::judge_tool_result};
use assay_model::RunId;
use assay_report::import::{
    ImportedResult, ImportedRun, ImportedSource, ImportedTool, import_to_json, import_to_text,
};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  assay report import result.json                  explain it, and keep it as a run
  assay report import run-7.json                   a run that another assay exported
  assay report import result.json --json --no-store
  assay report import - <result.json               from standard input
  assay report import before.json after.json && assay report compare 1 2

Reads results of fio 2.x to 3.4x (JSON, terse and normal output, also with text around it) and the text
of CrystalDiskMark 3 to 8, ATTO, HD Tune, pveperf, dd, sysbench fileio, iozone and bonnie++. A text with
several results becomes several runs. Put the command above a result: it shows what was measured.
Exit status: 0 nothing to doubt, 1 doubts, 2 not a result that assay knows, 3 cannot be read.";

/// Explain a result of fio or another benchmark and store it
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Results of fio or another benchmark, or runs that assay exported
    #[arg(value_name = "RESULT", required = true)]
    files: Vec<PathBuf>,
    /// Print one JSON object with the list `doubts`
    #[arg(long)]
    json: bool,
    /// Explain only, store nothing
    #[arg(long)]
    no_store: bool,
}

/// Runs `assay report import`, and returns the exit status.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    // All files are read before anything is stored, so that an invalid file leaves no partial
    // import.
    let mut sources = Vec::new();
    for path in &args.files {
        sources.extend(read(path)?);
    }
    if !args.no_store {
        let mut store = context::open_store(global)?;
        for source in &mut sources {
            match source {
                ImportedSource::Fio(result) => {
                    let (id, new) = store.import_run(&result.run, &result.samples, None)?;
                    (result.run.id, result.new) = (id, new);
                }
                ImportedSource::Tool(tool) => {
                    let (id, new) = store.import_run(&tool.run, &tool.samples, None)?;
                    (tool.run.id, tool.new) = (id, new);
                }
                ImportedSource::Own(own) => {
                    let machine = own.machine.as_ref();
                    own.run.id = store.import_run(&own.run, &own.samples, machine)?.0;
                }
            }
        }
    }
    let found = sources.iter().any(ImportedSource::is_doubted);
    if args.json {
        print(&format!("{:#}\n", import_to_json(&sources)))?;
    } else {
        let style = context::style(global);
        print(&import_to_text(&sources, style, columns()))?;
    }
    Ok(if found { Status::Findings } else { Status::Ok })
}

/// Maximum size of a file in bytes. fio's JSON+ of a thousand jobs with all histogram bins has some tens of MB. Without
/// a limit, /dev/zero would fill the memory.
const LONGEST: u64 = 512 << 20;

/// Returns whether the file begins like the output of `assay report export`.
fn is_export(bytes: &[u8]) -> bool {
    let text = bytes.trim_ascii_start().strip_prefix(b"{");
    text.is_some_and(|text| text.trim_ascii_start().starts_with(b"\"assay\""))
}

fn own(bytes: Vec<u8>, shown: String) -> anyhow::Result<ImportedRun> {
    let text = String::from_utf8(bytes)
        .ok()
        .with_context(|| format!("cannot read {shown}: it is not UTF-8"))?;
    let export = assay_store::from_json(&text).context(shown.clone())?;
    let machine = export.machine();
    let (mut run, samples) = clean::clean(export.run, export.samples).context(shown.clone())?;
    run.id = RunId(0);
    let judged = assay_judge::judge_run(&run, &samples);
    Ok(ImportedRun {
        file: shown,
        run,
        samples,
        judged,
        machine,
    })
}

fn read(path: &Path) -> anyhow::Result<Vec<ImportedSource>> {
    let shown = path.to_string_lossy().escape_debug().to_string();
    let raw = input::bytes(path, LONGEST, "a result of a benchmark")?;
    // PowerShell's `>` writes UTF-16; the same result in UTF-8 is the same run.
    let bytes = match raw.starts_with(&[0xff, 0xfe]) || raw.starts_with(&[0xfe, 0xff]) {
        true => assay_fio::options::decode(raw)
            .with_context(|| format!("cannot read {shown}: it begins like UTF-16 but is not"))?
            .into_bytes(),
        false => raw,
    };
    if is_export(&bytes) {
        return Ok(vec![ImportedSource::Own(Box::new(own(bytes, shown)?))]);
    }
    let name = path.file_name().unwrap_or(path.as_os_str());
    let about = import::Context {
        file: name.to_string_lossy().escape_debug().to_string(),
        uid: fingerprint(&bytes),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        now: context::now(),
    };
    let documents = match json::parse(&bytes) {
        Err(JsonError::NoDocument { .. }) => {
            let text = String::from_utf8_lossy(&bytes);
            return read_text(&text, &shown, &about);
        }
        parsed => parsed.context(shown.clone())?,
    };
    drop(bytes);
    // Each document of --status-interval contains the totals since the start.
    let count = documents.len();
    let last = documents.into_iter().next_back();
    let document =
        last.with_context(|| format!("cannot import {shown}: it contains no JSON document"))?;
    anyhow::ensure!(
        !document.jobs.is_empty(),
        "cannot import {shown}: it contains no job, as fio was stopped before the first one. Run fio again."
    );
    Ok(vec![import_document(document, count, &shown, &about)])
}

/// Parses a text result that is not JSON. The text may contain several runs; each becomes one source.
fn read_text(
    text: &str,
    shown: &str,
    about: &import::Context,
) -> anyhow::Result<Vec<ImportedSource>> {
    let mut documents = Vec::new();
    if terse::is_terse(text) {
        documents.push(terse::parse_terse(text).with_context(|| shown.to_owned())?);
    }
    if text_result::is_text_result(text) {
        documents.extend(text_result::parse_text(text).with_context(|| shown.to_owned())?);
    }
    let results = assay_imports::parse_results(text).with_context(|| shown.to_owned())?;
    let (results, without): (Vec<_>, Vec<_>) = results
        .into_iter()
        .partition(|result| !result.rows.is_empty());
    if documents.is_empty() && results.is_empty() {
        let seen = without
            .iter()
            .find_map(|result| Some((result, result.others.first()?)));
        let why = match seen {
            Some((result, other)) => format!(
                "it contains no figure of {} about storage: {}",
                result.tool.name(),
                other.escape_debug()
            ),
            None => "it contains no result of fio, CrystalDiskMark, ATTO, HD Tune, pveperf, dd, sysbench, iozone or \
                     bonnie++"
                .to_owned(),
        };
        anyhow::bail!("cannot import {shown}: {why}");
    }
    let several = documents.len() + results.len() > 1;
    let mut number = 0;
    let mut next_part = || {
        number += 1;
        match several {
            true => import::Context {
                uid: fingerprint(format!("{} {number}", about.uid).as_bytes()),
                ..about.clone()
            },
            false => about.clone(),
        }
    };
    let mut sources = Vec::new();
    for document in documents {
        sources.push(import_document(document, 1, shown, &next_part()));
    }
    for result in results {
        sources.push(import_tool_result(result, shown, next_part()));
    }
    Ok(sources)
}

fn import_tool_result(result: ToolResult, shown: &str, about: import::Context) -> ImportedSource {
    let judged = judge_tool_result(&result);
    let remarks = judged
        .doubts
        .iter()
        .map(|doubt| format!("{}: {}", doubt.code, doubt.evidence));
    let context = assay_imports::ResultContext {
        file: about.file,
        uid: about.uid,
        version: about.version,
        now: about.now,
        remarks: remarks.collect(),
    };
    let (run, samples) = assay_imports::to_run(&result, &context);
    ImportedSource::Tool(Box::new(ImportedTool {
        file: shown.to_owned(),
        result,
        judged,
        run,
        samples,
        new: true,
    }))
}

fn import_document(
    document: FioDocument,
    documents: usize,
    shown: &str,
    about: &import::Context,
) -> ImportedSource {
    let (run, samples) = import::run(&document, about);
    ImportedSource::Fio(Box::new(ImportedResult {
        file: shown.to_owned(),
        documents,
        judged: doubts::judge_result(&document),
        document,
        run,
        samples,
        new: true,
    }))
}

/// Returns the run id for an imported file: a hash of 128 bits, the length of other run ids. Importing a file again
/// therefore gives the same run.
fn fingerprint(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..32].to_owned()
}
