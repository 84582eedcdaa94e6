//! Stage 3 on solid-state disks: each size group is taken apart by one thread, whose files are
//! opened once, probed, and then read side by side only as far as they still agree.
//!
//! What decides is the comparison of the bytes themselves; the BLAKE3 hash that names a content is
//! computed along the way, once per content. Groups too large to be read side by side, and those
//! with members whose hash the index knows, are decided by BLAKE3 of the whole content.

use crate::group::SizeGroup;
use crate::read::{CHUNK, Cost, Holes, PROBE, SMALL, Trouble, unchanged, zeros};
use crate::skip::{self, Skipped};
use crate::table::{FileId, Files, Hash};
use crate::{Control, pool};
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Most files read side by side; each holds a descriptor.
const SIDE_BY_SIDE: usize = 64;
/// Small files are compared in memory up to this many bytes in all, which fit a cache.
const ARENA: usize = 1024 * 1024;
/// … and up to this many files, because each is compared with every different content.
const ARENA_FILES: usize = 16;
/// Files that a thread takes at once from a group that is shared out.
const SHARE: usize = 64;

/// What was learnt about files.
#[derive(Default)]
pub(crate) struct Learnt {
    /// Hashes by file.
    pub hashes: Vec<(FileId, Hash)>,
    /// Groups whose files were all compared, by position in the list that was given.
    pub finished: Vec<usize>,
    /// Files set aside.
    pub aside: Vec<FileId>,
    /// Keys of probed files of groups that are shared out.
    probes: Vec<(FileId, [u8; 16])>,
    /// What went wrong.
    pub skipped: Skipped,
    /// What it cost.
    pub cost: Cost,
}

impl Learnt {
    pub(crate) fn absorb(&mut self, other: Self) {
        self.hashes.extend(other.hashes);
        self.finished.extend(other.finished);
        self.aside.extend(other.aside);
        self.probes.extend(other.probes);
        self.skipped.absorb(other.skipped);
        self.cost.opens += other.cost.opens;
        self.cost.bytes += other.cost.bytes;
    }
}

/// A piece of work for one thread.
enum Unit {
    /// A whole group: its number.
    Group(usize),
    /// Small files to hash.
    Hash(std::ops::Range<usize>),
    /// Large files to probe.
    Probe(std::ops::Range<usize>),
}

/// Compares groups; their ranges are positions in `order`.
pub(crate) fn run(
    files: &Files,
    order: &[FileId],
    open: &[SizeGroup],
    all: bool,
    control: &Control<'_>,
) -> Learnt {
    let mut units = Vec::new();
    for (number, group) in open.iter().enumerate() {
        let members = &order[group.files.clone()];
        let known = members
            .iter()
            .filter(|id| files.hash(**id).is_some())
            .count();
        let together = members.len() <= SIDE_BY_SIDE
            && (group.size > SMALL
                || members.len() <= ARENA_FILES && members.len() * group.size as usize <= ARENA
                || known > 0);
        if together && !all {
            units.push(Unit::Group(number));
            continue;
        }
        for begin in group.files.clone().step_by(SHARE) {
            let part = begin..group.files.end.min(begin + SHARE);
            units.push(match group.size > SMALL && !all {
                true => Unit::Probe(part),
                false => Unit::Hash(part),
            });
        }
    }
    let mut learnt = spread(files, control, units.len(), |worker, at| match &units[at] {
        Unit::Group(number) => {
            let group = &open[*number];
            worker.group(&order[group.files.clone()], group.size);
            worker.finish(*number);
        }
        Unit::Hash(part) => worker.hash_all(&order[part.clone()]),
        Unit::Probe(part) => worker.probe_all(&order[part.clone()]),
    });
    if control.stopped() {
        return learnt;
    }
    let probes = std::mem::take(&mut learnt.probes);
    learnt.absorb(second_round(files, probes, control));
    if !control.stopped() {
        learnt.finished = (0..open.len()).collect();
    }
    learnt
}

/// Files of large groups that agree in size and probes.
fn second_round(
    files: &Files,
    mut probes: Vec<(FileId, [u8; 16])>,
    control: &Control<'_>,
) -> Learnt {
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
    spread(files, control, units.len(), |worker, at| {
        match &units[at][..] {
            [one] => worker.hash_all(&[*one]),
            several => {
                let open = worker.open_all(several);
                worker.side_by_side(open);
            }
        }
    })
}

