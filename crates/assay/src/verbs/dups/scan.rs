//! `assay dups scan` and `refresh`.

use super::{Format, Place, human, progress};
use crate::cli::Status;
use assay_dups::filter::{parse_size, parse_user};
use assay_dups::hash::Kind;
use assay_dups::{Filter, Index, Reason, ScanOptions, WalkOptions, format, name, scan};
use clap::Args;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// Arguments of `assay dups scan`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  assay dups scan /srv/data
  assay dups scan /home /srv --min-size 1M -g '!*.iso' --gitignore
  assay dups scan . --format fdupes --no-index | less
  assay dups scan /srv/data --json | jq '.summary'

Bytes are compared with bytes; where many files are alike or the index knows one side, the hash of
the whole content decides, which --hash chooses. Files that the index remembers are not opened
while device, inode, size, mtime and ctime are the same.")]
pub struct Scan {
    /// Folders to scan
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// How to print the groups [default: text]
    #[arg(long, short, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    /// Neither read nor write an index
    #[arg(long, conflicts_with = "rehash")]
    no_index: bool,
    /// What names a content [default: the index's, else xxh3-128]
    #[arg(long, value_enum, value_name = "HASH")]
    hash: Option<HashArg>,
    #[command(flatten)]
    how: HowArgs,
}

/// How to scan, for the first time or again.
#[derive(Args)]
struct HowArgs {
    /// Trust nothing that the index remembers
    #[arg(long)]
    rehash: bool,
    /// Compare every group byte by byte once more at the end
    #[arg(long)]
    paranoid: bool,
    /// Hash every file, so that indexes of several machines can be merged
    #[arg(long)]
    hash_all: bool,
    #[command(flatten)]
    filter: FilterArgs,
    /// Enter folders on other file systems too (btrfs subvolumes are such)
    #[arg(long)]
    other_filesystems: bool,
    /// Enter .zfs, .snapshot and .snapshots too
    #[arg(long)]
    snapshots: bool,
    /// Threads [default: as many as pay]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
}

impl HowArgs {
    fn options(&self, hash: Option<Kind>) -> ScanOptions {
        ScanOptions {
            walk: WalkOptions {
                filter: self.filter.filter(),
                other_filesystems: self.other_filesystems,
                snapshots: self.snapshots,
            },
            paranoid: self.paranoid,
            hash_all: self.hash_all,
            fresh: self.rehash,
            hash,
            checkpoint: None,
        }
    }
}

#[derive(clap::ValueEnum, Clone, Copy)]
enum HashArg {
    /// Cannot be deceived on purpose.
    Blake3,
    /// Less work for the processor.
    #[value(name = "xxh3-128", alias = "xxh3")]
    Xxh3,
}

impl HashArg {
    fn kind(self) -> Kind {
        match self {
            Self::Blake3 => Kind::Blake3,
            Self::Xxh3 => Kind::Xxh3,
        }
    }
}

#[derive(Args)]
struct FilterArgs {
    /// Least size, e.g. 4k
    #[arg(long, short = 's', value_name = "SIZE", value_parser = parse_size)]
    min_size: Option<u64>,
    /// Largest size, e.g. 2G
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_size: Option<u64>,
    /// Only what matches; with ! in front, all but what matches; the last match decides
    #[arg(long, short, value_name = "GLOB")]
    glob: Vec<String>,
    /// Respect .gitignore and .ignore files
    #[arg(long)]
    gitignore: bool,
    /// Changed within this time, e.g. 7d
    #[arg(long, value_name = "AGE", value_parser = human::parse_age)]
    newer_than: Option<i64>,
    /// Not changed within this time, e.g. 1y
    #[arg(long, value_name = "AGE", value_parser = human::parse_age)]
    older_than: Option<i64>,
    /// Owned by this user (name or number)
    #[arg(long, value_name = "USER", value_parser = parse_user)]
    owner: Option<u32>,
}

impl FilterArgs {
    fn filter(&self) -> Filter {
        let now = assay_dups::now();
        Filter {
            min_size: self.min_size.unwrap_or(1).max(1),
            max_size: self.max_size.unwrap_or(u64::MAX),
            globs: self.glob.clone(),
            ignore_files: self.gitignore,
            newer: self.newer_than.map(|age| now - age),
            older: self.older_than.map(|age| now - age),
            owner: self.owner,
        }
    }
}

/// Arguments of `assay dups refresh`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  assay dups refresh                          every folder that was scanned before
  assay dups refresh --other-filesystems      if that is how they were scanned

All are scanned together, so that what was scanned apart is compared as well. Options of earlier
scans are not remembered: what a filter leaves out, or lies on other file systems, is forgotten.")]
pub struct Refresh {
    /// Only these of the folders scanned before
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    how: HowArgs,
}

