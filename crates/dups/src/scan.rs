//! Runs a complete scan: walk, group, compare, store.

use crate::across::requested_hashes::Wanted;
use crate::compare::{self, Job, Learnt};
use crate::earlier_roots::{self, Within};
use crate::group::{self, Groups, SizeGroup, Sizes};
use crate::hash::HashKind;
use crate::index::Index;
use crate::memory::Memory;
use crate::read::Cost;
use crate::scan_options::WalkOptions;
use crate::skip::{Reason, Skipped};
use crate::table::{FileId, Files, NO_HASH};
use crate::walk;
use crate::{Control, Error, rotational, sharing};
use std::path::PathBuf;
use std::sync::Arc;

/// What a scan covers and how it reads files.
#[derive(Clone, Debug, Default)]
pub struct ScanOptions {
    /// Roots to scan, and the selection of files.
    pub walk: WalkOptions,
    /// Scan known roots with the options that the index stores for them. `walk` and `hash_all` then apply only to new
    /// roots.
    pub as_before: bool,
    /// Compare every reported group byte by byte again at the end, whatever the index contains.
    pub paranoid: bool,
    /// Hash every file, including files with a unique size, so that indexes of several machines can be
    /// compared.
    pub hash_all: bool,
    /// Scan as if the index were empty.
    pub fresh: bool,
    /// Hash function to use; `None` selects the function of the index.
    pub hash: Option<HashKind>,
    /// Maximum bytes to read between two updates of the index, so that a killed scan loses little. `None`: 32 GiB,
    /// about one minute on a fast disk.
    pub checkpoint: Option<u64>,
    /// Sizes and samples of contents that other machines have. Files with a listed pair are hashed, too.
    pub wanted: Option<Arc<Wanted>>,
    /// Whether the files are on a rotating disk; `None` to detect it.
    pub rotates: Option<bool>,
}

/// What a scan found.
#[derive(Debug)]
pub struct Scan {
    /// All files that were examined.
    pub files: Files,
    /// Groups of equal content, largest gain first.
    pub groups: Groups,
    /// Files that were skipped, with reasons.
    pub skipped: Skipped,
    /// How much the scan read.
    pub cost: Cost,
    /// Whether the scan was interrupted. Its results are then correct but incomplete.
    pub interrupted: bool,
    /// Error that prevented the update of the index, such as a full disk.
    pub index_error: Option<Error>,
}

/// Scans the roots (absolute paths).
///
/// # Errors
/// A root cannot be opened, a glob is malformed, or the index cannot be read.
pub fn scan(
    roots: &[PathBuf],
    options: &ScanOptions,
    mut index: Option<&mut Index>,
    control: &Control<'_>,
) -> Result<Scan, Error> {
    let kind = index_hash_kind(options, index.as_deref())?;
    let manners = earlier_roots::read_root_options(roots, options, index.as_deref())?;
    let hash_all = manners.iter().any(|one| one.1.hash_all);
    let memory = match &mut index {
        Some(index) if !options.fresh => index.remember(roots)?,
        _ => Memory::default(),
    };
    let walk::Walked {
        mut files,
        mut skipped,
        doors,
        entered,
    } = walk::walk(&manners, &memory, control)?;
    files.kind = kind;
    let generation = index.as_ref().map_or(1, |index| index.generation() + 1);
    let within = match index.as_deref() {
        Some(index) => Within::of(&manners, index, &entered)?,
        None => Within::default(),
    };
    drop(entered);
    let state = |index: &mut Option<&mut Index>, files: &Files, interrupted| {
        let index = index.as_deref_mut()?;
        index
            .save(&manners, &within, files, &memory, generation, interrupted)
            .err()
    };
    let (sizes, early) = sort_by_size(&files, hash_all);
    let early = early.filter(|_| sizes.open.is_empty());
    control
        .progress
        .plan(compare::planned_read_bytes(&sizes.open));
    let found_out = || rotational::is_spinning(&files, &sizes);
    let spinning = options.rotates.unwrap_or_else(found_out);
    let mut cost = Cost::default();
    let mut rest = &sizes.open[..];
    let most = options.checkpoint.unwrap_or(PART);
    let mut unsaved = 0_u64;
    while !rest.is_empty() && !control.stopped() {
        let part;
        (part, rest) = rest.split_at(part_length(rest, most));
        let job = Job {
            files: &files,
            doors: &doors,
            order: &sizes.order,
            open: part,
            all: hash_all,
            control,
        };
        let learnt = match spinning {
            true => rotational::run(job),
            false => compare::run(job),
        };
        cost.opens += learnt.cost.opens;
        cost.bytes += learnt.cost.bytes;
        apply(&mut files, &mut skipped, learnt, (&sizes, part), generation);
        unsaved = unsaved.saturating_add(compare::planned_read_bytes(part));
        if rest.is_empty() || index.is_none() || unsaved < most {
            continue;
        }
        // A failure will occur again at the end.
        if state(&mut index, &files, true).is_none() {
            files.dirs.iter_mut().for_each(|dir| dir.dirty = false);
            unsaved = 0;
        }
    }
    if let Some(wanted) = options.wanted.as_ref().filter(|_| !control.stopped()) {
        let learnt = wanted.hash(&files, &doors, control);
        cost.opens += learnt.cost.opens;
        cost.bytes += learnt.cost.bytes;
        apply(&mut files, &mut skipped, learnt, (&sizes, &[]), generation);
    }
    drop(doors);
    spread_to_links(&mut files, &mut skipped, &sizes.links);
    drop(sizes);
    // The early groups are valid only if no hard link changed the results.
    let early = early.filter(|_| files.dirs.iter().all(|dir| !dir.dirty));
    // If the files are not read again, the index is written while the groups are sorted.
    if !options.paranoid && !sharing::is_possible(roots) && !control.stopped() {
        let (groups, index_error) = std::thread::scope(|scope| {
            let save = scope.spawn(|| state(&mut index, &files, false));
            let groups = early.unwrap_or_else(|| group::by_hash(&files));
            let error = crate::pool::join(save);
            (groups, error)
        });
        skipped.details.sort_by(|a, b| a.path.cmp(&b.path));
        return Ok(Scan {
            files,
            groups,
            skipped,
            cost,
            interrupted: false,
            index_error,
        });
    }
    let mut groups = early.unwrap_or_else(|| group::by_hash(&files));
    if options.paranoid && !control.stopped() {
        let (again, differing) = compare::verify(&files, &groups, control);
        cost.opens += again.cost.opens;
        cost.bytes += again.cost.bytes;
        for id in differing {
            skipped.note(
                files.path(id),
                Reason::Changed,
                "its bytes are not what its hash and times promised",
            );
            set_aside(&mut files, id);
        }
        for id in again.aside {
            set_aside(&mut files, id);
        }
        skipped.absorb(again.skipped);
        groups = group::by_hash(&files);
    }
    if !control.stopped() {
        cost.opens += sharing::locate_copies(&mut files, &mut groups);
    }
    let interrupted = control.stopped();
    let index_error = state(&mut index, &files, interrupted);
    skipped.details.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(Scan {
        files,
        groups,
        skipped,
        cost,
        interrupted,
        index_error,
    })
}

