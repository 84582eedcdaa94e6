//! Stage 3 (comparison) on solid-state disks: each size group is compared by one thread. The thread opens and probes
//! the files once, then reads them side by side as long as they agree ([`crate::worker`]).
//!
//! Two files are equal if all their bytes are equal. The hash of a content is computed during the comparison, once per
//! content. Groups that are too large for reading side by side, and groups with known hashes, are compared by the hash
//! of the whole content instead.

use crate::group::{Groups, SizeGroup};
use crate::open_folders::Doors;
use crate::read::{CHUNK, Cost, SMALL};
use crate::skip::{self, Skipped};
use crate::table::{FileId, Files, Hash};
use crate::worker::Worker;
use crate::{Control, pool};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of files read side by side. Each file needs a descriptor.
const SIDE_BY_SIDE: usize = 64;
/// Maximum total size of small files that are compared in memory; fits into a CPU cache.
const ARENA: usize = 1024 * 1024;
/// Maximum number of small files that are compared in memory, because each file is compared with every different
/// content.
const ARENA_FILES: usize = 16;
/// Number of files that a thread takes at a time from a group that several threads share.
const SHARE: usize = 64;

/// What a comparison must do.
#[derive(Clone, Copy)]
pub(crate) struct Job<'a> {
    pub files: &'a Files,
    pub doors: &'a Doors,
    /// Files to which the ranges of the groups refer.
    pub order: &'a [FileId],
    pub open: &'a [SizeGroup],
    /// Hash every file, even if its size is unique.
    pub all: bool,
    pub control: &'a Control<'a>,
}

impl<'a> Job<'a> {
    pub fn members(&self, group: &SizeGroup) -> &'a [FileId] {
        &self.order[group.files()]
    }
}

/// What a comparison found out about the files.
#[derive(Default)]
pub(crate) struct Learnt {
    /// Hashes that were computed, by file.
    pub hashes: Vec<(FileId, Hash)>,
    /// Positions of the completely compared groups in the given list.
    pub finished: Vec<usize>,
    /// Files that could not be read or that changed during the comparison.
    pub aside: Vec<FileId>,
    /// Hash of the probes (first, middle and last block) of each file in divided groups.
    pub probes: Vec<(FileId, [u8; 16])>,
    /// Files that were skipped because of problems.
    pub skipped: Skipped,
    /// How much the comparison read.
    pub cost: Cost,
}

impl Learnt {
    fn absorb(&mut self, other: Self) {
        self.hashes.extend(other.hashes);
        self.finished.extend(other.finished);
        self.aside.extend(other.aside);
        self.probes.extend(other.probes);
        self.skipped.absorb(other.skipped);
        self.cost.opens += other.cost.opens;
        self.cost.bytes += other.cost.bytes;
    }
}

/// A unit of work that one thread takes from the queue.
enum Unit {
    /// A whole group, by its number.
    Group(usize),
    /// Files to hash completely.
    Hash(std::ops::Range<usize>),
    /// Large files of which only three blocks are read.
    Probe(std::ops::Range<usize>),
}

/// Compares all groups of a job on several threads.
pub(crate) fn run(job: Job<'_>) -> Learnt {
    let Job {
        files,
        order,
        open,
        all,
        control,
        ..
    } = job;
    let mut units = Vec::new();
    for (number, group) in open.iter().enumerate() {
        let members = job.members(group);
        let known = || members.iter().any(|id| files.hash(*id).is_some());
        let together = members.len() <= SIDE_BY_SIDE
            && (group.size > SMALL
                || members.len() <= ARENA_FILES && members.len() * group.size as usize <= ARENA
                || known());
        if together && !all {
            units.push(Unit::Group(number));
            continue;
        }
        let range = group.files();
        for begin in range.clone().step_by(SHARE) {
            let part = begin..range.end.min(begin + SHARE);
            units.push(match group.size > SMALL && !all {
                true => Unit::Probe(part),
                false => Unit::Hash(part),
            });
        }
    }
    let work = |worker: &mut Worker<'_>, at: usize| match &units[at] {
        Unit::Group(number) => {
            worker.group(job.members(&open[*number]), open[*number].size);
            worker.finish(*number);
        }
        Unit::Hash(part) => worker.hash_all(&order[part.clone()]),
        Unit::Probe(part) => worker.probe_all(&order[part.clone()]),
    };
    let mut learnt = run_parallel(files, job.doors, control, units.len(), work);
    if control.stopped() {
        return learnt;
    }
    let probes = std::mem::take(&mut learnt.probes);
    learnt.absorb(second_round(job, probes));
    if !control.stopped() {
        learnt.finished = (0..open.len()).collect();
    }
    learnt
}

