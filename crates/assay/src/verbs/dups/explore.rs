//! Queries the index: `report`, `file`, `ls`, `uniques`.

use super::age;
use super::documents::{Copies, File, List, Listed};
use super::index_location::{Format, Place, absolute};
use super::scan_arguments::flags;
use crate::context::report_writer;
use crate::status::{Status, Unreadable};
use assay_dups::group::by_hash;
use assay_dups::name::{encode_hex, format_readable};
use assay_dups::{DuplicateGroup, FileId, Files, Groups, Index, format, report as ask};
use assay_model::SCHEMA_VERSION;
use assay_model::size::Convention::Binary;
use assay_render::output_escaping::EscapingJsonWriter;
use assay_render::units::{format_grouped, format_plural};
use clap::Args;
use std::io::Write;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// Selection of a part of the index.
#[derive(Args)]
#[command(after_help = "\
Example:
  assay dups uniques /mnt/old-disk       what the old disk has that nothing else has")]
pub struct Below {
    /// Show only files at or below PATH [default: all]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
}

/// Arguments of `assay dups report`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  assay dups report --top 20
  assay dups report /srv/photos --format fdupes")]
pub struct Report {
    /// Show only groups with a file at or below PATH [default: all]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Print the groups in this form [default: text]
    #[arg(long, short, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    /// Show only the N groups where duplicates take most space
    #[arg(long, value_name = "N")]
    top: Option<usize>,
}

/// Arguments of `assay dups file`.
#[derive(Args)]
#[command(after_help = "\
Example:
  assay dups file ~/photo.jpg            exit status 1 when it has no copy")]
pub struct OneFile {
    /// File to look up
    path: PathBuf,
}

/// Arguments of `assay dups ls`.
#[derive(Args)]
#[command(after_help = "\
Example:
  assay dups ls /srv/photos/2019")]
pub struct Ls {
    /// Folder to list
    #[arg(default_value = ".")]
    path: PathBuf,
}

/// Loads the whole index, and makes `paths` absolute. Fails for folders that were never scanned, because their
/// duplicates are unknown.
pub fn load_files(
    place: &Place,
    paths: &[PathBuf],
) -> anyhow::Result<(Index, Files, Vec<PathBuf>)> {
    let index = place.read()?;
    let roots = index.roots()?;
    anyhow::ensure!(
        !roots.is_empty(),
        "nothing was scanned yet: run `assay dups scan PATH` first"
    );
    let below = absolute(paths)?;
    let known = |path: &PathBuf| {
        roots
            .iter()
            .any(|root| path.starts_with(&root.path) || root.path.starts_with(path))
    };
    if let Some(path) = below.iter().find(|path| !known(path)) {
        let path = format_readable(path.as_os_str().as_bytes());
        return Err(Unreadable(format!(
            "{path} was not scanned yet: run `assay dups scan {path}` first"
        ))
        .into());
    }
    let files = index.load(&[])?;
    Ok((index, files, below))
}

/// Loads the whole index, and the groups that have a file at or below the paths.
pub fn load(place: &Place, paths: &[PathBuf]) -> anyhow::Result<(Index, Files, Groups)> {
    let (index, files, below) = load_files(place, paths)?;
    let mut groups = by_hash(&files);
    if !paths.is_empty() {
        let inside = inside(&files, &below);
        groups.retain(|group| group.names().any(&inside));
    }
    Ok((index, files, groups))
}

fn inside<'a>(files: &'a Files, below: &'a [PathBuf]) -> impl Fn(FileId) -> bool + 'a {
    move |id| {
        let path = files.path(id);
        let path = std::path::Path::new(std::ffi::OsStr::from_bytes(&path));
        below.is_empty() || below.iter().any(|root| path.starts_with(root))
    }
}

/// Formats the path of a file with its machine, for people.
pub fn shown(files: &Files, id: FileId) -> String {
    let path = format_readable(&files.path(id));
    match files.machine(id) {
        "" => path,
        machine => format!("{machine}:{path}"),
    }
}