/// Returns the files grouped by size. If all hashes are known, probably no comparison is needed; the groups of equal
/// content are then computed at the same time on another CPU.
fn sort_by_size(files: &Files, all: bool) -> (Sizes, Option<Groups>) {
    if files.dirs.iter().any(|dir| dir.dirty) {
        return (group::by_size(files, all), None);
    }
    std::thread::scope(|scope| {
        let groups = scope.spawn(|| group::by_hash(files));
        let sizes = group::by_size(files, all);
        let groups = crate::pool::join(groups);
        (sizes, Some(groups))
    })
}

/// Returns the kind of hash that the scan computes. Fails if the index already contains hashes of another kind.
fn index_hash_kind(options: &ScanOptions, index: Option<&Index>) -> Result<HashKind, Error> {
    let held = index.and_then(|index| Some((index.path(), index.kind()?)));
    match (options.hash, held) {
        (Some(wanted), Some((path, held))) if wanted != held => Err(Error::Usage(format!(
            "index {} holds {} hashes; scan with --hash {}, or into another file with --index",
            crate::name::format_readable(crate::sys::path_bytes(path)),
            held.name(),
            held.name(),
        ))),
        (wanted, held) => Ok(wanted.or(held.map(|one| one.1)).unwrap_or_default()),
    }
}

/// Default of [`ScanOptions::checkpoint`].
const PART: u64 = 32 * 1024 * 1024 * 1024;
/// Maximum number of files compared between two updates of the table; their results stay in memory until then.
const PART_FILES: usize = 1 << 20;

/// Returns how many of the size groups that are not compared yet fit into the next part. The limits are `most` bytes
/// and [`PART_FILES`] files. Returns at least 1, so that a larger group is a part of its own.
fn part_length(open: &[SizeGroup], most: u64) -> usize {
    let mut bytes = 0_u64;
    let mut files = 0;
    let fitting = open.iter().take_while(|group| {
        let count = group.files().len();
        files += count;
        bytes = bytes.saturating_add(group.size.saturating_mul(count as u64));
        bytes <= most && files <= PART_FILES
    });
    fitting.count().max(1)
}

/// Adds results to the table, and marks the folders whose index rows must be updated.
fn apply(
    files: &mut Files,
    skipped: &mut Skipped,
    learnt: Learnt,
    (sizes, part): (&Sizes, &[SizeGroup]),
    generation: u32,
) {
    for (id, hash) in learnt.hashes {
        let number = files.add_hash(hash);
        files.files[id as usize].hash = number;
        mark(files, id);
    }
    for number in learnt.finished {
        for id in &sizes.order[part[number].files()] {
            files.files[*id as usize].generation = generation;
            mark(files, *id);
        }
    }
    for id in learnt.aside {
        set_aside(files, id);
    }
    skipped.absorb(learnt.skipped);
}

fn mark(files: &mut Files, id: FileId) {
    let dir = files.file(id).dir;
    files.dirs[dir as usize].dirty = true;
}

fn set_aside(files: &mut Files, id: FileId) {
    files.files[id as usize].set_aside();
    mark(files, id);
}

/// Copies the results of an inode to its other hard links.
fn spread_to_links(files: &mut Files, skipped: &mut Skipped, links: &[(FileId, FileId)]) {
    for (name, first) in links {
        let (first, old) = (*files.file(*first), *files.file(*name));
        let known = first.hash != NO_HASH && old.hash != NO_HASH;
        if first.is_aside() || first.id != old.id && first.hash != NO_HASH {
            if !first.is_aside() {
                skipped.note(
                    files.path(*name),
                    Reason::Changed,
                    "its times changed between two of its names",
                );
            }
            set_aside(files, *name);
        } else if !known && first.hash != old.hash || first.generation != old.generation {
            let file = &mut files.files[*name as usize];
            file.hash = first.hash;
            file.generation = first.generation;
            mark(files, *name);
        }
    }
}
