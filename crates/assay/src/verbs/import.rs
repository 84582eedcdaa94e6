//! `assay report import`: explains a result of fio, and stores it as a run.

mod clean;

use crate::context::{self, columns, print};
use crate::global::Global;
use crate::input;
use crate::status::Status;
use anyhow::Context as _;
use assay_fio::import;
use assay_fio::json;
use assay_judge::doubts;
use assay_model::RunId;
use assay_report::import::{
    ImportedResult, ImportedRun, ImportedSource, import_to_json, import_to_text,
};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  assay report import result.json                  explain it, and keep it as a run
  assay report import run-7.json                   a run that another assay exported
  assay report import result.json --json --no-store
  assay report import - <result.json               from standard input
  assay report import before.json after.json && assay report compare 1 2

Reads what fio 2.x to 3.4x print with --output-format=json or json+, also with text around it and
with several documents (--status-interval: the last one counts).
Exit status: 0 nothing to doubt, 1 doubts, 2 not a result of fio, 3 cannot be read.";

/// Explain a fio result and store it as a run
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// fio results (JSON or JSON+), or runs that assay exported
    #[arg(value_name = "RESULT", required = true)]
    files: Vec<PathBuf>,
    /// Print one JSON object with the list `doubts`
    #[arg(long)]
    json: bool,
    /// Explain only, store nothing
    #[arg(long)]
    no_store: bool,
}

/// Runs the verb.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    // All files are read before anything is stored, so that an invalid file leaves no partial
    // import.
    let mut sources = args
        .files
        .iter()
        .map(|path| read(path))
        .collect::<anyhow::Result<Vec<_>>>()?;
    if !args.no_store {
        let mut store = context::open_store(global)?;
        for source in &mut sources {
            match source {
                ImportedSource::Fio(result) => {
                    let (id, new) = store.import_run(&result.run, &result.samples, None)?;
                    (result.run.id, result.new) = (id, new);
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

/// Largest file in bytes: a result of a thousand jobs with all bins has some tens of MB. Without a
/// limit, /dev/zero would fill the memory.
const LONGEST: u64 = 512 << 20;

/// Whether the file begins like the output of `assay report export`.
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

fn read(path: &Path) -> anyhow::Result<ImportedSource> {
    let shown = path.to_string_lossy().escape_debug().to_string();
    let raw = input::bytes(path, LONGEST, "a result of fio")?;
    // PowerShell's `>` writes UTF-16; the same result in UTF-8 gives the same run.
    let bytes = match raw.starts_with(&[0xff, 0xfe]) || raw.starts_with(&[0xfe, 0xff]) {
        true => assay_fio::options::decode(raw)
            .with_context(|| format!("cannot read {shown}: it begins like UTF-16 but is not"))?
            .into_bytes(),
        false => raw,
    };
    if is_export(&bytes) {
        return Ok(ImportedSource::Own(Box::new(own(bytes, shown)?)));
    }
    let parsed = json::parse(&bytes);
    let uid = fingerprint(&bytes);
    drop(bytes);
    let mut documents = parsed.context(shown.clone())?;
    let count = documents.len();
    let document = documents
        .pop()
        .with_context(|| format!("cannot import {shown}: it contains no JSON document"))?;
    anyhow::ensure!(
        !document.jobs.is_empty(),
        "cannot import {shown}: it contains no job, as fio was stopped before the first one. Run fio again."
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
    Ok(ImportedSource::Fio(Box::new(ImportedResult {
        file: shown,
        documents: count,
        document,
        judged,
        run,
        samples,
        new: true,
    })))
}

/// Returns the id of a file, so that repeated imports give the same run: 128 bits, as for other
/// runs.
fn fingerprint(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..32].to_owned()
}
