//! Worker of stage 3 (comparison): opens, probes, hashes and compares files.

use crate::Control;
use crate::compare::Learnt;
use crate::hash::Hasher;
use crate::open_folders::Doors;
use crate::read::{
    Buffer, CHUNK, Holes, LINE, LONG_CHUNK, PROBE, SMALL, Trouble, unchanged, zeros,
};
use crate::table::{FileId, Files};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

/// State of one worker thread.
pub(crate) struct Worker<'a> {
    files: &'a Files,
    doors: &'a Doors,
    control: &'a Control<'a>,
    pub learnt: Learnt,
    reported: u64,
    /// Maximum bytes read from a file at once; length of each buffer.
    pub longest: usize,
    buffers: Vec<Buffer>,
    arena: Buffer,
}

/// An open file that is being compared.
pub(crate) struct Open {
    id: FileId,
    fd: OwnedFd,
    holes: Holes,
}

/// Files whose content is equal so far, and the hash of this common part.
struct Class {
    members: Vec<Open>,
    hasher: Hasher,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(files: &'a Files, doors: &'a Doors, control: &'a Control<'a>) -> Self {
        Self {
            files,
            doors,
            control,
            learnt: Learnt::default(),
            reported: 0,
            longest: LONG_CHUNK,
            buffers: Vec::new(),
            arena: Buffer::new(0),
        }
    }

    pub(crate) fn report(&mut self) {
        let now = self.learnt.cost.bytes;
        self.control
            .progress
            .bytes_read
            .fetch_add(now - self.reported, Ordering::Relaxed);
        self.reported = now;
    }

    pub(crate) fn finish(&mut self, group: usize) {
        if !self.control.stopped() {
            self.learnt.finished.push(group);
        }
    }

    fn aside(&mut self, id: FileId, trouble: Trouble) {
        self.learnt.aside.push(id);
        self.learnt
            .skipped
            .note(self.files.path(id), trouble.reason, trouble.detail);
    }

    pub(crate) fn group(&mut self, members: &[FileId], size: u64) {
        let any_known = members.iter().any(|id| self.files.hash(*id).is_some());
        match size > SMALL {
            true => self.large(members),
            false if any_known => self.hash_all(members),
            false => self.small(members, size as usize),
        }
    }

    fn open(&mut self, id: FileId) -> Result<OwnedFd, Trouble> {
        self.learnt.cost.opens += 1;
        self.doors.open(self.files, id).map_err(Trouble::io)
    }

    /// Reads a small file completely in one call, and checks that it is unchanged.
    fn whole(&mut self, id: FileId, into: &mut [u8]) -> Result<(), Trouble> {
        let fd = self.open(id)?;
        self.learnt.cost.fill(&fd, into, 0)?;
        unchanged(&fd, self.files.file(id))
    }

    /// Reads a few small files into memory, and compares each file with every different content.
    fn small(&mut self, members: &[FileId], size: usize) {
        let slot = size.next_multiple_of(LINE);
        if self.arena.len() < members.len() * slot {
            self.arena = Buffer::new(members.len() * slot);
        }
        let mut arena = std::mem::replace(&mut self.arena, Buffer::new(0));
        let mut slots = arena.chunks_exact_mut(slot);
        let mut contents: Vec<(&[u8], Vec<FileId>)> = Vec::new();
        for id in members {
            let Some(slot) = slots.next().and_then(|slot| slot.get_mut(..size)) else {
                break;
            };
            if let Err(trouble) = self.whole(*id, slot) {
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
                let hash = self.files.kind.of(content);
                self.learnt.hashes.extend(same.iter().map(|id| (*id, hash)));
            }
        }
        self.arena = arena;
    }

    /// Hashes each file without a known hash.
    pub(crate) fn hash_all(&mut self, members: &[FileId]) {
        let mut buffer = self.buffer();
        for id in members {
            if self.files.hash(*id).is_some() || self.control.stopped() {
                continue;
            }
            let file = self.files.file(*id);
            let kind = self.files.kind;
            let done = if file.id.size <= SMALL {
                let content = &mut buffer[..file.id.size as usize];
                self.whole(*id, content).map(|()| Some(kind.of(content)))
            } else {
                let control = self.control;
                self.open(*id).and_then(|fd| {
                    let cost = &mut self.learnt.cost;
                    cost.hash(&fd, file, kind, &mut buffer, &|| control.stopped())
                })
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

    pub(crate) fn probe_all(&mut self, members: &[FileId]) {
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

    pub(crate) fn open_all(&mut self, members: &[FileId]) -> Vec<Open> {
        let mut open = Vec::with_capacity(members.len());
        for id in members {
            match self.open(*id) {
                Ok(fd) => {
                    // Probes read distant blocks, for which read-ahead is useless.
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

    /// Reads the probes of a group of large files. Continues only with files whose probes agree.
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

    /// Reads files of one size in parallel and separates them where they differ.
    pub(crate) fn side_by_side(&mut self, open: Vec<Open>) {
        let Some(first) = open.first() else { return };
        let size = self.files.file(first.id).id.size;
        for one in &open {
            let advice = rustix::fs::Advice::Sequential;
            let _ = rustix::fs::fadvise(&one.fd, 0, None, advice);
        }
        let mut classes = vec![Class {
            members: open,
            hasher: self.files.kind.hasher(),
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
            let length = self.stride(offset).min((size - offset) as usize);
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
            let hash = class.hasher.finish();
            for open in class.members {
                match unchanged(&open.fd, self.files.file(open.id)) {
                    Ok(()) => self.learnt.hashes.push((open.id, hash)),
                    Err(trouble) => self.aside(open.id, trouble),
                }
            }
        }
    }

    /// Reads one chunk of each file of a class. Files that agree stay together. A file that agrees with no other file
    /// is dropped.
    fn step(&mut self, class: Class, offset: u64, length: usize, into: &mut Vec<Class>) {
        let mut parts: Vec<(Buffer, Vec<Open>)> = Vec::new();
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

    /// Returns the number of bytes to read next: few at first, because most differences are early, and never more than
    /// a quarter of the bytes that agreed so far. The read ends at a multiple of [`CHUNK`], on which BLAKE3 is fast.
    fn stride(&self, offset: u64) -> usize {
        let quarter = usize::try_from(offset / 4).unwrap_or(usize::MAX);
        let length = 1 << quarter.max(1).ilog2();
        length.clamp(CHUNK, self.longest) - offset as usize % CHUNK
    }

    /// Allocates a buffer. Its pages use memory only after their first use.
    fn buffer(&mut self) -> Buffer {
        self.buffers
            .pop()
            .unwrap_or_else(|| Buffer::new(self.longest))
    }
}
