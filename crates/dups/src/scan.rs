//! A scan from beginning to end: walk, group, compare, remember.

use crate::compare::{self, Learnt};
use crate::group::{self, Group, SizeGroup};
use crate::index::Index;
use crate::read::Cost;
use crate::skip::{Reason, Skipped};
use crate::table::{FileId, Files, NO_HASH};
use crate::walk::{self, Memory, WalkOptions};
use crate::{Control, Error, rotational, sharing};
use std::collections::HashSet;
use std::path::PathBuf;

/// How to scan.
#[derive(Clone, Debug, Default)]
pub struct ScanOptions {
    /// Where to go and which files to take.
    pub walk: WalkOptions,
    /// Whether to compare every reported group byte by byte once more at the end, with what is
    /// on disk then, whatever the index remembers.
    pub paranoid: bool,
    /// Whether to hash every file, also those of a size of their own, so that indexes of several
    /// machines can be compared.
    pub hash_all: bool,
    /// Whether to believe nothing that the index remembers.
    pub fresh: bool,
    /// Bytes to read at most between two states of the index that are kept even if the process is
    /// killed; None = 32 GiB, a minute or so on a fast disk.
    pub checkpoint: Option<u64>,
}

/// What a scan found.
#[derive(Debug)]
pub struct Scan {
    /// All files that were looked at.
    pub files: Files,
    /// Groups of equal content, largest gain first.
    pub groups: Vec<Group>,
    /// What was left out and why.
    pub skipped: Skipped,
    /// What it cost to read.
    pub cost: Cost,
    /// Whether it was stopped before the end; what is reported is right but not everything.
    pub interrupted: bool,
    /// Why the index could not be brought up to date, if so (a full disk, say).
    pub index_error: Option<Error>,
}

/// Scans the roots (absolute paths).
///
/// # Errors
/// When a root cannot be opened, a glob is malformed, or the index cannot be read.
pub fn scan(
    roots: &[PathBuf],
    options: &ScanOptions,
    mut index: Option<&mut Index>,
    control: &Control<'_>,
) -> Result<Scan, Error> {
    let memory = match &mut index {
        Some(index) if !options.fresh => index.remember(roots)?,
        _ => Memory::default(),
    };
    let (mut files, mut skipped) = walk::walk(roots, &options.walk, &memory, control)?;
    // The blocks have served; their names are still needed, to see which folders have vanished.
    let remembered: HashSet<Box<[u8]>> = memory.into_keys().collect();
    let generation = index.as_ref().map_or(1, |index| index.generation() + 1);
    let sizes = group::by_size(&files, options.hash_all);
    control.progress.plan(compare::planned(&sizes.open));
    let spinning = rotational::is_spinning(&files, &sizes);
    let mut cost = Cost::default();
    let mut rest = &sizes.open[..];
    while !rest.is_empty() && !control.stopped() {
        let part;
        (part, rest) = rest.split_at(part_length(rest, options.checkpoint.unwrap_or(PART)));
        let learnt = match spinning {
            true => rotational::run(&files, &sizes.order, part, options.hash_all, control),
            false => compare::run(&files, &sizes.order, part, options.hash_all, control),
        };
        cost.opens += learnt.cost.opens;
        cost.bytes += learnt.cost.bytes;
        let members = |number: usize| &sizes.order[part[number].files.clone()];
        apply(&mut files, &mut skipped, learnt, members, generation);
        if let Some(index) = index.as_deref_mut().filter(|_| !rest.is_empty()) {
            // A failure will show again at the end.
            if index
                .save(roots, &files, &remembered, generation, true)
                .is_ok()
            {
                files.dirs.iter_mut().for_each(|dir| dir.dirty = false);
            }
        }
    }
    spread_to_links(&mut files, &mut skipped, &sizes.links);
    // Without a further look at the files, the index is written while the groups are sorted.
    if !options.paranoid && !sharing::possible(roots) && !control.stopped() {
        let (groups, index_error) = std::thread::scope(|scope| {
            let save = scope.spawn(|| {
                index.and_then(|index| {
                    index
                        .save(roots, &files, &remembered, generation, false)
                        .err()
                })
            });
            let groups = group::by_hash(&files);
            let error = save
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
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
    let mut groups = group::by_hash(&files);
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
        cost.opens += sharing::recognise(&mut files, &mut groups);
    }
    let interrupted = control.stopped();
    let index_error = index.and_then(|index| {
        index
            .save(roots, &files, &remembered, generation, interrupted)
            .err()
    });
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

/// Default of [`ScanOptions::checkpoint`].
const PART: u64 = 32 * 1024 * 1024 * 1024;

/// How many groups make a part; at least one.
fn part_length(open: &[SizeGroup], most: u64) -> usize {
    let mut bytes = 0_u64;
    let fitting = open.iter().take_while(|group| {
        bytes = bytes.saturating_add(group.size.saturating_mul(group.files.len() as u64));
        bytes <= most
    });
    fitting.count().max(1)
}

/// Enters what was learnt into the table and marks the folders that the index must be told about.
fn apply<'a>(
    files: &mut Files,
    skipped: &mut Skipped,
    learnt: Learnt,
    members: impl Fn(usize) -> &'a [FileId],
    generation: u32,
) {
    // Files of one content come one after the other, except from different threads.
    let mut last = None;
    for (id, hash) in learnt.hashes {
        let number = match last {
            Some((known, number)) if known == hash => number,
            _ => files.add_hash(hash),
        };
        last = Some((hash, number));
        files.files[id as usize].hash = number;
        mark(files, id);
    }
    for number in learnt.finished {
        for id in members(number) {
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

/// Gives what was learnt of an inode to its further names.
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