/// Reads all members of each group again side by side and returns the files that do not have the
/// bytes of the group's first readable file, although their hash says so. None are expected.
pub(crate) fn verify(
    files: &Files,
    groups: &[crate::group::Group],
    control: &Control<'_>,
) -> (Learnt, Vec<FileId>) {
    let mut units = Vec::new();
    for group in groups {
        for rest in group.files[1..].chunks(SIDE_BY_SIDE - 1) {
            let mut unit = vec![group.files[0]];
            unit.extend_from_slice(rest);
            units.push(unit);
        }
    }
    let differing = Mutex::new(Vec::new());
    let learnt = spread(files, control, units.len(), |worker, at| {
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
        if agreed < count && !worker.control.stopped() {
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

/// Runs `work` for each number below `count`, on several threads.
fn spread(
    files: &Files,
    control: &Control<'_>,
    count: usize,
    work: impl Fn(&mut Worker<'_>, usize) + Sync,
) -> Learnt {
    let next = AtomicUsize::new(0);
    let all = Mutex::new(Learnt::default());
    if count == 0 {
        return Learnt::default();
    }
    pool::run(
        control,
        None,
        || {
            let mut worker = Worker::new(files, control);
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

/// One thread.
pub(crate) struct Worker<'a> {
    files: &'a Files,
    control: &'a Control<'a>,
    pub learnt: Learnt,
    reported: u64,
    buffers: Vec<Box<[u8]>>,
    arena: Vec<u8>,
}

/// A file that is open.
struct Open {
    id: FileId,
    fd: OwnedFd,
    holes: Holes,
}

/// Files that agreed so far, and the hash so far of what they agreed on.
struct Class {
    members: Vec<Open>,
    hasher: blake3::Hasher,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(files: &'a Files, control: &'a Control<'a>) -> Self {
        Self {
            files,
            control,
            learnt: Learnt::default(),
            reported: 0,
            buffers: Vec::new(),
            arena: Vec::new(),
        }
    }

    fn report(&mut self) {
        let now = self.learnt.cost.bytes;
        self.control
            .progress
            .bytes_read
            .fetch_add(now - self.reported, Ordering::Relaxed);
        self.reported = now;
    }

    fn finish(&mut self, group: usize) {
        if !self.control.stopped() {
            self.learnt.finished.push(group);
        }
    }

    pub(crate) fn aside(&mut self, id: FileId, trouble: Trouble) {
        self.learnt.aside.push(id);
        self.learnt
            .skipped
            .note(self.files.path(id), trouble.reason, trouble.detail);
    }

    fn group(&mut self, members: &[FileId], size: u64) {
        let any_known = members.iter().any(|id| self.files.hash(*id).is_some());
        match size > SMALL {
            true => self.large(members),
            false if any_known => self.hash_all(members),
            false => self.small(members, size as usize),
        }
    }

    /// Reads a few small files into memory and compares each with every different content.
    fn small(&mut self, members: &[FileId], size: usize) {
        let mut arena = std::mem::take(&mut self.arena);
        if arena.len() < members.len() * size {
            arena.resize(members.len() * size, 0);
        }
        let mut slots = arena.chunks_exact_mut(size);
        let mut contents: Vec<(&[u8], Vec<FileId>)> = Vec::new();
        for id in members {
            let Some(slot) = slots.next() else { break };
            let path = self.files.path(*id);
            if let Err(trouble) = self.learnt.cost.whole(&path, self.files.file(*id), slot) {
                self.aside(*id, trouble);
                continue;
            }
            let slot: &[u8] = slot;
            match contents.iter_mut().find(|(content, _)| *content == slot) {
                Some((_, same)) => same.push(*id),
                None => contents.push((slot, vec![*id])),
            }
        }
        for (content, same) in contents {
            if same.len() > 1 {
                let hash = *blake3::hash(content).as_bytes();
                self.learnt.hashes.extend(same.iter().map(|id| (*id, hash)));
            }
        }
        self.arena = arena;
    }

    /// Hashes each file whose hash is not known.
    pub(crate) fn hash_all(&mut self, members: &[FileId]) {
        let mut buffer = self.buffer();
        for id in members {
            if self.files.hash(*id).is_some() || self.control.stopped() {
                continue;
            }
            let path = self.files.path(*id);
            let file = self.files.file(*id);
            let stop = || self.control.stopped();
            let cost = &mut self.learnt.cost;
            let done = if file.id.size <= SMALL {
                let content = &mut buffer[..file.id.size as usize];
                cost.whole(&path, file, content)
                    .map(|()| Some(*blake3::hash(content).as_bytes()))
            } else {
                cost.open(&path)
                    .and_then(|fd| cost.hash(&fd, file, &mut buffer, &stop))
            };
            match done {
                Ok(Some(hash)) => self.learnt.hashes.push((*id, hash)),
                Ok(None) => {}
                Err(trouble) => self.aside(*id, trouble),
            }
            self.report();
        }
        self.buffers.push(buffer);
    }

    fn probe_all(&mut self, members: &[FileId]) {
        for id in members {
            if let Some(key) = self.probe_one(*id) {
                self.learnt.probes.push((*id, key));
            }
        }
    }

    /// Opens and probes one large file.
    pub(crate) fn probe_one(&mut self, id: FileId) -> Option<[u8; 16]> {
        let open = self.open_all(&[id]).pop()?;
        self.probe(&open)
    }

    fn probe(&mut self, open: &Open) -> Option<[u8; 16]> {
        let mut blocks = [0; 3 * PROBE];
        let size = self.files.file(open.id).id.size;
        match self.learnt.cost.probe(&open.fd, size, &mut blocks) {
            Ok(()) => {
                let mut key = [0; 16];
                key.copy_from_slice(&blake3::hash(&blocks).as_bytes()[..16]);
                Some(key)
            }
            Err(trouble) => {
                self.aside(open.id, trouble);
                None
            }
        }
    }

    fn open_all(&mut self, members: &[FileId]) -> Vec<Open> {
        let mut open = Vec::with_capacity(members.len());
        for id in members {
            match self.learnt.cost.open(&self.files.path(*id)) {
                Ok(fd) => {
                    // Probes jump; read-ahead around them would only cost.
                    let advice = rustix::fs::Advice::Random;
                    let _ = rustix::fs::fadvise(&fd, 0, None, advice);
                    open.push(Open {
                        id: *id,
                        fd,
                        holes: Holes::new(self.files.file(*id).is_sparse()),
                    });
                }
                Err(trouble) => self.aside(*id, trouble),
            }
        }
        open
    }

    /// Probes a group of large files and reads on only where the probes agree.
    fn large(&mut self, members: &[FileId]) {
        let mut probed = Vec::with_capacity(members.len());
        for open in self.open_all(members) {
            if let Some(key) = self.probe(&open) {
                probed.push((key, open));
            }
        }
        probed.sort_by_key(|one| one.0);
        let mut same: Vec<Open> = Vec::new();
        let mut key = None;
        for (next, open) in probed {
            if key != Some(next) {
                self.decide(std::mem::take(&mut same));
                key = Some(next);
            }
            same.push(open);
        }
        self.decide(same);
    }

    fn decide(&mut self, same: Vec<Open>) {
        if same.len() < 2 {
            return;
        }
        if same.iter().any(|open| self.files.hash(open.id).is_some()) {
            let ids: Vec<FileId> = same.iter().map(|open| open.id).collect();
            drop(same);
            self.hash_all(&ids);
        } else {
            self.side_by_side(same);
        }
    }

    /// Reads files of one size in step and splits them where they differ.
    fn side_by_side(&mut self, open: Vec<Open>) {
        let Some(first) = open.first() else { return };
        let size = self.files.file(first.id).id.size;
        for one in &open {
            let advice = rustix::fs::Advice::Sequential;
            let _ = rustix::fs::fadvise(&one.fd, 0, None, advice);
        }
        let mut classes = vec![Class {
            members: open,
            hasher: blake3::Hasher::new(),
        }];
        let mut offset = 0;
        while offset < size && !classes.is_empty() && !self.control.stopped() {
            let hole = classes
                .iter_mut()
                .flat_map(|class| &mut class.members)
                .map(|open| open.holes.at(&open.fd, offset, size))
                .min()
                .unwrap_or(offset);
            if hole > offset {
                for class in &mut classes {
                    zeros(&mut class.hasher, hole - offset);
                }
                offset = hole;
                continue;
            }
            let length = CHUNK.min((size - offset) as usize);
            let mut next = Vec::with_capacity(classes.len());
            for class in classes {
                self.step(class, offset, length, &mut next);
            }
            classes = next;
            offset += length as u64;
            self.report();
        }
        if offset < size {
            return;
        }
        for class in classes {
            let hash = *class.hasher.finalize().as_bytes();
            for open in class.members {
                match unchanged(&open.fd, self.files.file(open.id)) {
                    Ok(()) => self.learnt.hashes.push((open.id, hash)),
                    Err(trouble) => self.aside(open.id, trouble),
                }
            }
        }
    }

    /// Reads one chunk of each file of a class; those that agree stay together, lone ones leave.
    fn step(&mut self, class: Class, offset: u64, length: usize, into: &mut Vec<Class>) {
        let mut parts: Vec<(Box<[u8]>, Vec<Open>)> = Vec::new();
        let mut scratch = self.buffer();
        for open in class.members {
            let chunk = &mut scratch[..length];
            if let Err(trouble) = self.learnt.cost.fill(&open.fd, chunk, offset) {
                self.aside(open.id, trouble);
                continue;
            }
            match parts
                .iter_mut()
                .find(|(other, _)| other[..length] == *chunk)
            {
                Some((_, same)) => same.push(open),
                None => {
                    let kept = std::mem::replace(&mut scratch, self.buffer());
                    parts.push((kept, vec![open]));
                }
            }
        }
        self.buffers.push(scratch);
        for (content, members) in parts {
            if members.len() > 1 {
                let mut hasher = class.hasher.clone();
                hasher.update(&content[..length]);
                into.push(Class { members, hasher });
            }
            self.buffers.push(content);
        }
    }

    fn buffer(&mut self) -> Box<[u8]> {
        self.buffers
            .pop()
            .unwrap_or_else(|| vec![0; CHUNK].into_boxed_slice())
    }
}

/// Bytes that will be read at most, for the estimate of time left.
pub(crate) fn planned(groups: &[SizeGroup]) -> u64 {
    groups
        .iter()
        .map(|group| group.size.saturating_mul(group.files.len() as u64))
        .sum()
}