/// Runs `assay dups scan`.
pub fn run(args: Scan, place: &Place) -> anyhow::Result<Status> {
    let roots = super::absolute(&args.paths)?;
    let format = args.format.unwrap_or(if place.json {
        Format::Document
    } else {
        Format::Text
    });
    let options = args.how.options(args.hash.map(HashArg::kind));
    let index = match args.no_index {
        true => None,
        false => Some(Index::open(&place.path()?)?),
    };
    go(
        &roots,
        &options,
        index,
        format,
        args.how.threads.map(usize::from),
    )
}

/// Runs `assay dups refresh`.
pub fn refresh(args: &Refresh, place: &Place) -> anyhow::Result<Status> {
    let index = Index::open(&place.path()?)?;
    let mut known: Vec<PathBuf> = index
        .roots()?
        .into_iter()
        .filter(|root| root.machine.is_empty())
        .map(|root| root.path)
        .collect();
    if !args.paths.is_empty() {
        let wanted = super::absolute(&args.paths)?;
        if let Some(strange) = wanted.iter().find(|path| !known.contains(path)) {
            anyhow::bail!(
                "{} was not scanned before; `assay dups scan` it",
                name::readable(std::os::unix::ffi::OsStrExt::as_bytes(strange.as_os_str()))
            );
        }
        known = wanted;
    }
    anyhow::ensure!(
        !known.is_empty(),
        "nothing was scanned yet; `assay dups scan PATH` does"
    );
    let format = if place.json {
        Format::Document
    } else {
        Format::Text
    };
    go(
        &known,
        &args.how.options(None),
        Some(index),
        format,
        args.how.threads.map(usize::from),
    )
}

fn go(
    roots: &[PathBuf],
    options: &ScanOptions,
    mut index: Option<Index>,
    format: Format,
    threads: Option<usize>,
) -> anyhow::Result<Status> {
    let found = progress::watch(threads, |control| {
        scan(roots, options, index.as_mut(), control)
    })??;
    let stdout = std::io::stdout().lock();
    let mut out = BufWriter::with_capacity(256 * 1024, stdout);
    match format.machine() {
        Some(format::Format::Document) => {
            let around = format::Around {
                skipped: &found.skipped,
                cost: found.cost,
                interrupted: found.interrupted,
            };
            format::document(&mut out, &found.files, &found.groups, Some(&around))?;
        }
        Some(other) => format::plain(&mut out, other, &found.files, &found.groups)?,
        None => summary(&mut out, &found, index.is_some())?,
    }
    out.flush()?;
    notes(&found, format)?;
    let unreadable =
        found.skipped.count(Reason::Unreadable) + found.skipped.count(Reason::UnreadableFolder);
    if let Some(error) = &found.index_error {
        eprintln!("assay: the result above is whole, but it could not be remembered: {error}");
        return Ok(Status::Error);
    }
    Ok(match (found.interrupted, unreadable) {
        (true, _) => Status::Interrupted,
        (false, 0) => Status::Ok,
        _ => Status::Unreadable,
    })
}

/// What could not be looked at, on stderr.
fn notes(found: &assay_dups::Scan, format: Format) -> anyhow::Result<()> {
    let mut err = BufWriter::new(std::io::stderr().lock());
    for skip in &found.skipped.details {
        writeln!(
            err,
            "assay: left out: {}: {}",
            name::readable(&skip.path),
            skip.detail
        )?;
    }
    if found.interrupted {
        writeln!(
            err,
            "assay: interrupted; what was compared so far is right and remembered, the rest is missing"
        )?;
    }
    if format != Format::Text && format != Format::Document {
        left_out(&mut err, &found.skipped)?;
    }
    err.flush()?;
    Ok(())
}

/// One line of counts.
fn left_out(to: &mut dyn Write, skipped: &assay_dups::Skipped) -> std::io::Result<()> {
    let counts: Vec<String> = skipped
        .counts()
        .map(|(reason, count)| format!("{} {}", reason.words(), human::count(count)))
        .collect();
    match counts.is_empty() {
        true => Ok(()),
        false => writeln!(to, "left out: {}", counts.join(", ")),
    }
}

/// Most groups that the summary shows.
const SHOWN: usize = 10;

fn summary(out: &mut dyn Write, found: &assay_dups::Scan, indexed: bool) -> anyhow::Result<()> {
    let bytes: u64 = found.files.files.iter().map(|file| file.id.size).sum();
    writeln!(
        out,
        "{}, {}",
        human::plural(found.files.files.len() as u64, "file", "files"),
        human::bytes(bytes)
    )?;
    super::explore::groups_text(out, &found.files, &found.groups, SHOWN)?;
    left_out(out, &found.skipped)?;
    if indexed && !found.groups.is_empty() {
        writeln!(
            out,
            "\nNext: `assay dups report` lists all groups, `assay dups dirs` compares folders,\n\
             `assay dups act --hardlink PATH` shows what linking would do."
        )?;
    }
    Ok(())
}
