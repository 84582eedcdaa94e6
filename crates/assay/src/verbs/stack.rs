//! `assay stack`: the layers under a target, and what each of them costs.

mod measure;

use crate::cli::{Global, Status};
use std::path::PathBuf;

/// What each layer of a stack costs
#[derive(clap::Args)]
#[command(after_help = measure::EXAMPLES)]
pub struct Args {
    /// A directory on the storage to measure
    #[arg(value_name = "TARGET")]
    target: Option<PathBuf>,
    #[command(flatten)]
    measure: measure::Measure,
    /// Print one JSON document on standard output
    #[arg(long)]
    json: bool,
    /// Print Markdown on standard output
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Write an HTML report
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// No progress on standard error
    #[arg(long, short)]
    quiet: bool,
}

/// Runs the verb.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    let form = measure::Form {
        json: args.json,
        markdown: args.markdown,
        html: args.html.as_deref(),
        quiet: args.quiet,
    };
    if let Some(status) = measure::run(&args.measure, args.target.as_deref(), form, global)? {
        return Ok(status);
    }
    anyhow::bail!("say what to do with it: `assay stack TARGET --measure`")
}
