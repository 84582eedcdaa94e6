//! Stage 2: groups files of equal size, counts hard links once, and skips groups that were already compared and are
//! unchanged. After the comparison, groups files of equal content.

use crate::mount_identity::find_possible_aliases;
use crate::store::SpillArray;
use crate::table::{FileId, Files, NO_HASH};
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, HashSet};

/// Files of one size with at least two inodes.
#[derive(Debug, Clone, Copy)]
pub struct SizeGroup {
    /// Size of each file in bytes.
    pub size: u64,
    first: u32,
    count: u32,
}

impl SizeGroup {
    /// Creates a group of `count` files from position `first`.
    pub(crate) fn new(size: u64, first: usize, count: usize) -> Self {
        Self {
            size,
            first: crate::table::index(first),
            count: crate::table::index(count),
        }
    }

    /// Returns the positions of the files in [`Sizes::order`], one name per inode.
    pub fn files(&self) -> std::ops::Range<usize> {
        self.first as usize..self.first as usize + self.count as usize
    }
}

/// All files, ordered so that equal sizes and equal inodes are neighbours.
#[derive(Debug, Default)]
pub struct Sizes {
    /// One name per inode, largest files first.
    pub order: SpillArray<FileId>,
    /// Groups within `order` that still have to be compared.
    pub open: SpillArray<SizeGroup>,
    /// Additional hard links, each with the name that represents its inode in `order`.
    pub links: SpillArray<(FileId, FileId)>,
}

/// Sorts and groups the files by size. With `all`, includes files with a unique size, because every file is hashed.
pub fn by_size(files: &Files, all: bool) -> Sizes {
    let open = Unsettled::of(files, all);
    let mut keyed: SpillArray<(u64, u64, FileId)> = (0..files.files.len() as u32)
        .filter(|id| !files.file(*id).is_aside() && open.may_have(files.file(*id).id.size))
        .map(|id| {
            let file = files.file(id);
            (u64::MAX - file.id.size, file.id.ino, id)
        })
        .collect();
    keyed.sort_unstable();
    let mut sizes = Sizes::default();
    let least = if all { 1 } else { 2 };
    for same_size in keyed.chunk_by(|a, b| a.0 == b.0) {
        let begin = sizes.order.len();
        for same_ino in same_size.chunk_by(|a, b| a.1 == b.1) {
            inodes(files, same_ino, &mut sizes);
        }
        let members = &sizes.order[begin..];
        if members.len() < least {
            sizes.order.truncate(begin);
            // Names of a unique inode stay in `links`. This is harmless, because they get no hash.
        } else if !is_settled(files, members, all) {
            sizes.open.push(SizeGroup {
                size: u64::MAX - same_size[0].0,
                first: begin as u32,
                count: members.len() as u32,
            });
        }
    }
    sizes
}

/// Filter of the sizes for which at least one file has no hash. Like a Bloom filter, it may report a size too many but
/// never misses one.
pub(crate) struct Unsettled(Vec<bool>);

impl Unsettled {
    const SLOTS: usize = 1 << 16;

    pub fn of(files: &Files, all: bool) -> Self {
        let mut slots = vec![all; Self::SLOTS];
        for file in files.files.iter().filter(|file| file.hash == NO_HASH) {
            slots[file.id.size as usize % Self::SLOTS] = true;
        }
        Self(slots)
    }

    pub fn may_have(&self, size: u64) -> bool {
        self.0[size as usize % Self::SLOTS]
    }
}

/// Selects one name per inode. Inode numbers are compared only within a file system, because they are unique only
/// there.
fn inodes(files: &Files, same_ino: &[(u64, u64, FileId)], sizes: &mut Sizes) {
    let begin = sizes.order.len();
    for (_, _, id) in same_ino {
        let fs = files.file(*id).fs;
        let first = sizes.order[begin..]
            .iter()
            .find(|one| files.file(**one).fs == fs)
            .copied();
        match first {
            Some(first) => sizes.links.push((*id, first)),
            None => sizes.order.push(*id),
        }
    }
}

/// Returns whether the files were already compared with each other and are unchanged: all hashes are known, or
/// all files were compared in the same scan.
fn is_settled(files: &Files, members: &[FileId], all: bool) -> bool {
    let first = files.file(members[0]).generation;
    members.iter().all(|id| files.hash(*id).is_some())
        || !all && first != 0 && members.iter().all(|id| files.file(*id).generation == first)
}

