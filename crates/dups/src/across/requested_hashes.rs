//! Hashes the files that the hub requested from this machine (`--wanted`), as part of a scan.

use super::export_rows::open_table;
use super::note;
use super::offer::{SampleKey, Samples, sample};
use crate::compare::{self, Job};
use crate::group::SizeGroup;
use crate::open_folders::Doors;
use crate::read::{Cost, unchanged};
use crate::store::SpillArray;
use crate::table::{FileId, Files, NO_HASH};
use crate::{Control, Error};
use assay_columns::TableSource;
use std::collections::HashSet;
use std::path::Path;

/// Maximum number of rows in the list. A machine with more files needs several indexes.
const MOST: u64 = u32::MAX as u64;

/// Sizes and samples of contents that another machine may have, too.
#[derive(Debug, Default)]
pub struct Wanted {
    /// The sizes and samples, sorted.
    keys: SpillArray<SampleKey>,
}

impl Wanted {
    /// Reads the list that the hub wrote for this machine. `id` is the id of this machine, if it has an id.
    ///
    /// # Errors
    /// The list cannot be read, is damaged, or is for another machine.
    pub fn read(path: &Path, id: Option<&str>) -> Result<Self, Error> {
        Self::of(open_table(path)?, path, id)
    }

    /// Reads an open table. Error messages contain `path`.
    ///
    /// # Errors
    /// As [`Wanted::read`].
    pub fn of(source: TableSource, path: &Path, id: Option<&str>) -> Result<Self, Error> {
        let samples = Samples::of(source, path, "dups-wanted")?;
        let theirs = samples.note(note::ID);
        if id.is_some_and(|id| !theirs.is_empty() && theirs != id) {
            return Err(Error::Usage(format!(
                "{}: it is for another machine, {}",
                crate::name::format_readable(crate::sys::path_bytes(path)),
                crate::name::format_readable(samples.note(note::MACHINE).as_bytes())
            )));
        }
        if samples.rows() > MOST {
            return Err(Error::strange(
                path,
                "it has more rows than an index has files",
            ));
        }
        let mut keys = SpillArray::default();
        for key in samples {
            keys.push(key?);
        }
        Ok(Self { keys })
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    fn has_size(&self, size: u64) -> bool {
        let at = self.keys.partition_point(|key| key.0 < size);
        self.keys.get(at).is_some_and(|key| key.0 == size)
    }

    fn has(&self, key: SampleKey) -> bool {
        self.keys.binary_search(&key).is_ok()
    }

    /// Hashes the wanted files that have no hash yet. Unreadable files are reported as in any scan.
    pub(crate) fn hash(
        &self,
        files: &Files,
        doors: &Doors,
        control: &Control<'_>,
    ) -> compare::Learnt {
        let mut cost = Cost::default();
        let mut seen = HashSet::new();
        let mut order: Vec<FileId> = Vec::new();
        for id in 0..files.files.len() as FileId {
            let file = files.file(id);
            let open = file.hash == NO_HASH && !file.is_aside() && self.has_size(file.id.size);
            if !open || control.stopped() || !seen.insert(files.inode(id)) {
                continue;
            }
            control.tick();
            let wanted = doors.open(files, id).ok().is_some_and(|fd| {
                cost.opens += 1;
                let sample = sample(&fd, file.id.size, &mut cost);
                // A file that has changed is detected when it is hashed.
                sample.is_ok_and(|sample| self.has((file.id.size, sample)))
                    || unchanged(&fd, file).is_err()
            });
            if wanted {
                order.push(id);
            }
        }
        order.sort_by_key(|id| (u64::MAX - files.file(*id).id.size, *id));
        let size = |id: &FileId| files.file(*id).id.size;
        let mut open = Vec::new();
        let mut first = 0;
        for same in order.chunk_by(|a, b| size(a) == size(b)) {
            open.push(SizeGroup::new(size(&same[0]), first, same.len()));
            first += same.len();
        }
        let mut learnt = compare::run(Job {
            files,
            doors,
            order: &order,
            open: &open,
            all: true,
            control,
        });
        learnt.cost.opens += cost.opens;
        learnt.cost.bytes += cost.bytes;
        // These files were not compared with all other files of their size.
        learnt.finished.clear();
        learnt
    }
}
