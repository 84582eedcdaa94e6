//! `assay dups scan` and `assay dups refresh`: scan folders for the first time, or again.

use super::index_location::{Format, Place, absolute};
use super::scan_arguments::{HashArg, HowArgs, flags};
use super::{progress, samples};
use crate::context::report_writer;
use crate::status::Status;
use assay_dups::earlier_roots::Presence;
use assay_dups::index::Root;
use assay_dups::{Index, Reason, ScanOptions, format, name, scan};
use assay_model::size::Convention::Binary;
use assay_render::output_escaping::EscapingJsonWriter;
use assay_render::units::{format_grouped, format_plural};
use clap::Args;
use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

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
    /// Print the groups in this form [default: text]
    #[arg(long, short, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    /// Neither read nor write an index
    #[arg(long, conflicts_with = "rehash")]
    no_index: bool,
    /// Hash contents with this function [default: the index's, else xxh3-128]
    #[arg(long, value_enum, value_name = "HASH")]
    hash: Option<HashArg>,
    #[command(flatten)]
    how: HowArgs,
}

/// Arguments of `assay dups refresh`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  assay dups refresh                     every folder that was scanned before, as it was
  assay dups refresh /srv --min-size 1M  this one, and from now on only large files

All are scanned together, so that what was scanned apart is compared as well. Filters, other file
systems and snapshots are as in the last scan of each folder, unless any of that is given here, which
then holds for all. Where one was scanned with --hash-all, all are.")]
pub struct Refresh {
    /// Scan only these previously scanned folders
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    how: HowArgs,
}

/// Runs `assay dups scan`.
pub fn run(args: Scan, place: &Place) -> anyhow::Result<Status> {
    let roots = absolute(&args.paths)?;
    let format = args.format.unwrap_or(if place.json {
        Format::Document
    } else {
        Format::Text
    });
    let mut options = args.how.options(args.hash.map(HashArg::kind));
    options.wanted = samples::wanted(args.how.wanted.as_deref())?;
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
    let mut known: Vec<Root> = index
        .roots()?
        .into_iter()
        .filter(|root| root.machine.is_empty())
        .collect();
    if !args.paths.is_empty() {
        let wanted = absolute(&args.paths)?;
        let is_known = |path: &&PathBuf| known.iter().any(|root| root.path == **path);
        if let Some(strange) = wanted.iter().find(|path| !is_known(path)) {
            anyhow::bail!(
                "{} was not scanned before: run `assay dups scan` on it",
                shown(strange)
            );
        }
        known.retain(|root| wanted.contains(&root.path));
    }
    anyhow::ensure!(
        !known.is_empty(),
        "nothing was scanned yet: run `assay dups scan PATH` first"
    );
    let all = known.len();
    let known = present(&index, known)?;
    anyhow::ensure!(
        !known.is_empty(),
        "cannot refresh: none of the folders scanned before exists any more"
    );
    let whole = known.len() == all;
    let format = if place.json {
        Format::Document
    } else {
        Format::Text
    };
    let mut options = args.how.options(None);
    options.as_before = args.how.is_silent();
    options.wanted = samples::wanted(args.how.wanted.as_deref())?;
    for root in known.iter().filter(|_| options.as_before) {
        if let Some(flags) = flags(&root.manner) {
            eprintln!("{}: as before, with {flags}", shown(&root.path));
        }
    }
    let roots: Vec<PathBuf> = known.into_iter().map(|root| root.path).collect();
    let status = go(
        &roots,
        &options,
        Some(index),
        format,
        args.how.threads.map(usize::from),
    )?;
    Ok(match status {
        Status::Ok if !whole => Status::Unreadable,
        status => status,
    })
}

fn shown(path: &Path) -> String {
    name::format_readable(path.as_os_str().as_bytes())
}

/// Returns the root folders that still exist on the same file system. Prints a line for each other root.
fn present(index: &Index, roots: Vec<Root>) -> anyhow::Result<Vec<Root>> {
    let mut present = Vec::new();
    for root in roots {
        let why = match index.presence(&root)? {
            Presence::There => {
                present.push(root);
                continue;
            }
            Presence::Gone(why) => why,
            Presence::Elsewhere => {
                "on another file system than its files were; is theirs mounted?".into()
            }
        };
        eprintln!(
            "assay: left out: {}: {why}; what is remembered of it stays \
             (`assay dups scan` takes it as it is now, `assay dups forget` drops it)",
            shown(&root.path)
        );
    }
    Ok(present)
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
    let mut out = report_writer()?;
    match format.machine() {
        Some(format::GroupFormat::Document) => {
            let around = format::Around {
                skipped: &found.skipped,
                cost: found.cost,
                interrupted: found.interrupted,
            };
            let mut out = EscapingJsonWriter(&mut out);
            format::write_document(&mut out, &found.files, &found.groups, Some(&around))?;
        }
        Some(other) => format::write_groups(&mut out, other, &found.files, &found.groups)?,
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

/// Prints on standard error which files could not be scanned.
fn notes(found: &assay_dups::Scan, format: Format) -> anyhow::Result<()> {
    let mut err = BufWriter::new(std::io::stderr().lock());
    for skip in &found.skipped.details {
        writeln!(
            err,
            "assay: left out: {}: {}",
            name::format_readable(&skip.path),
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

/// Writes one line with the number of skipped files by reason.
fn left_out(to: &mut dyn Write, skipped: &assay_dups::Skipped) -> std::io::Result<()> {
    let counts: Vec<String> = skipped
        .counts()
        .map(|(reason, count)| format!("{} {}", reason.words(), format_grouped(count)))
        .collect();
    match counts.is_empty() {
        true => Ok(()),
        false => writeln!(to, "left out: {}", counts.join(", ")),
    }
}

/// Maximum number of groups in the summary.
const SHOWN: usize = 10;

fn summary(out: &mut dyn Write, found: &assay_dups::Scan, indexed: bool) -> anyhow::Result<()> {
    let bytes: u64 = found.files.files.iter().map(|file| file.id.size).sum();
    writeln!(
        out,
        "{}, {}",
        format_plural(found.files.files.len() as u64, "file", "files"),
        Binary.show(bytes)
    )?;
    super::explore::groups_text(out, &found.files, &found.groups, SHOWN)?;
    left_out(out, &found.skipped)?;
    if indexed && !found.groups.is_empty() {
        write!(
            out,
            "\nNext: `assay dups report` lists all groups, `assay dups dirs` compares folders"
        )?;
        match super::explore::suggest_action(&found.files, &found.groups) {
            Some((action, shown)) => writeln!(out, ",\n`assay dups act {action}` shows {shown}.")?,
            None => writeln!(out, ".")?,
        }
    }
    Ok(())
}
