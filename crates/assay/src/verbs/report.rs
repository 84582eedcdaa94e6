//! `assay report`: reports a run as HTML, Markdown, JSON or text.

use crate::context::{self, print};
use crate::global::Global;
use crate::pages;
use crate::status::Status;
use anyhow::bail;
use assay_model::result::Judged;
use assay_model::run::Run;
use assay_model::{RunId, Sample};
use assay_store::Store;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  assay report --html last.html             the newest run, with charts
  assay report 3 --against 2 --html r.html  run 3 with its ratios to run 2
  assay report 3 -o run3.md                 Markdown, by the name of the file
  assay report 3 --format json | jq '.results[].metrics.p99'
  assay report 3 --html r.html --omit kernel.cmdline
                                            without what others need not know
  assay report                              the newest run as text

RUN is a number from `assay report runs`, `last`, `last~1`, or the start of a run's uid.
Exit status: 0 done, 2 error (no such run, file not written).";

/// Report past runs: list, show, compare, export, import
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Run to report
    #[arg(value_name = "RUN", default_value = "last")]
    run: String,
    /// Compare with this earlier run (HTML and text)
    #[arg(long, value_name = "RUN")]
    against: Option<String>,
    /// Write an HTML page to this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["output", "format", "json"])]
    html: Option<PathBuf>,
    /// Omit facts with this key prefix, such as kernel.cmdline (repeatable)
    #[arg(long, value_name = "KEY")]
    omit: Vec<String>,
    /// Write the report to FILE instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print in this format [default: by the ending of FILE, else text]
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

/// Format of the report.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// One self-contained page.
    Html,
    /// Markdown.
    Md,
    /// One JSON document.
    Json,
    /// The text that terminals show.
    Text,
}

/// A run, evaluated with the rules of this version.
struct Loaded {
    run: Run,
    samples: Vec<Sample>,
    judged: Judged,
}

/// Runs `assay report`, and returns the exit status.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    let (file, format) = destination(args)?;
    if args.against.is_some() && matches!(format, Format::Md | Format::Json) {
        bail!(
            "--against works with HTML and text only: `assay report compare A B --json` prints the figures"
        );
    }
    let store = super::runs::store_with_runs(global)?;
    let mut this = load(&store, store.resolve(&args.run)?)?;
    omit(&mut this.run, &args.omit)?;
    let other = match &args.against {
        Some(name) => Some(load(&store, store.resolve(name)?)?),
        None => None,
    };
    let mut comparison = other.as_ref().map(|other| {
        assay_judge::compare_runs((&other.run, &other.samples), (&this.run, &this.samples))
    });
    if let Some(comparison) = &mut comparison {
        super::compare::name_machines(&store, comparison)?;
    }
    let against = other.as_ref().zip(comparison.as_ref());
    let text = match format {
        Format::Html => {
            let against =
                against.map(|(other, comparison)| (&other.run, &other.judged, comparison));
            pages::html(&this.run, &this.judged, &this.samples, against)
        }
        Format::Md => assay_report::markdown::render_run_markdown(&this.run, &this.judged),
        Format::Json => {
            let document = assay_report::json::run_to_json(&this.run, &this.judged, &this.samples);
            format!("{document:#}\n")
        }
        Format::Text => {
            let mut style = context::style(global);
            style.color &= file.is_none();
            let mut text = match pages::web(&this.run, &this.samples) {
                Some(stored) => assay_report::web::terminal(&stored.web(), style),
                None => assay_report::terminal::render_run(&this.run, &this.judged, style),
            };
            if let Some((_, comparison)) = against {
                text.push('\n');
                text.push_str(&assay_report::terminal::render_comparison(
                    comparison, style,
                ));
            }
            text
        }
    };
    match file {
        Some(path) => {
            context::write_report(path, &text)?;
        }
        None => print(&text)?,
    }
    Ok(Status::Ok)
}

/// Removes facts from a report, for example before the user shares it. Adds a remark that facts were omitted.
fn omit(run: &mut Run, keys: &[String]) -> anyhow::Result<()> {
    for key in keys {
        let before = run.facts.map.len();
        run.facts
            .map
            .retain(|name, _| !name.starts_with(key.as_str()));
        if run.facts.map.len() == before {
            bail!("--omit {key}: no fact of this run begins so");
        }
    }
    if !keys.is_empty() {
        let remark = format!(
            "left out of this report on request: facts {}",
            keys.join(", ")
        );
        run.remarks.push(remark);
    }
    Ok(())
}

/// Returns the destination file, and the format from `--format` or from the file name ending.
fn destination(args: &Args) -> anyhow::Result<(Option<&Path>, Format)> {
    if let Some(path) = &args.html {
        return Ok((Some(path), Format::Html));
    }
    let path = args.output.as_deref();
    if args.json {
        return Ok((path, Format::Json));
    }
    if let Some(format) = args.format {
        return Ok((path, format));
    }
    let Some(path) = path else {
        return Ok((None, Format::Text));
    };
    let ending = path
        .extension()
        .map(|ending| ending.to_string_lossy().to_lowercase());
    let format = match ending.as_deref() {
        Some("html" | "htm") => Format::Html,
        Some("md" | "markdown") => Format::Md,
        Some("json") => Format::Json,
        Some("txt") => Format::Text,
        _ => bail!(
            "cannot choose a form for {}: use a name that ends in .html, .md, .json or .txt, or --format",
            path.display()
        ),
    };
    Ok((Some(path), format))
}

fn load(store: &Store, id: RunId) -> anyhow::Result<Loaded> {
    let (run, samples) = (store.run(id)?, store.samples(id)?);
    let judged = assay_judge::judge_run(&run, &samples);
    Ok(Loaded {
        run,
        samples,
        judged,
    })
}
