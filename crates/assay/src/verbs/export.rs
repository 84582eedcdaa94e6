//! `assay export`: a run for other programs, or for another store.

mod csv;

use super::runs::store_with_runs;
use crate::context::{self, print};
use crate::global::Global;
use crate::status::Status;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  assay export 12 -o run12.json           everything, raw; `assay import` takes it in
  assay export last --format csv          one line for each sample, for a spreadsheet
  assay export 12 | ssh box assay import /dev/stdin

JSON holds the run with its plan, environment and every sample as it was measured. CSV
holds the figures and doubts of each sample in base units, named in the header.

Exit status: 0 done, 2 error.";

/// Write a run as JSON (complete) or CSV (figures)
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Number, `last`, `last~N`, or the first characters of the uid
    #[arg(value_name = "RUN")]
    run: String,
    /// json or csv
    #[arg(long, value_enum, default_value_t = Format::Json, value_name = "FORMAT")]
    format: Format,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    /// The run and its samples, raw.
    Json,
    /// One line for each sample.
    Csv,
}

/// Runs the verb.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    let store = store_with_runs(global)?;
    let id = store.resolve(&args.run)?;
    let (run, samples) = (store.run(id)?, store.samples(id)?);
    let text = match args.format {
        Format::Json => {
            let machine = store.machine_of_run(id)?;
            assay_store::to_json(&run, &samples, machine.as_ref())? + "\n"
        }
        Format::Csv => csv::table(&run, &samples, &assay_judge::judge(&run, &samples)),
    };
    match &args.output {
        Some(path) => context::write_file(path, &text)?,
        None => print(&text)?,
    }
    Ok(Status::Ok)
}
