//! `assay stack`: the layers under a target, and what each of them costs.

mod layers;

use crate::cli::{Global, Status};
use std::path::PathBuf;

/// The layers under a path, a device or a virtual machine
#[derive(clap::Args)]
#[command(after_help = layers::EXAMPLES)]
pub struct Args {
    /// A path, a block device, an image, or a virtual machine: its libvirt name, its number on
    /// Proxmox, its process number [default: the current directory]
    #[arg(value_name = "TARGET")]
    target: Option<PathBuf>,
    /// Print one JSON document on standard output
    #[arg(long)]
    json: bool,
    /// Print Markdown on standard output
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Write an HTML report
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Runs the verb.
pub fn run(args: &Args, global: &Global) -> anyhow::Result<Status> {
    let form = layers::Form {
        json: args.json,
        markdown: args.markdown,
        html: args.html.as_deref(),
    };
    layers::run(args.target.as_deref(), form, global)
}
