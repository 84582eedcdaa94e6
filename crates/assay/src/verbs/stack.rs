//! `assay stack`: the layers under a target, and what each of them costs.

mod layers;
mod measure;

use crate::global::Global;
use crate::status::Status;
use std::path::PathBuf;

/// The layers under a path, a device or a virtual machine, and what each of them costs
#[derive(clap::Args)]
#[command(after_help = format!("{}\n\n{}", layers::EXAMPLES, measure::EXAMPLES))]
pub struct Args {
    /// A path, a block device, an image, or a virtual machine: its libvirt name, its number on
    /// Proxmox, its process number [default: the current directory]; with --measure a directory
    /// on the storage to measure
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
    let (target, html) = (args.target.as_deref(), args.html.as_deref());
    let form = measure::Form {
        json: args.json,
        markdown: args.markdown,
        html,
        quiet: args.quiet,
    };
    if let Some(status) = measure::run(&args.measure, target, form, global)? {
        return Ok(status);
    }
    let form = layers::Form {
        json: args.json,
        markdown: args.markdown,
        html,
    };
    layers::run(target, form, global)
}
