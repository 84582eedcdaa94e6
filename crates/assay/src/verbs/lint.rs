//! `assay lint`: what a fio command or job file would not measure.

use crate::cli::{Status, Unreadable};
use crate::context::paragraph;
use crate::context::print;
use anyhow::{Context as _, bail};
use assay_fio::options::{self, Invocation, JobOptions};
use assay_judge::doubts;
use assay_model::doubt::Severity;
use assay_model::{Doubt, SCHEMA_VERSION};
use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::path::Path;

const EXAMPLES: &str = "\
Examples:
  assay lint 'fio --name=t --rw=randread --bs=4k --iodepth=32 --sync=1'
  assay lint fio --name=t --rw=randread --bs=4k --iodepth=32
  assay lint bench.fio                      a job file, or a script that calls fio
  xclip -o | assay lint -                   a command copied from a page
  assay lint 'fio --name=t --rw=write' --json

Nothing runs. A command that measures what it says passes without a word.
Exit status: 0 nothing to doubt, 1 doubts, 2 cannot be understood, 3 cannot be read.";

/// Say what a fio command or job file would not measure
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Print one JSON object with the list `doubts`
    #[arg(long)]
    json: bool,
    /// A command of fio in quotes or as it is, a job file, or - for standard input
    #[arg(
        value_name = "COMMAND|FILE|-",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    words: Vec<OsString>,
}

/// Largest text that is read; job files are much smaller.
const LARGEST: u64 = 16 << 20;

/// Runs the verb.
pub fn run(args: &Args) -> anyhow::Result<Status> {
    // fio has no option of this name, so it is ours wherever it stands.
    let own = OsStr::new("--json");
    let json = args.json || args.words.iter().any(|word| word == own);
    let words: Vec<&OsStr> = args
        .words
        .iter()
        .map(OsString::as_os_str)
        .filter(|word| *word != own)
        .collect();
    let mut judged: Vec<(JobOptions, Vec<Doubt>)> = Vec::new();
    for call in calls(&words)? {
        for note in &call.mended {
            eprintln!("note: {note}");
        }
        let mut jobs = call.jobs;
        for file in &call.job_files {
            for inner in from_file(OsStr::new(file))? {
                jobs.extend(inner.jobs);
            }
        }
        for job in jobs {
            let doubts = doubts::judge_options(&job);
            judged.push((job, doubts));
        }
    }
    let found = judged.iter().any(|(_, doubts)| !doubts.is_empty());
    if json {
        print(&format!("{:#}\n", to_json(&judged)))?;
    } else {
        print(&to_text(&judged))?;
    }
    Ok(if found { Status::Findings } else { Status::Ok })
}

fn calls(words: &[&OsStr]) -> anyhow::Result<Vec<Invocation>> {
    let utf8 = |word: &OsStr| {
        let text = word.to_str().map(str::to_owned);
        text.with_context(|| format!("`{}` is not UTF-8", word.to_string_lossy().escape_debug()))
    };
    match words {
        [] => bail!("nothing to read: give a command of fio, a job file, or - for standard input"),
        [one] if *one == "-" => {
            let mut bytes = Vec::new();
            std::io::stdin()
                .lock()
                .take(LARGEST)
                .read_to_end(&mut bytes)
                .map_err(|error| Unreadable(format!("standard input: {error}")))?;
            from_text(bytes, "standard input")
        }
        [first, rest @ ..] => {
            let text = utf8(first)?;
            let split = !rest.is_empty()
                && !text.contains(char::is_whitespace)
                && (rest
                    .iter()
                    .any(|word| utf8(word).is_ok_and(|word| word.starts_with('-')))
                    || text == "fio");
            if split {
                let words: Vec<String> = words
                    .iter()
                    .map(|word| utf8(word))
                    .collect::<anyhow::Result<_>>()?;
                return Ok(vec![options::command_words(&words)?]);
            }
            let mut found = Vec::new();
            for word in words {
                let text = utf8(word)?;
                let a_path = Path::new(word).exists() || !is_command(&text);
                found.extend(match a_path {
                    true => from_file(word)?,
                    false => options::command_line(&text)?,
                });
            }
            Ok(found)
        }
    }
}

/// Whether a single word on the command line is meant as a command rather than a path.
fn is_command(text: &str) -> bool {
    text.trim().is_empty()
        || text.contains(char::is_whitespace)
        || text.starts_with(['-', '–', '—'])
        || text == "fio"
}

#[allow(
    clippy::disallowed_methods,
    reason = "the user named this file on the command line"
)]
fn from_file(path: &OsStr) -> anyhow::Result<Vec<Invocation>> {
    let shown = path.to_string_lossy().escape_debug().to_string();
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(LARGEST).read_to_end(&mut bytes))
        .map_err(|error| {
            Unreadable(format!(
                "{shown}: {error}; expected a job file, or a command in quotes"
            ))
        })?;
    from_text(bytes, &shown)
}

fn from_text(bytes: Vec<u8>, name: &str) -> anyhow::Result<Vec<Invocation>> {
    if bytes.len() as u64 >= LARGEST {
        bail!(
            "{name}: larger than {} MiB: this is no job file",
            LARGEST >> 20
        );
    }
    let text = String::from_utf8(bytes)
        .ok()
        .with_context(|| format!("{name}: not UTF-8 text; expected a job file or a command"))?;
    Ok(options::read_text(&text, name)?)
}

fn to_json(judged: &[(JobOptions, Vec<Doubt>)]) -> serde_json::Value {
    let doubts: Vec<_> = judged
        .iter()
        .flat_map(|(job, doubts)| doubts.iter().map(|doubt| doubt_json(&job.name, doubt)))
        .collect();
    let jobs: Vec<_> = judged
        .iter()
        .map(|(job, doubts)| {
            let codes: Vec<&str> = doubts.iter().map(|doubt| doubt.code.as_str()).collect();
            serde_json::json!({ "name": job.name, "doubts": codes })
        })
        .collect();
    serde_json::json!({ "schema": SCHEMA_VERSION, "doubts": doubts, "jobs": jobs })
}

/// A doubt with the job it is about.
pub fn doubt_json(job: &str, doubt: &Doubt) -> serde_json::Value {
    serde_json::json!({
        "code": doubt.code,
        "severity": doubt.severity,
        "evidence": doubt.evidence,
        "remedy": doubt.remedy,
        "job": job,
    })
}

fn to_text(judged: &[(JobOptions, Vec<Doubt>)]) -> String {
    let mut out = String::new();
    for (job, doubts) in judged {
        if doubts.is_empty() {
            continue;
        }
        if judged.len() > 1 {
            out.push_str(&format!("job {}\n", job.name.escape_debug()));
        }
        for doubt in doubts {
            out.push_str(&doubt_text(doubt, 0));
        }
    }
    out
}

/// A doubt for people: code and severity, evidence, remedy, indented.
pub fn doubt_text(doubt: &Doubt, indent: usize) -> String {
    let severity = match doubt.severity {
        Severity::Suspect => "suspect",
        Severity::Void => "void",
    };
    let mut out = paragraph(&format!("{} ({severity})", doubt.code), indent);
    out.push_str(&paragraph(&doubt.evidence, indent + 2));
    out.push_str(&paragraph(&format!("-> {}", doubt.remedy), indent + 2));
    out
}