/// Number of bytes that removing duplicates frees, by the method that can free them.
struct LinkReach {
    /// Bytes that hard links can free.
    linkable: u64,
    /// Bytes that only reflinks can free, because the copies are in different subvolumes.
    across_subvolumes: u64,
    /// Bytes that only deleting or moving can free, because the copies are on different file systems.
    across_disks: u64,
}

impl LinkReach {
    fn of(files: &Files, groups: &Groups) -> Self {
        let gain: u64 = groups.iter().map(|group| group.gain()).sum();
        let across: u64 = groups.iter().map(|group| group.gain_across(files)).sum();
        let across_disks: u64 = groups
            .iter()
            .map(|group| group.gain_across_disks(files))
            .sum();
        Self {
            linkable: gain.saturating_sub(across),
            across_subvolumes: across.saturating_sub(across_disks),
            across_disks,
        }
    }
}

/// Returns the arguments of `assay dups act` that free most bytes without deleting a file, and a description of their
/// effect. `None` if no bytes can be freed.
pub fn suggest_action(files: &Files, groups: &Groups) -> Option<(&'static str, &'static str)> {
    let reach = LinkReach::of(files, groups);
    if reach.linkable > 0 {
        Some(("--hardlink PATH", "what linking would do"))
    } else if reach.across_subvolumes > 0 {
        Some(("--reflink PATH", "what sharing blocks would do"))
    } else if reach.across_disks > 0 {
        Some((
            "--delete PATH",
            "what would be deleted below PATH, for copies elsewhere",
        ))
    } else {
        None
    }
}

/// Formats the totals, and the groups whose duplicates take most space.
pub fn groups_text(
    out: &mut dyn Write,
    files: &Files,
    groups: &Groups,
    most: usize,
) -> anyhow::Result<()> {
    let copies: u64 = groups.iter().map(|group| group.redundant()).sum();
    let doubtful: u64 = groups.iter().map(|group| group.doubtful).sum();
    let gain: u64 = groups.iter().map(|group| group.gain()).sum();
    if groups.is_empty() {
        writeln!(out, "no duplicates")?;
        return Ok(());
    }
    writeln!(
        out,
        "{} with {}: {} to gain",
        format_plural(groups.len() as u64, "group", "groups"),
        format_plural(copies, "redundant file", "redundant files"),
        Binary.show(gain)
    )?;
    let reach = LinkReach::of(files, groups);
    if reach.across_disks > 0 {
        writeln!(
            out,
            "{} of it only by deleting or moving: these copies are on different file systems, which links do not \
             cross",
            Binary.show(reach.across_disks)
        )?;
    }
    if reach.across_subvolumes > 0 {
        writeln!(
            out,
            "{} of it by reflinks, deleting or moving: these copies are in different subvolumes, which hard links \
             do not cross",
            Binary.show(reach.across_subvolumes)
        )?;
    }
    if doubtful > 0 {
        writeln!(
            out,
            "{} may be seen twice, on file systems that can show the same files: not counted, never acted on",
            format_plural(doubtful, "file", "files")
        )?;
    }
    for group in groups.iter().take(most) {
        let doubtful = group.doubtful.saturating_sub(1);
        let shared = group.files.len() as u64 - doubtful - group.distinct;
        let note: String = match shared {
            _ if group.doubtful > 0 => {
                format!(", {} perhaps one file", format_grouped(group.doubtful))
            }
            0 if group.gain() == 0 => ", nothing to gain".into(),
            0 => String::new(),
            shared => format!(", {} shared already", format_grouped(shared)),
        };
        writeln!(
            out,
            "\n{} × {}{note}{}",
            format_grouped(group.files.len() as u64),
            Binary.show(group.size),
            files
                .hash(group.files[0])
                .map_or_else(String::new, |hash| format!("  {}", encode_hex(&hash[..8])))
        )?;
        for id in group.files {
            writeln!(out, "  {}", shown(files, *id))?;
            for (name, _) in group.links.iter().filter(|(_, first)| first == id) {
                writeln!(out, "    also named {}", shown(files, *name))?;
            }
        }
    }
    if groups.len() > most {
        let rest = (groups.len() - most) as u64;
        writeln!(
            out,
            "\n… and {}",
            format_plural(rest, "more group", "more groups")
        )?;
    }
    Ok(())
}

