//! `assay report export`: exports a run for other programs, or for another store.

mod csv;
mod tables;
mod views;

use super::runs::store_with_runs;
use crate::context::{self, print};
use crate::global::Global;
use crate::status::Status;
use anyhow::Context as _;
use assay_render::units::format_plural;
use assay_store::Store;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  assay report export 12 -o run12.json           everything, raw; `assay report import` takes it in
  assay report export last --format csv          one line for each sample, for a spreadsheet
  assay report export --format parquet -o DIR    the whole store, for SQL: DIR/figures.parquet, DIR/facts.parquet
  assay report export 12 | ssh box assay report import /dev/stdin

JSON holds the run with its plan, environment and every sample as it was measured. CSV
holds the figures and doubts of each sample in base units, named in the header.
Parquet holds the tables that SQL finds in the store itself: runs, trials, figures, disks, facts and
findings, a file each. The folders samples and verdicts hold figures and verdicts by advice.

Exit status: 0 done, 2 error.";

/// Export a run as JSON or CSV, or the whole store as Parquet
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Number, `last`, `last~N` or the beginning of the uid
    #[arg(value_name = "RUN", required_unless_present = "format")]
    run: Option<String>,
    /// Write this form
    #[arg(long, value_enum, default_value_t = Format::Json, value_name = "FORMAT")]
    format: Format,
    /// Write to FILE; Parquet needs a new folder
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    /// The run and its samples, raw.
    Json,
    /// One line for each sample.
    Csv,
    /// All figures and verdicts of the store.
    Parquet,
}

/// Runs `assay report export`, and returns the exit status.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    let store = store_with_runs(global)?;
    let chosen = || -> anyhow::Result<_> {
        let run = args.run.as_ref();
        let run = run
            .context("which run? `assay report export last`, or a number of `assay report runs`")?;
        let id = store.resolve(run)?;
        Ok((id, store.run(id)?, store.samples(id)?))
    };
    let text = match args.format {
        Format::Parquet => return parquet(args, &store),
        Format::Json => {
            let (id, run, samples) = chosen()?;
            let machine = store.machine_of_run(id)?;
            assay_store::to_json(&run, &samples, machine.as_ref())? + "\n"
        }
        Format::Csv => {
            let (_, run, samples) = chosen()?;
            csv::table(&run, &samples, &assay_judge::judge_run(&run, &samples))
        }
    };
    match &args.output {
        Some(path) => context::write_file(path, &text)?,
        None => print(&text)?,
    }
    Ok(Status::Ok)
}

fn parquet(args: &Args, store: &Store) -> anyhow::Result<Status> {
    assay_columns::check_built()?;
    anyhow::ensure!(
        args.run.is_none(),
        "Parquet is of the whole store; leave the run out, or use --format csv"
    );
    let dir = args.output.as_ref();
    let dir = dir.context("Parquet is a folder with files: name it with -o DIR")?;
    let done = tables::write(store, dir)?;
    print(&format!(
        "{}: {}, {}\n",
        dir.display().to_string().escape_debug(),
        format_plural(done.runs as u64, "run", "runs"),
        format_plural(done.trials as u64, "trial", "trials"),
    ))?;
    Ok(Status::Ok)
}
