//! What the index remembers, at hand while folders are walked: the block of each folder by its path.

use crate::store::Store;
use std::sync::atomic::{AtomicU64, Ordering};

/// Blocks by the absolute paths of their folders.
#[derive(Default, Debug)]
pub struct Memory {
    bytes: Store<u8>,
    /// In the order of the paths, once [`Memory::settle`] was called.
    rows: Store<Row>,
    /// A bit for each row: whether the walk found the folder and files of it.
    seen: Vec<AtomicU64>,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    at: u64,
    path: u32,
    block: u32,
}

impl Memory {
    /// Adds a folder.
    pub(crate) fn add(&mut self, path: &[u8], block: &[u8]) {
        let row = (u32::try_from(path.len()), u32::try_from(block.len()));
        // What is too long to be remembered is read again.
        if let (Ok(path_length), Ok(block_length)) = row {
            self.rows.push(Row {
                at: self.bytes.len() as u64,
                path: path_length,
                block: block_length,
            });
            self.bytes.extend_from_slice(path);
            self.bytes.extend_from_slice(block);
        }
    }

    /// Puts what was added in order; a folder below two roots counts once.
    pub(crate) fn settle(&mut self) {
        let path = |row: &Row| &self.bytes[row.at as usize..][..row.path as usize];
        if !self.rows.is_sorted_by(|a, b| path(a) < path(b)) {
            self.rows.sort_by(|a, b| path(a).cmp(path(b)));
            let mut kept = 1;
            for at in 1..self.rows.len() {
                if path(&self.rows[at]) != path(&self.rows[kept - 1]) {
                    self.rows[kept] = self.rows[at];
                    kept += 1;
                }
            }
            self.rows.truncate(kept);
        }
        self.seen = (0..self.rows.len().div_ceil(64))
            .map(|_| AtomicU64::new(0))
            .collect();
    }

    /// About how many hashes are remembered.
    pub(crate) fn hashes(&self) -> usize {
        self.bytes.len() / crate::blob::MEAN
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn path(&self, row: &Row) -> &[u8] {
        &self.bytes[row.at as usize..][..row.path as usize]
    }

    /// The block of a folder, and its number.
    pub(crate) fn find(&self, path: &[u8]) -> Option<(usize, &[u8])> {
        let number = self
            .rows
            .binary_search_by(|row| self.path(row).cmp(path))
            .ok()?;
        let row = &self.rows[number];
        let at = row.at as usize + row.path as usize;
        Some((number, &self.bytes[at..][..row.block as usize]))
    }

    /// Notes that a folder is still there and holds files.
    pub(crate) fn mark(&self, number: usize) {
        self.seen[number / 64].fetch_or(1 << (number % 64), Ordering::Relaxed);
    }

    /// Folders that were not marked.
    pub(crate) fn vanished(&self) -> impl Iterator<Item = &[u8]> {
        let marked = |number: usize| {
            self.seen[number / 64].load(Ordering::Relaxed) & 1 << (number % 64) != 0
        };
        self.rows
            .iter()
            .enumerate()
            .filter(move |(number, _)| !marked(*number))
            .map(|(_, row)| self.path(row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_added() {
        let mut memory = Memory::default();
        for number in [5, 3, 8, 3] {
            memory.add(format!("/d{number}").as_bytes(), &[number]);
        }
        memory.settle();
        assert_eq!(memory.find(b"/d3"), Some((0, &[3][..])));
        assert_eq!(memory.find(b"/d8"), Some((2, &[8][..])));
        assert_eq!(memory.find(b"/d4"), None);
        memory.mark(1);
        let left: Vec<&[u8]> = memory.vanished().collect();
        assert_eq!(left, [b"/d3", b"/d8"]);
    }
}
