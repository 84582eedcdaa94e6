//! `assay stack`: the layers under a target, and what each of them costs.

mod layers;
mod measure;

use crate::elsewhere::Elsewhere;
use crate::global::Global;
use crate::shape::Shape;
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
    elsewhere: Elsewhere,
    #[command(flatten)]
    measure: measure::Measure,
    #[command(flatten)]
    shape: Shape,
    /// No progress on standard error
    #[arg(long, short)]
    quiet: bool,
}

/// Runs the verb.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    let target = args.target.as_deref();
    if args.elsewhere.is_meant() && measure::is_asked(&args.measure) {
        anyhow::bail!("assay measures the machine it runs on: run `assay stack --measure` there");
    }
    match measure::run(&args.measure, target, &args.shape, args.quiet, global)? {
        Some(status) => Ok(status),
        None => layers::run(target, &args.elsewhere, &args.shape, global),
    }
}
