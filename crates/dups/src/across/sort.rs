//! Sorts more records than fit into memory: writes sorted runs to an unnamed file and merges them.

use rustix::fd::OwnedFd;
use std::fs::File;
use std::io::{BufReader, BufWriter, Error, Read, Result, Seek as _, Write as _};

/// Number of bytes of records that are sorted in memory at once.
const MEMORY: usize = 64 << 20;
/// Maximum number of runs that are merged at once.
pub const FAN: usize = 128;
/// Read-ahead of each run, in bytes.
const AHEAD: usize = 128 << 10;

/// Collects records in any order. Records are compared bytewise, so numbers must be big-endian.
pub struct Sorter<const N: usize> {
    buffer: Vec<[u8; N]>,
    most: usize,
    runs: Vec<File>,
}

impl<const N: usize> Default for Sorter<N> {
    fn default() -> Self {
        Self::with_memory(MEMORY)
    }
}

impl<const N: usize> Sorter<N> {
    /// Creates a sorter that uses this many bytes of memory.
    pub fn with_memory(bytes: usize) -> Self {
        Self {
            buffer: Vec::new(),
            most: (bytes / N).max(1),
            runs: Vec::new(),
        }
    }

    /// Adds a record to those that will be sorted.
    pub fn push(&mut self, record: [u8; N]) -> Result<()> {
        if self.buffer.len() == self.most {
            self.buffer.sort_unstable();
            let run = write::<N>(self.buffer.drain(..).map(Ok))?;
            self.runs.push(run);
            if self.runs.len() == 2 * FAN {
                // Limits the open runs to the number of the final merge.
                let some = merge_runs::<N>(self.runs.drain(..FAN).collect())?;
                self.runs.push(write::<N>(some)?);
            }
        }
        self.buffer.push(record);
        Ok(())
    }

    /// Returns all records in sorted order.
    pub fn finish(mut self) -> Result<Merge<N, SortedRun<N>>> {
        self.buffer.sort_unstable();
        let mut runs: Vec<SortedRun<N>> = Vec::new();
        while self.runs.len() > FAN {
            let some = merge_runs::<N>(self.runs.drain(..FAN).collect())?;
            self.runs.push(write::<N>(some)?);
        }
        for file in self.runs {
            runs.push(SortedRun::file(file)?);
        }
        runs.push(SortedRun::Memory(self.buffer.into_iter()));
        Merge::of(runs)
    }
}

fn merge_runs<const N: usize>(files: Vec<File>) -> Result<Merge<N, SortedRun<N>>> {
    let runs = files.into_iter().map(SortedRun::file);
    Merge::of(runs.collect::<Result<_>>()?)
}

/// Writes records to an unnamed file.
pub fn write<const N: usize>(records: impl Iterator<Item = Result<[u8; N]>>) -> Result<File> {
    let file: OwnedFd = crate::store::create_unnamed_file().ok_or_else(|| {
        Error::other(format!(
            "cannot make a file without a name in {}; name another folder with TMPDIR",
            crate::store::temporary_folder().display()
        ))
    })?;
    let mut out = BufWriter::with_capacity(AHEAD, File::from(file));
    for record in records {
        out.write_all(&record?)?;
    }
    out.into_inner()
        .map_err(std::io::IntoInnerError::into_error)
}

/// A sorted run of records.
pub enum SortedRun<const N: usize> {
    /// The records are in memory.
    Memory(std::vec::IntoIter<[u8; N]>),
    /// The records are in an unnamed file.
    File(BufReader<File>),
}

impl<const N: usize> SortedRun<N> {
    /// Uses a file of records from its beginning as a run.
    pub fn file(mut file: File) -> Result<Self> {
        file.rewind()?;
        Ok(Self::File(BufReader::with_capacity(AHEAD, file)))
    }
}

impl<const N: usize> Iterator for SortedRun<N> {
    type Item = Result<[u8; N]>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Memory(records) => records.next().map(Ok),
            Self::File(file) => {
                let mut record = [0; N];
                match file.read_exact(&mut record) {
                    Ok(()) => Some(Ok(record)),
                    // Records are written completely, so this is the end.
                    Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => None,
                    Err(error) => Some(Err(error)),
                }
            }
        }
    }
}

/// Merges sorted runs into one sorted sequence.
pub struct Merge<const N: usize, R> {
    runs: Vec<R>,
    /// The next record of each run.
    heads: Vec<[u8; N]>,
    /// Heap of the unfinished runs, the smallest head first. Each entry contains the first bytes of the head.
    /// These bytes decide almost every comparison of hashes, so whole records are rarely compared or moved.
    heap: Vec<(u64, usize)>,
}

impl<const N: usize, E, R: Iterator<Item = std::result::Result<[u8; N], E>>> Merge<N, R> {
    /// Creates a merge of sorted runs.
    pub fn of(runs: Vec<R>) -> std::result::Result<Self, E> {
        let mut merge = Self {
            heads: vec![[0; N]; runs.len()],
            heap: Vec::with_capacity(runs.len()),
            runs,
        };
        for (number, run) in merge.runs.iter_mut().enumerate() {
            if let Some(head) = run.next().transpose()? {
                merge.heads[number] = head;
                merge.heap.push((begin(&head), number));
            }
        }
        for at in (0..merge.heap.len() / 2).rev() {
            merge.sink(at);
        }
        Ok(merge)
    }

    fn less(&self, a: (u64, usize), b: (u64, usize)) -> bool {
        match a.0 == b.0 {
            true => (&self.heads[a.1], a.1) < (&self.heads[b.1], b.1),
            false => a.0 < b.0,
        }
    }

    /// Restores the heap order from entry `at` downwards.
    fn sink(&mut self, mut at: usize) {
        let one = self.heap[at];
        loop {
            let mut child = 2 * at + 1;
            if child >= self.heap.len() {
                break;
            }
            if child + 1 < self.heap.len() && self.less(self.heap[child + 1], self.heap[child]) {
                child += 1;
            }
            if !self.less(self.heap[child], one) {
                break;
            }
            self.heap[at] = self.heap[child];
            at = child;
        }
        self.heap[at] = one;
    }
}

/// Returns the first eight bytes as a number that sorts like the records.
fn begin<const N: usize>(record: &[u8; N]) -> u64 {
    let mut first = [0; 8];
    let length = N.min(8);
    first[..length].copy_from_slice(&record[..length]);
    u64::from_be_bytes(first)
}

impl<const N: usize, E, R: Iterator<Item = std::result::Result<[u8; N], E>>> Iterator
    for Merge<N, R>
{
    type Item = std::result::Result<[u8; N], E>;

    fn next(&mut self) -> Option<Self::Item> {
        let (_, number) = *self.heap.first()?;
        let record = self.heads[number];
        match self.runs[number].next() {
            Some(Ok(next)) => {
                self.heads[number] = next;
                self.heap[0].0 = begin(&next);
            }
            Some(Err(error)) => return Some(Err(error)),
            None => {
                self.heap.swap_remove(0);
            }
        }
        if !self.heap.is_empty() {
            self.sink(0);
        }
        Some(Ok(record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn like_a_sort(mut records in proptest::collection::vec(any::<[u8; 3]>(), 0..900), memory in 1..40_usize) {
            let mut sorter = Sorter::<3>::with_memory(memory);
            for record in &records {
                sorter.push(*record).unwrap();
            }
            let sorted: Vec<[u8; 3]> = sorter.finish().unwrap().map(Result::unwrap).collect();
            records.sort_unstable();
            prop_assert_eq!(sorted, records);
        }
    }
}