/// Prints the age of the index on standard error.
fn dated(index: &Index) -> anyhow::Result<()> {
    let now = assay_dups::unix_nanos();
    for root in index.roots()? {
        let machine = match root.machine.as_str() {
            "" => String::new(),
            machine => format!("{machine}:"),
        };
        let part = if root.complete { "" } else { ", in part" };
        let how = flags(&root.manner).map_or_else(String::new, |flags| format!(", with {flags}"));
        eprintln!(
            "{machine}{}: scanned {} ago{part}{how}",
            format_readable(root.path.as_os_str().as_bytes()),
            age::show(now - root.scanned)
        );
    }
    Ok(())
}

/// Prints on standard error how many files were not compared with all files of the same size, and the consequence.
fn not_compared(number: usize, consequence: &str) {
    if number > 0 {
        eprintln!(
            "assay: {} never compared with others of the same size (scanned apart, cut off, or \
             unreadable){consequence}; \
             `assay dups refresh` compares what is on this machine",
            format_plural(number as u64, "file was", "files were")
        );
    }
}

pub fn report(args: &Report, place: &Place) -> anyhow::Result<Status> {
    let (index, files, mut groups) = load(place, &args.paths)?;
    let default = if place.json {
        Format::Document
    } else {
        Format::Text
    };
    let mut out = report_writer()?;
    match args.format.unwrap_or(default).machine() {
        Some(wanted) => {
            groups.truncate(args.top.unwrap_or(usize::MAX));
            match wanted {
                format::GroupFormat::Document => {
                    format::write_groups(
                        &mut EscapingJsonWriter(&mut out),
                        wanted,
                        &files,
                        &groups,
                    )?;
                }
                // Other programs parse these formats: names are not escaped.
                _ => format::write_groups(&mut out, wanted, &files, &groups)?,
            }
        }
        None => {
            dated(&index)?;
            groups_text(&mut out, &files, &groups, args.top.unwrap_or(usize::MAX))?;
            out.flush()?;
            not_compared(ask::find_uncompared(&files).len(), ", and may have copies");
        }
    }
    out.flush()?;
    Ok(Status::Ok)
}

pub fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    let mut out = EscapingJsonWriter(report_writer()?);
    serde_json::to_writer_pretty(&mut out, value)?;
    writeln!(out)?;
    out.flush()?;
    Ok(())
}

pub fn file(args: &OneFile, place: &Place) -> anyhow::Result<Status> {
    let index = place.read()?;
    let path = assay_dups::make_absolute(&args.path)?;
    let folder = path.parent().unwrap_or(&path);
    let files = index.load_around(folder)?;
    let groups = by_hash(&files);
    let bytes = path.as_os_str().as_bytes();
    let Some(id) = ask::find(&files, bytes) else {
        let roots: Vec<String> = index
            .roots()?
            .iter()
            .map(|root| format_readable(root.path.as_os_str().as_bytes()))
            .collect();
        anyhow::bail!(
            "{} is not in the index (it covers {}; empty files and links are left out). Run `assay dups scan` on \
             its folder.",
            format_readable(bytes),
            roots.join(", ")
        );
    };
    let group = groups
        .iter()
        .find(|group| group.names().any(|one| one == id));
    let uncompared = ask::find_uncompared(&files).contains(&id);
    let names = |group: DuplicateGroup<'_>| -> Vec<FileId> {
        group.names().filter(|one| *one != id).collect()
    };
    if place.json {
        let copies = group.map(names).unwrap_or_default();
        print_json(&Copies {
            schema: SCHEMA_VERSION,
            file: File::of(&files, id),
            copies: copies.iter().map(|one| File::of(&files, *one)).collect(),
            compared: !uncompared,
        })?;
    } else {
        let mut out = report_writer()?;
        writeln!(
            out,
            "{}: {}",
            shown(&files, id),
            Binary.show(files.file(id).id.size)
        )?;
        match group {
            None if uncompared => writeln!(
                out,
                "no copy known; not compared with all files of its size, `assay dups refresh` does"
            )?,
            None => writeln!(out, "no copy")?,
            Some(group) => {
                for one in names(group) {
                    let same = match files.inode(one) == files.inode(id) {
                        true => "  (the same file by another name)",
                        false => "",
                    };
                    writeln!(out, "  {}{same}", shown(&files, one))?;
                }
            }
        }
        out.flush()?;
    }
    Ok(match group {
        Some(_) => Status::Ok,
        None => Status::Findings,
    })
}

