//! Keeps the folders of the index in memory during a walk, so that the walk finds the block of a folder by its path.

use crate::store::SpillArray;
use std::sync::atomic::{AtomicU64, Ordering};

/// Blocks by the absolute paths of their folders.
#[derive(Default, Debug)]
pub struct Memory {
    bytes: SpillArray<u8>,
    /// Rows, ordered by path after [`Memory::settle`].
    rows: SpillArray<Row>,
    /// Hash table from paths to rows: open addressing, length a power of two, at most half full. A slot contains
    /// [`FREE`] or the number of a row. A binary search would be slower, because each of its steps waits for memory.
    slots: SpillArray<u32>,
    /// One bit per row: whether the walk found the folder with at least one file.
    seen: Vec<AtomicU64>,
}

/// Marks an empty slot.
const FREE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Row {
    at: u64,
    path: u32,
    block: u32,
}

impl Memory {
    /// Adds a folder with its block.
    pub(crate) fn add(&mut self, path: &[u8], block: &[u8]) {
        let row = (u32::try_from(path.len()), u32::try_from(block.len()));
        // An entry that is too long is not remembered, so its folder is read again.
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

    /// Sorts the rows. A folder that is below two roots counts once.
    pub(crate) fn settle(&mut self) {
        let path = |row: &Row| path_of(&self.bytes, row);
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
        self.slots
            .resize((self.rows.len() * 2).next_power_of_two(), FREE);
        for number in 0..self.rows.len() {
            let mut at = self.slot(path_of(&self.bytes, &self.rows[number]));
            while self.slots[at] != FREE {
                at = (at + 1) & (self.slots.len() - 1);
            }
            self.slots[at] = crate::table::index(number);
        }
        self.seen = (0..self.rows.len().div_ceil(64))
            .map(|_| AtomicU64::new(0))
            .collect();
    }

    pub(crate) fn folders(&self) -> usize {
        self.rows.len()
    }

    /// Returns the approximate number of hashes in the blocks.
    pub(crate) fn hashes(&self) -> usize {
        self.bytes.len() / crate::blob::MEAN
    }

    /// Returns whether the index had no folders.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn path(&self, row: &Row) -> &[u8] {
        path_of(&self.bytes, row)
    }

    /// Returns the slot at which the search for a path begins.
    fn slot(&self, path: &[u8]) -> usize {
        twox_hash::XxHash3_128::oneshot(path) as usize & (self.slots.len() - 1)
    }

    /// Returns the block of a folder and its row number.
    pub(crate) fn find(&self, path: &[u8]) -> Option<(usize, &[u8])> {
        if self.is_empty() {
            return None;
        }
        let mut at = self.slot(path);
        while self.slots[at] != FREE {
            let number = self.slots[at] as usize;
            let row = &self.rows[number];
            if self.path(row) == path {
                let block = row.at as usize + row.path as usize;
                return Some((number, &self.bytes[block..][..row.block as usize]));
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
        None
    }

    /// Marks a folder as existing and not empty.
    pub(crate) fn mark(&self, number: usize) {
        self.seen[number / 64].fetch_or(1 << (number % 64), Ordering::Relaxed);
    }

    /// Returns the folders that the walk did not mark: they no longer exist or are empty.
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

fn path_of<'a>(bytes: &'a [u8], row: &Row) -> &'a [u8] {
    &bytes[row.at as usize..][..row.path as usize]
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