/// Files of equal content with at least two inodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DuplicateGroup<'a> {
    /// Size of each file in bytes.
    pub size: u64,
    /// One name per inode, sorted by path.
    pub files: &'a [FileId],
    /// Further hard links: (name, representative in `files`).
    pub links: &'a [(FileId, FileId)],
    /// Number of files with their own blocks; files that share all blocks (reflinks) count once.
    pub distinct: u64,
    /// Number of files that may be the same as another file of the group. This is possible if their file systems may
    /// show the same files (overlayfs, FUSE, one disk mounted twice). Removing these files is not counted as a gain.
    pub doubtful: u64,
    gain: u64,
}

impl DuplicateGroup<'_> {
    /// Returns the number of bytes that are freed if only one copy remains. Holes and blocks that are known to be
    /// shared do not count.
    pub fn gain(&self) -> u64 {
        self.gain
    }

    /// Returns the part of the gain that hard links cannot free, because they do not cross file systems or subvolumes.
    pub fn gain_across(&self, files: &Files) -> u64 {
        self.gain_between(files, |fs| fs)
    }

    /// Returns the part of the gain that requires deleting or moving files: neither hard links nor shared blocks cross
    /// file systems. The subvolumes of a btrfs file system can share blocks.
    pub fn gain_across_disks(&self, files: &Files) -> u64 {
        self.gain_between(files, |fs| files.pool(fs))
    }

    /// Returns the part of the gain that remains if every place keeps its largest copy. `to_place` maps a file system
    /// to its place: the file system itself, or the file system with all its subvolumes.
    fn gain_between(&self, files: &Files, to_place: impl Fn(u16) -> u16) -> u64 {
        let place = |id: &FileId| to_place(files.file(*id).fs);
        let Some(first) = self.files.first().map(place) else {
            return 0;
        };
        if self.gain == 0 || self.doubtful > 0 || self.files.iter().all(|id| place(id) == first) {
            return 0;
        }
        let mut seen: HashSet<(u16, u64)> = HashSet::new();
        // For each place: bytes of all copies, and of the largest.
        let mut places: BTreeMap<u16, (u64, u64)> = BTreeMap::new();
        for id in self.files {
            let share = files.share(*id);
            if share.is_none_or(|share| seen.insert((files.pool(files.file(*id).fs), share))) {
                let own = files.allocated(*id);
                let known = places.entry(place(id)).or_default();
                *known = (known.0.saturating_add(own), known.1.max(own));
            }
        }
        let within: u64 = places.values().map(|(all, largest)| all - largest).sum();
        self.gain.saturating_sub(within)
    }

    /// Returns the number of copies beyond the first. Files that may be the same as another file are not counted.
    pub fn redundant(&self) -> u64 {
        self.files.len() as u64 - 1 - self.doubtful.saturating_sub(1)
    }

    /// Iterates over all names of the group, including hard links.
    pub fn names(&self) -> impl Iterator<Item = FileId> + '_ {
        self.files
            .iter()
            .copied()
            .chain(self.links.iter().map(|one| one.0))
    }
}

/// Groups of files of equal content.
#[derive(Debug, Default)]
pub struct Groups {
    heads: SpillArray<Head>,
    members: SpillArray<FileId>,
    links: SpillArray<(FileId, FileId)>,
}

#[derive(Debug, Clone, Copy)]
struct Head {
    size: u64,
    gain: u64,
    first: u32,
    count: u32,
    first_link: u32,
    links: u32,
    distinct: u32,
    doubtful: u32,
    /// First bytes of the hash. They make the order of groups with equal gain independent of the order of the walk.
    tie: u64,
}

impl Groups {
    /// Returns the number of groups in the list.
    pub fn len(&self) -> usize {
        self.heads.len()
    }