pub fn ls(args: &Ls, place: &Place) -> anyhow::Result<Status> {
    let path = assay_dups::make_absolute(&args.path)?;
    let files = place.read()?.load_around(&path)?;
    let groups = by_hash(&files);
    let wanted = path.as_os_str().as_bytes();
    let of = ask::group_of(&files, &groups);
    let mut ids: Vec<FileId> = (0..files.dirs.len() as u32)
        .filter(|dir| files.dir_path(*dir) == wanted)
        .flat_map(|dir| files.dir_files(dir))
        .filter(|id| files.machine(*id).is_empty())
        .collect();
    ids.sort_unstable_by_key(|id| files.name(*id));
    anyhow::ensure!(
        !ids.is_empty(),
        "the index contains no file of {}: run `assay dups scan` on it",
        format_readable(wanted)
    );
    let uncompared = ask::find_uncompared(&files);
    let compared = |id: FileId| uncompared.binary_search(&id).is_err();
    let copies = |id: FileId| match of[id as usize] {
        u32::MAX => 0,
        group => groups.at(group as usize).files.len() - 1,
    };
    if place.json {
        let listed = |id: &FileId| Listed {
            file: File::of(&files, *id),
            copies: Some(copies(*id)),
            compared: compared(*id),
        };
        print_json(&List {
            schema: SCHEMA_VERSION,
            files: ids.iter().map(listed).collect(),
        })?;
        return Ok(Status::Ok);
    }
    let mut out = report_writer()?;
    for id in ids {
        let count = match copies(id) {
            0 if !compared(id) => "unknown".into(),
            0 => "unique".into(),
            count => format_plural(count as u64, "copy", "copies"),
        };
        writeln!(
            out,
            "{:>9}  {count:>10}  {}",
            Binary.show(files.file(id).id.size),
            format_readable(files.name(id))
        )?;
    }
    out.flush()?;
    Ok(Status::Ok)
}

pub fn uniques(args: &Below, place: &Place) -> anyhow::Result<Status> {
    let (_, files, below) = load_files(place, &args.paths)?;
    let inside = inside(&files, &below);
    let (mut ids, uncompared) = ask::uniques_and_uncompared(&files);
    if !below.is_empty() {
        ids.retain(|id| inside(*id));
    }
    let compared = |id: &FileId| uncompared.binary_search(id).is_err();
    let mut out = report_writer()?;
    if place.json {
        let listed = |id: &FileId| Listed {
            file: File::of(&files, *id),
            copies: None,
            compared: compared(id),
        };
        drop(out);
        print_json(&List {
            schema: SCHEMA_VERSION,
            files: ids.iter().map(listed).collect(),
        })?;
        return Ok(Status::Ok);
    }
    for id in &ids {
        writeln!(out, "{}", shown(&files, *id))?;
    }
    out.flush()?;
    let bytes: u64 = ids.iter().map(|id| files.file(*id).id.size).sum();
    eprintln!(
        "{} without a copy, {}",
        format_plural(ids.len() as u64, "file", "files"),
        Binary.show(bytes)
    );
    let unknown = ids.iter().filter(|id| !compared(id)).count();
    not_compared(unknown, ", and may have a copy");
    Ok(Status::Ok)
}
