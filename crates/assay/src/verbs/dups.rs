//! `assay dups`: finds duplicate files once, explores them, and removes them safely.

mod across;
mod act;
mod age;
mod browse;
mod dirs;
pub(super) mod documents;
mod explore;
mod index_location;
mod progress;
mod samples;
mod scan;
mod scan_arguments;
mod undo;
mod upkeep;

use crate::status::Status;
use clap::Subcommand;
use index_location::Place;
pub(super) use index_location::usual_index;
use std::path::PathBuf;

/// Find duplicate files, and link or remove them safely
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  assay dups scan /srv/data                     scan, remember, summarise
  assay dups scan /srv/data --format json       scan and list every group in one go
  assay dups report                             what the last scans found, without reading again
  assay dups dirs                               folders that are copies of each other
  assay dups act --hardlink /srv/data           what linking would do; --apply does it")]
pub struct Args {
    #[command(subcommand)]
    verb: DupsVerb,
    /// Use this index [default: $XDG_DATA_HOME/assay/dups.db]
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "ASSAY_DUPS_INDEX",
        hide_env_values = true
    )]
    index: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum DupsVerb {
    /// Find duplicates below folders and remember them in the index
    Scan(Box<scan::Scan>),
    /// Scan again the folders scanned before
    Refresh(Box<scan::Refresh>),
    /// List groups of duplicates from the index
    Report(explore::Report),
    /// Show one file of the index and its copies
    File(explore::OneFile),
    /// List the files of a folder with their number of copies
    Ls(explore::Ls),
    /// List files that have no copy
    Uniques(explore::Below),
    /// Find folders that are copies of each other, wholly or in part
    Dirs(dirs::Dirs),
    /// Browse the folders where duplicates take most space
    Browse(browse::Browse),
    /// Read all duplicates again and compare them byte by byte
    Validate(upkeep::Validate),
    /// Merge the indexes of several machines
    Merge(upkeep::Merge),
    /// Export the index as Parquet, without any path
    Export(across::Export),
    /// Write sizes and samples of all files, to compare machines
    Offer(samples::Offer),
    /// Find files that several machines may have, from their offers
    Collide(samples::Collide),
    /// Compare the exports of several machines
    Across(across::AcrossArgs),
    /// Remove folders from the index; no file is touched
    Forget(upkeep::Forget),
    /// Link, move or delete duplicates; without --apply only show the steps
    Act(act::Act),
    /// Undo a run of `act`, or repair one that a crash interrupted
    Undo(undo::Undo),
    /// Draw the space that duplicates take as an HTML page
    Treemap(upkeep::Treemap),
}

/// Runs `assay dups`.
///
/// # Errors
/// On wrong usage, an unusable index, or output that cannot be written.
pub fn run(args: Args) -> anyhow::Result<Status> {
    if let DupsVerb::Export(_) | DupsVerb::Offer(_) | DupsVerb::Collide(_) | DupsVerb::Across(_) =
        &args.verb
    {
        assay_columns::check_built()?;
    }
    let place = Place {
        index: args.index,
        json: args.json,
    };
    match args.verb {
        DupsVerb::Scan(scan) => scan::run(*scan, &place),
        DupsVerb::Refresh(refresh) => scan::refresh(&refresh, &place),
        DupsVerb::Report(report) => explore::report(&report, &place),
        DupsVerb::File(file) => explore::file(&file, &place),
        DupsVerb::Ls(ls) => explore::ls(&ls, &place),
        DupsVerb::Uniques(below) => explore::uniques(&below, &place),
        DupsVerb::Dirs(dirs) => dirs::dirs(&dirs, &place),
        DupsVerb::Browse(browse) => browse::run(&browse, &place),
        DupsVerb::Validate(validate) => upkeep::validate(&validate, &place),
        DupsVerb::Merge(merge) => upkeep::merge(&merge, &place),
        DupsVerb::Export(export) => across::export(&export, &place),
        DupsVerb::Offer(offer) => samples::offer(&offer, &place),
        DupsVerb::Collide(collide) => samples::collide(&collide, &place),
        DupsVerb::Across(args) => across::across(&args, &place),
        DupsVerb::Forget(forget) => upkeep::forget(&forget, &place),
        DupsVerb::Act(act) => act::run(&act, &place),
        DupsVerb::Undo(undo) => undo::run(&undo, &place),
        DupsVerb::Treemap(treemap) => upkeep::treemap(&treemap, &place),
    }
}
