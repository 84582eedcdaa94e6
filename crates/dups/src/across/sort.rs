//! Sorting more records than memory holds: sorted runs in a file without a name, merged.

use rustix::fd::OwnedFd;
use std::fs::File;
use std::io::{BufReader, BufWriter, Error, Read, Result, Seek as _, Write as _};

/// Bytes of records that are sorted at once.
const MEMORY: usize = 64 << 20;
/// Runs that are merged at once.
pub const FAN: usize = 128;
/// Bytes read ahead of each run.
const AHEAD: usize = 128 << 10;

/// Takes records in any order. They are compared bytewise, so numbers are written big-endian.
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
    /// With so many bytes of memory.
    pub fn with_memory(bytes: usize) -> Self {
        Self {
            buffer: Vec::new(),
            most: (bytes / N).max(1),
            runs: Vec::new(),
        }
    }

    /// Takes a record.
    pub fn push(&mut self, record: [u8; N]) -> Result<()> {
        if self.buffer.len() == self.most {
            self.buffer.sort_unstable();
            let run = write::<N>(self.buffer.drain(..).map(Ok))?;
            self.runs.push(run);
            if self.runs.len() == 2 * FAN {
                // So many as are merged at the end are open at most, however many records there are.
                let some = merge_runs::<N>(self.runs.drain(..FAN).collect())?;
                self.runs.push(write::<N>(some)?);
            }
        }
        self.buffer.push(record);
        Ok(())
    }

    /// All records, in order.
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

/// Writes records to a file without a name.
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

/// A run that is read again.
pub enum SortedRun<const N: usize> {
    /// In memory.
    Memory(std::vec::IntoIter<[u8; N]>),
    /// In a file.
    File(BufReader<File>),
}

impl<const N: usize> SortedRun<N> {
    /// From the beginning of a file.
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
                    // Records are written whole, so this is the end.
                    Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => None,
                    Err(error) => Some(Err(error)),
                }
            }
        }
    }
}

/// Sorted runs as one.
pub struct Merge<const N: usize, R> {
    runs: Vec<R>,
    /// The next record of each run.
    heads: Vec<[u8; N]>,
    /// A heap of the runs that are not at their end, the smallest head first. Beside each run stand the first bytes of its
    /// head, which decide nearly always where records begin with hashes: nothing long is compared or moved.
    heap: Vec<(u64, usize)>,
}

impl<const N: usize, E, R: Iterator<Item = std::result::Result<[u8; N], E>>> Merge<N, R> {
    /// Of runs, each in order.
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

    /// Puts what stands there below all that is less.
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

/// The first eight bytes, as a number that is in order as they are.
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
