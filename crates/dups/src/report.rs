//! Answers questions about a table of files: which files have no copy, which file has a given path, which groups are
//! still equal.

use crate::group::{Groups, Unsettled};
use crate::store::SpillArray;
use crate::table::{FileId, Files, NO_HASH};
use std::collections::HashMap;

/// Returns the files without a copy: no other inode in the table has the same content. Ordered by folder and
/// name.
///
/// Hard links of one inode with a unique content are unique, too.
pub fn find_uniques(files: &Files) -> Vec<FileId> {
    // For each content: its first file, and whether another inode has it, too.
    let mut first: SpillArray<FileId> = SpillArray::default();
    first.resize(files.contents(), FileId::MAX);
    let mut copied = vec![false; files.contents()];
    for (id, file) in files.files.iter().enumerate() {
        if file.hash == NO_HASH {
            continue;
        }
        let hash = file.hash as usize;
        match first[hash] {
            FileId::MAX => first[hash] = id as FileId,
            one => copied[hash] |= files.inode(one) != files.inode(id as FileId),
        }
    }
    let mut dirs: Vec<u32> = (0..files.dirs.len() as u32).collect();
    if !dirs.is_sorted_by_key(|dir| files.dir_path(*dir)) {
        dirs.sort_by_key(|dir| files.dir_path(*dir));
    }
    let mut found = Vec::new();
    for dir in dirs {
        let begin = found.len();
        found.extend(files.dir_files(dir).filter(|id| {
            let hash = files.file(*id).hash;
            hash == NO_HASH || !copied[hash as usize]
        }));
        found[begin..].sort_unstable_by_key(|id| files.name(*id));
    }
    found
}

/// Returns the results of [`find_uniques`] and [`find_uncompared`] together.
pub fn uniques_and_uncompared(files: &Files) -> (Vec<FileId>, Vec<FileId>) {
    std::thread::scope(|scope| {
        let uncompared = scope.spawn(|| find_uncompared(files));
        let uniques = find_uniques(files);
        let uncompared = crate::pool::join(uncompared);
        (uniques, uncompared)
    })
}

/// Returns the files for which it is unknown whether they have a copy: they have no hash, and were not compared with
/// all files of their size. Causes are scans at different times, a machine that did not hash all files, an interrupted
/// scan, or an unreadable file. The order is that of the table.
pub fn find_uncompared(files: &Files) -> Vec<FileId> {
    let unhashed = || {
        let ids = 0..files.files.len() as FileId;
        ids.filter(|id| files.file(*id).hash == NO_HASH)
    };
    let size = |id: FileId| files.file(id).id.size;
    // For each relevant size: its first file, and whether a file was not compared with it.
    let mut sizes: HashMap<u64, (FileId, bool)> = HashMap::new();
    // A quick test that excludes most sizes.
    let likely = Unsettled::of(files, false);
    for id in unhashed() {
        sizes.entry(size(id)).or_insert((id, false));
    }
    for (id, file) in files.files.iter().enumerate() {
        if likely.may_have(file.id.size)
            && let Some((first, apart)) = sizes.get_mut(&file.id.size)
        {
            *apart = *apart || !were_compared_together(files, *first, id as FileId);
        }
    }
    unhashed()
        .filter(|id| sizes.get(&size(*id)).is_some_and(|one| one.1))
        .collect()
}

/// Returns whether two files are names of one inode, or were last compared in the same scan.
fn were_compared_together(files: &Files, a: FileId, b: FileId) -> bool {
    let (one, other) = (files.file(a), files.file(b));
    files.inode(a) == files.inode(b)
        || one.generation == other.generation
            && one.generation != 0
            && files.machine(a) == files.machine(b)
}

/// Returns the number of the group of each file; `u32::MAX` means no group.
pub fn group_of(files: &Files, groups: &Groups) -> Vec<u32> {
    let mut of = vec![u32::MAX; files.files.len()];
    for (number, group) in groups.iter().enumerate() {
        for id in group.names() {
            of[id as usize] = number as u32;
        }
    }
    of
}

/// Returns the file at a path on this machine.
pub fn find(files: &Files, path: &[u8]) -> Option<FileId> {
    let (folder, name) = crate::name::split(path);
    (0..files.dirs.len() as u32)
        .filter(|dir| files.dir_path(*dir) == folder)
        .flat_map(|dir| files.dir_files(dir))
        .find(|id| files.name(*id) == name && files.machine(*id).is_empty())
}

/// Compares every group byte by byte again. Returns the files that differ from their group now.
pub fn validate(
    files: &Files,
    groups: &Groups,
    control: &crate::Control<'_>,
) -> (crate::Skipped, Vec<FileId>) {
    let (learnt, differing) = crate::compare::verify(files, groups, control);
    (learnt.skipped, differing)
}