/// Hashes those files of large groups whose sizes and probes agree, and returns the results.
fn second_round(job: Job<'_>, mut probes: Vec<(FileId, [u8; 16])>) -> Learnt {
    let files = job.files;
    probes.sort_unstable_by_key(|(id, key)| (u64::MAX - files.file(*id).id.size, *key, *id));
    let mut units: Vec<Vec<FileId>> = Vec::new();
    let alike = |a: &(FileId, [u8; 16]), b: &(FileId, [u8; 16])| {
        a.1 == b.1 && files.file(a.0).id.size == files.file(b.0).id.size
    };
    for same in probes.chunk_by(alike).filter(|same| same.len() > 1) {
        let known = same.iter().any(|(id, _)| files.hash(*id).is_some());
        if same.len() <= SIDE_BY_SIDE && !known {
            units.push(same.iter().map(|one| one.0).collect());
        } else {
            units.extend(same.iter().map(|one| vec![one.0]));
        }
    }
    run_parallel(
        files,
        job.doors,
        job.control,
        units.len(),
        |worker, at| match &units[at][..] {
            [one] => worker.hash_all(&[*one]),
            several => {
                let open = worker.open_all(several);
                worker.side_by_side(open);
            }
        },
    )
}

/// Reads all members of each group again side by side. Returns the files that differ from the first readable file of
/// their group although their hashes agree. No difference is expected.
pub(crate) fn verify(
    files: &Files,
    groups: &Groups,
    control: &Control<'_>,
) -> (Learnt, Vec<FileId>) {
    let mut units = Vec::new();
    for group in groups.iter() {
        for rest in group.files[1..].chunks(SIDE_BY_SIDE - 1) {
            let mut unit = vec![group.files[0]];
            unit.extend_from_slice(rest);
            units.push(unit);
        }
    }
    let differing = Mutex::new(Vec::new());
    let doors = Doors::default();
    let learnt = run_parallel(files, &doors, control, units.len(), |worker, at| {
        let before = worker.learnt.hashes.len();
        let open = worker.open_all(&units[at]);
        let count = open.len();
        worker.side_by_side(open);
        let found = worker.learnt.hashes.split_off(before);
        let wanted = files.hash(units[at][0]);
        let agreed = found
            .iter()
            .filter(|(_, hash)| Some(hash) == wanted)
            .count();
        if agreed < count && !control.stopped() {
            let wrong = units[at].iter().filter(|id| {
                !found
                    .iter()
                    .any(|(one, hash)| one == *id && Some(hash) == wanted)
                    && !worker.learnt.aside.contains(id)
            });
            skip::lock(&differing).extend(wrong);
        }
    });
    let differing = differing
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    (learnt, differing)
}

/// Runs `work` for each number below `count` on several threads.
fn run_parallel(
    files: &Files,
    doors: &Doors,
    control: &Control<'_>,
    count: usize,
    work: impl Fn(&mut Worker<'_>, usize) + Sync,
) -> Learnt {
    let next = AtomicUsize::new(0);
    let started = AtomicUsize::new(0);
    let processors = pool::count_processors();
    let all = Mutex::new(Learnt::default());
    if count == 0 {
        return Learnt::default();
    }
    pool::run(
        control,
        None,
        || {
            let mut worker = Worker::new(files, doors, control);
            if started.fetch_add(1, Ordering::Relaxed) >= processors {
                // These threads wait for a disk. Longer reads would need memory and not be faster.
                worker.longest = CHUNK;
            }
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= count || control.stopped() {
                    break;
                }
                work(&mut worker, at);
                worker.report();
            }
            skip::lock(&all).absorb(worker.learnt);
        },
        || control.tick(),
    );
    all.into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Returns an upper bound of the bytes to read, for the estimate of the remaining time.
pub(crate) fn planned_read_bytes(groups: &[SizeGroup]) -> u64 {
    groups
        .iter()
        .map(|group| group.size.saturating_mul(group.files().len() as u64))
        .sum()
}
