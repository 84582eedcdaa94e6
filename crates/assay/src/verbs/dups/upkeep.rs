//! Maintains the index, and writes an HTML treemap: `validate`, `merge`, `forget`, `treemap`.

use super::documents::{
    Forgotten, ForgottenFolder, Merged, MergedIndex, Name, Problem, Validation,
};
use super::explore::{load, print_json, shown};
use super::index_location::{Place, absolute};
use super::progress;
use crate::context::{print, report_writer};
use crate::status::Status;
use assay_dups::name::format_readable;
use assay_dups::tree::{Node, build_tree};
use assay_dups::{Index, report as ask};
use assay_model::SCHEMA_VERSION;
use assay_render::units::format_plural;
use clap::Args;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// Arguments of `assay dups validate`.
#[derive(Args)]
#[command(after_help = "\
Example:
  assay dups validate /srv/photos        exit status 1 when something no longer agrees")]
pub struct Validate {
    /// Check only groups with a file at or below PATH [default: all]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
}

/// Arguments of `assay dups merge`.
#[derive(Args)]
#[command(after_help = "\
Example:
  assay dups scan /srv --hash-all --index nas.db        on each machine
  assay dups merge --index both.db nas=nas.db laptop=laptop.db
  assay dups report --index both.db")]
pub struct Merge {
    /// Indexes, each after the name of its machine
    #[arg(required = true, value_name = "NAME=FILE")]
    indexes: Vec<String>,
}

/// Arguments of `assay dups forget`.
#[derive(Args)]
#[command(after_help = "\
Example:
  assay dups forget /mnt/gone")]
pub struct Forget {
    /// Folders to remove from the index
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
}

/// Arguments of `assay dups treemap`.
#[derive(Args)]
#[command(after_help = "\
Example:
  assay dups treemap > dups.html")]
pub struct Treemap {
    /// Show only groups with a file at or below PATH [default: all]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
}

pub fn validate(args: &Validate, place: &Place) -> anyhow::Result<Status> {
    let (_, files, mut groups) = load(place, &args.paths)?;
    // Files on another machine cannot be read here.
    groups.retain_files(|id| files.machine(id).is_empty());
    let (skipped, differing) =
        progress::watch(None, |control| ask::validate(&files, &groups, control))?;
    if place.json {
        let differing = differing
            .iter()
            .map(|id| Problem::differs(&files.path(*id)));
        let skipped = skipped.details.iter().map(Problem::skipped);
        print_json(&Validation {
            schema: SCHEMA_VERSION,
            groups: groups.len(),
            problems: skipped.chain(differing).collect(),
        })?;
    } else {
        let mut out = report_writer()?;
        for skip in &skipped.details {
            writeln!(out, "{}: {}", format_readable(&skip.path), skip.detail)?;
        }
        for id in &differing {
            writeln!(
                out,
                "{}: its bytes differ from its copies'",
                shown(&files, *id)
            )?;
        }
        let wrong = (skipped.details.len() + differing.len()) as u64;
        writeln!(
            out,
            "{} compared byte by byte, {}",
            format_plural(groups.len() as u64, "group", "groups"),
            format_plural(wrong, "file no longer agrees", "files no longer agree"),
        )?;
        out.flush()?;
    }
    Ok(match skipped.details.is_empty() && differing.is_empty() {
        true => Status::Ok,
        false => Status::Findings,
    })
}

pub fn merge(args: &Merge, place: &Place) -> anyhow::Result<Status> {
    anyhow::ensure!(
        place.index.is_some(),
        "name the index to merge into with --index FILE: your own index is not changed"
    );
    let mut pairs = Vec::new();
    for text in &args.indexes {
        let (name, file) = text
            .split_once('=')
            .filter(|(name, _)| !name.is_empty() && !name.contains(['/', ':']))
            .ok_or_else(|| anyhow::anyhow!("`{text}`: expected NAME=FILE, e.g. nas=nas.db"))?;
        pairs.push((name, Index::read(file.as_ref())?));
    }
    let mut into = Index::open(&place.path()?)?;
    let mut lines = Vec::new();
    for (name, index) in &pairs {
        let folders = into.merge(name, index)?;
        let unhashed = index
            .load(&[])?
            .files
            .iter()
            .filter(|file| file.hash == assay_dups::table::NO_HASH)
            .count();
        lines.push((name, folders, unhashed));
    }
    if place.json {
        let merged = lines.iter().map(|(name, folders, unhashed)| MergedIndex {
            machine: (*name).to_string(),
            folders: *folders,
            files_without_hash: *unhashed,
        });
        print_json(&Merged {
            schema: SCHEMA_VERSION,
            merged: merged.collect(),
        })?;
        return Ok(Status::Ok);
    }
    for (name, folders, unhashed) in lines {
        print(&format!(
            "{name}: {}\n",
            format_plural(folders, "folder", "folders")
        ))?;
        if unhashed > 0 {
            eprintln!(
                "assay: {name}: {} without a hash cannot be compared with other machines; \
                 scan there with --hash-all",
                format_plural(unhashed as u64, "file", "files")
            );
        }
    }
    Ok(Status::Ok)
}

pub fn forget(args: &Forget, place: &Place) -> anyhow::Result<Status> {
    let mut index = Index::open(&place.path()?)?;
    let mut forgotten = Vec::new();
    for path in absolute(&args.paths)? {
        forgotten.push((index.forget(&path)?, path));
    }
    if place.json {
        let forgotten = forgotten.iter().map(|(folders, path)| ForgottenFolder {
            name: Name::of(path.as_os_str().as_bytes()),
            folders: *folders,
        });
        print_json(&Forgotten {
            schema: SCHEMA_VERSION,
            forgotten: forgotten.collect(),
        })?;
        return Ok(Status::Ok);
    }
    for (folders, path) in forgotten {
        print(&format!(
            "{}: forgot {}\n",
            format_readable(path.as_os_str().as_bytes()),
            format_plural(folders as u64, "folder", "folders")
        ))?;
    }
    Ok(Status::Ok)
}

pub fn treemap(args: &Treemap, place: &Place) -> anyhow::Result<Status> {
    let (_, files, groups) = load(place, &args.paths)?;
    let tree = build_tree(&files, &groups);
    let (path, top) = tree.top();
    let path = match path.is_empty() {
        true => "/".to_owned(),
        false => format_readable(&path),
    };
    print(&assay_report::dups_page::render_treemap_page(
        &path,
        top,
        &|node| node.bytes,
        &below,
    ))?;
    Ok(Status::Ok)
}

/// Returns the subfolders of a node with their names, largest first.
fn below(node: &Node) -> Vec<(String, &Node)> {
    let folders = node.folders().into_iter();
    folders
        .map(|(name, one)| (format_readable(name), one))
        .collect()
}