    /// Returns whether there are no groups.
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// Returns a group by its position.
    ///
    /// # Panics
    /// The position does not exist.
    pub fn at(&self, number: usize) -> DuplicateGroup<'_> {
        let head = &self.heads[number];
        DuplicateGroup {
            size: head.size,
            files: &self.members[head.first as usize..][..head.count as usize],
            links: &self.links[head.first_link as usize..][..head.links as usize],
            distinct: head.distinct.into(),
            doubtful: head.doubtful.into(),
            gain: head.gain,
        }
    }

    /// Iterates over all groups.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = DuplicateGroup<'_>> + '_ {
        (0..self.heads.len()).map(|number| self.at(number))
    }

    /// Keeps only the first `most` groups.
    pub fn truncate(&mut self, most: usize) {
        self.heads.truncate(most);
    }

    /// Keeps the groups that `wanted` selects.
    pub fn retain(&mut self, mut wanted: impl FnMut(DuplicateGroup<'_>) -> bool) {
        let mut kept = 0;
        for number in 0..self.heads.len() {
            if wanted(self.at(number)) {
                self.heads[kept] = self.heads[number];
                kept += 1;
            }
        }
        self.heads.truncate(kept);
    }

    /// Removes files, and groups with fewer than two remaining files.
    pub fn retain_files(&mut self, wanted: impl Fn(FileId) -> bool) {
        for head in self.heads.iter_mut() {
            let members = &mut self.members[head.first as usize..][..head.count as usize];
            let mut kept = 0;
            for at in 0..members.len() {
                if wanted(members[at]) {
                    members[kept] = members[at];
                    kept += 1;
                }
            }
            head.count = kept as u32;
        }
        self.retain(|group| group.files.len() > 1);
    }

    /// Counts again how many copies have their own blocks.
    pub(crate) fn weigh(&mut self, files: &Files, number: usize) {
        let group = self.at(number);
        // Groups of reflinks, each counted as one.
        let mut shared: Vec<(u16, u64, u64)> = Vec::new();
        let (mut distinct, mut bytes, mut most) = (0, 0_u64, 0);
        let doubtful = mark_doubtful(files, group.files);
        let in_doubt = |at: usize| doubtful.get(at).is_some_and(|one| *one);
        for (at, id) in group.files.iter().enumerate() {
            if in_doubt(at) {
                continue;
            }
            let own = files.allocated(*id);
            match files.share(*id) {
                Some(share) => shared.push((files.file(*id).fs, share, own)),
                None => {
                    distinct += 1;
                    bytes = bytes.saturating_add(own);
                    most = most.max(own);
                }
            }
        }
        // Subvolumes and snapshots of one btrfs share blocks.
        shared.iter_mut().for_each(|one| one.0 = files.pool(one.0));
        shared.sort_unstable();
        shared.dedup_by_key(|one| (one.0, one.1));
        for (_, _, own) in &shared {
            bytes = bytes.saturating_add(*own);
            most = most.max(*own);
        }
        let head = &mut self.heads[number];
        head.doubtful = doubtful.iter().filter(|one| **one).count() as u32;
        // The doubtful files contain at least one file, which stays.
        let staying = head.doubtful > 0;
        head.distinct = distinct + shared.len() as u32 + u32::from(staying);
        head.gain = if staying { bytes } else { bytes - most };
    }

    /// Sorts the groups by gain, largest first.
    pub(crate) fn sort(&mut self) {
        let most = |head: &Head| (Reverse((head.gain, head.size)), head.tie);
        self.heads.sort_unstable_by_key(most);
    }
}

/// For each file, returns whether it may be the same file as another file in the list. Returns an empty list if this is
/// ruled out for all files.
pub(crate) fn mark_doubtful(files: &Files, ids: &[FileId]) -> Vec<bool> {
    let folder = |id: &FileId| match files.machine(*id) {
        "" => Some(files.dir_path(files.file(*id).dir)),
        _ => None,
    };
    doubtful_places(files, ids.iter().map(folder))
}

/// For each folder, returns whether it may show the same files as another folder. Returns an empty list if this is
/// ruled out for all folders. Folders of other machines are never marked.
pub(crate) fn doubtful_places<'a>(
    files: &Files,
    folders: impl Iterator<Item = Option<&'a [u8]>>,
) -> Vec<bool> {
    let land = files.roots.landscape();
    if land.is_plain() {
        return Vec::new();
    }
    let grounds: Vec<Option<usize>> = folders.map(|one| land.ground(one?)).collect();
    find_possible_aliases(&grounds, |a, b| land.doubt(a, b))
}

