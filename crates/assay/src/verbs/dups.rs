//! `assay dups`: duplicate files, found once, explored at leisure, removed safely.

mod act;
mod age;
#[cfg(feature = "browse")]
mod browse;
mod dirs;
mod explore;
mod how;
mod progress;
mod scan;
mod upkeep;

use crate::cli::Status;
use anyhow::Context as _;
use assay_dups::Index;
use clap::{Subcommand, ValueEnum};
use std::path::PathBuf;

/// Find duplicate files, remember them, explore and remove them safely
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
    /// The index [default: $XDG_DATA_HOME/assay/dups.db]
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
    /// Find duplicates below folders and remember them
    Scan(Box<scan::Scan>),
    /// Scan again what was scanned before
    Refresh(Box<scan::Refresh>),
    /// Groups of duplicates, from the index
    Report(explore::Report),
    /// What is known of one file and where its copies are
    File(explore::OneFile),
    /// The files of a folder and how many copies each has
    Ls(explore::Ls),
    /// Files that have no copy
    Uniques(explore::Below),
    /// Folders that are copies of each other, wholly or in part
    Dirs(dirs::Dirs),
    /// Walk through the folders with most to gain in the terminal
    #[cfg(feature = "browse")]
    Browse(browse::Browse),
    /// Read all duplicates again and compare them byte by byte
    Validate(upkeep::Validate),
    /// Bring the indexes of several machines together
    Merge(upkeep::Merge),
    /// Remove folders from the index; no file is touched
    Forget(upkeep::Forget),
    /// Replace, move or delete duplicates; without --apply it only says what it would do
    Act(act::Act),
    /// Take back what `act` did, or what a crash left half done
    Undo(act::Undo),
    /// Draw the bytes to gain as a self-contained HTML page
    Treemap(upkeep::Treemap),
}

/// Formats of a list of groups.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// A summary for people.
    Text,
    /// A list of groups, each with `size`, `hash` and `files`.
    Json,
    /// What `--json` prints: one object with `groups`, counts and what was left out.
    #[value(skip)]
    Document,
    /// `size,hash,count,files…`, as fclones writes it.
    Csv,
    /// Paths, an empty line after each group.
    Fdupes,
    /// The default report of fclones, which `fclones link` and others read.
    Fclones,
    /// Paths ended by NUL, a second NUL after each group.
    Nul,
}

impl Format {
    fn machine(self) -> Option<assay_dups::format::Format> {
        use assay_dups::format::Format as F;
        match self {
            Self::Text => None,
            Self::Json => Some(F::Json),
            Self::Document => Some(F::Document),
            Self::Csv => Some(F::Csv),
            Self::Fdupes => Some(F::Fdupes),
            Self::Fclones => Some(F::Fclones),
            Self::Nul => Some(F::Nul),
        }
    }
}

/// Runs `assay dups`.
///
/// # Errors
/// On wrong usage, an unusable index, or output that cannot be written.
pub fn run(args: Args) -> anyhow::Result<Status> {
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
        #[cfg(feature = "browse")]
        DupsVerb::Browse(browse) => browse::run(&browse, &place),
        DupsVerb::Validate(validate) => upkeep::validate(&validate, &place),
        DupsVerb::Merge(merge) => upkeep::merge(&merge, &place),
        DupsVerb::Forget(forget) => upkeep::forget(&forget, &place),
        DupsVerb::Act(act) => act::run(&act, &place),
        DupsVerb::Undo(undo) => act::undo(&undo, &place),
        DupsVerb::Treemap(treemap) => upkeep::treemap(&treemap, &place),
    }
}

/// What all verbs below `dups` share.
struct Place {
    index: Option<PathBuf>,
    json: bool,
}

impl Place {
    /// The index file: named, or the user's own.
    fn path(&self) -> anyhow::Result<PathBuf> {
        if let Some(named) = &self.index {
            return Ok(named.clone());
        }
        let data = std::env::var_os("XDG_DATA_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .or_else(|| {
                let home = std::env::var_os("HOME").filter(|home| !home.is_empty())?;
                Some(PathBuf::from(home).join(".local/share"))
            })
            .context("neither HOME nor XDG_DATA_HOME is set; name the index with --index FILE")?;
        Ok(data.join("assay/dups.db"))
    }

    fn read(&self) -> anyhow::Result<Index> {
        Ok(Index::read(&self.path()?)?)
    }
}

/// Absolute paths of what the user named.
fn absolute(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    paths
        .iter()
        .map(|path| Ok(assay_dups::absolute(path)?))
        .collect()
}
