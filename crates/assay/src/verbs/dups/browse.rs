//! `assay dups browse`: shows an interactive tree of the folders where duplicates take most space. Changes nothing.

#[cfg(feature = "browse")]
mod folder_list;
#[cfg(feature = "browse")]
pub use folder_list::run;

use clap::Args;
use std::path::PathBuf;

/// Arguments of `assay dups browse`.
#[derive(Args)]
#[command(after_help = "\
Example:
  assay dups browse /srv          arrows move, open and close; q ends

Folders show what their redundant copies take on disk; a file shows where its other copies are.
Nothing can be changed here.")]
pub struct Browse {
    /// Show only groups with a file at or below PATH [default: all]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
}

/// Returns an error, because this build has no terminal browser.
#[cfg(not(feature = "browse"))]
pub fn run(
    args: &Browse,
    _: &super::index_location::Place,
) -> anyhow::Result<crate::status::Status> {
    let _ = &args.paths;
    Err(crate::features::missing(
        "browse",
        "browser in the terminal",
    ))
}