/// Returns the groups of files with equal hash, largest gain first. The names in a group are sorted.
pub fn by_hash(files: &Files) -> Groups {
    let mut groups = Groups::default();
    let ends = bucket_by_content(files, &mut groups.members);
    let mut begin = 0;
    // Overwrites entries that were already read: a group is never longer than its bucket.
    let mut written = 0;
    for end in ends.iter().map(|end| *end as usize) {
        let bucket = begin..end;
        begin = end;
        if bucket.len() > 1 {
            one_group(files, &mut groups, bucket, &mut written);
        }
    }
    groups.members.truncate(written);
    groups.sort();
    groups
}

/// Orders files by content. Returns, for each content number, the end of its files in this order.
pub(crate) fn bucket_by_content(
    files: &Files,
    members: &mut SpillArray<FileId>,
) -> SpillArray<u32> {
    let mut ends: SpillArray<u32> = SpillArray::default();
    ends.resize(files.contents(), 0);
    let mut total = 0;
    for file in files.files.iter().filter(|file| file.hash != NO_HASH) {
        ends[file.hash as usize] += 1;
        total += 1;
    }
    let mut sum = 0;
    for end in ends.iter_mut() {
        sum += std::mem::replace(end, sum);
    }
    members.resize(total, 0);
    for (id, file) in files.files.iter().enumerate() {
        if file.hash != NO_HASH {
            let at = &mut ends[file.hash as usize];
            members[*at as usize] = id as FileId;
            *at += 1;
        }
    }
    ends
}

fn one_group(
    files: &Files,
    groups: &mut Groups,
    bucket: std::ops::Range<usize>,
    written: &mut usize,
) {
    let ids = &mut groups.members[bucket.clone()];
    ids.sort_unstable_by(|a, b| compare_paths(files, *a, *b));
    let first = *written;
    let first_link = groups.links.len();
    let several = has_repeated_inodes(files, ids);
    let mut seen = std::collections::HashMap::new();
    for at in bucket {
        let id = groups.members[at];
        if several && let Some(first) = seen.insert(files.inode(id), id) {
            seen.insert(files.inode(id), first);
            groups.links.push((id, first));
        } else {
            groups.members[*written] = id;
            *written += 1;
        }
    }
    if *written - first < 2 {
        groups.links.truncate(first_link);
        *written = first;
        return;
    }
    let hash = files.hash(groups.members[first]);
    let tie = hash.and_then(|hash| hash.first_chunk());
    let tie = tie.map_or(0, |head| u64::from_be_bytes(*head));
    groups.heads.push(Head {
        size: files.file(groups.members[first]).id.size,
        gain: 0,
        first: first as u32,
        count: (*written - first) as u32,
        first_link: first_link as u32,
        links: (groups.links.len() - first_link) as u32,
        distinct: 0,
        doubtful: 0,
        tie,
    });
    groups.weigh(files, groups.heads.len() - 1);
}

/// Returns whether several files are names of one inode: hard links, one folder scanned under two paths, or a
/// remembered name of a replaced file.
pub(crate) fn has_repeated_inodes(files: &Files, ids: &[FileId]) -> bool {
    if ids.len() > FEW {
        let mut seen = HashSet::with_capacity(ids.len());
        return !ids.iter().all(|id| seen.insert(files.inode(*id)));
    }
    let after = |at: usize| ids[at + 1..].iter();
    (0..ids.len()).any(|at| after(at).any(|id| files.inode(*id) == files.inode(ids[at])))
}

/// Maximum number of files that are compared pairwise instead of by a hash set.
const FEW: usize = 16;

/// Compares the full paths of two files, byte by byte.
pub fn compare_paths(files: &Files, a: FileId, b: FileId) -> Ordering {
    let (one, two) = (files.file(a), files.file(b));
    if one.dir == two.dir {
        return files.name(a).cmp(files.name(b));
    }
    let (left, right) = (files.dir_path(one.dir), files.dir_path(two.dir));
    let common = left.len().min(right.len());
    left[..common].cmp(&right[..common]).then_with(|| {
        let rest_left = left[common..].iter().chain(b"/").chain(files.name(a));
        let rest_right = right[common..].iter().chain(b"/").chain(files.name(b));
        rest_left.cmp(rest_right)
    })
}
