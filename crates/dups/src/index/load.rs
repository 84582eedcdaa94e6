//! Loads the index into a table of files.

use super::{Index, index_error};
use crate::blob::{self, BlobDecoder, BlobEntry};
use crate::contents::Numbering;
use crate::roots::Roots;
use crate::table::{FileSystem, Files, NewFile, RememberedFile};
use crate::{Error, sys};
use rusqlite::OptionalExtension as _;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

impl Index {
    /// Loads all files at or below the absolute paths `below` (all files if empty) in their last scanned
    /// state.
    ///
    /// # Errors
    /// The index cannot be read or a block is damaged.
    pub fn load(&self, below: &[PathBuf]) -> Result<Files, Error> {
        let expected = match below.is_empty() {
            true => {
                std::fs::metadata(&self.path).map_or(0, |meta| meta.len()) as usize / blob::MEAN
            }
            false => 0,
        };
        self.load_where(below, expected, &|_, _| true)
    }

    /// Loads the files of one folder of this machine, and all files of equal content, or of equal size if the
    /// content has no hash. This is enough to count the copies of each file, with one pass over the index.
    ///
    /// # Errors
    /// As [`Index::load`].
    pub fn load_around(&self, folder: &Path) -> Result<Files, Error> {
        let (mut wanted, mut sizes) = (HashSet::new(), HashSet::new());
        let home = sys::path_bytes(folder);
        self.db
            .query_row(
                "SELECT block FROM folders WHERE machine = '' AND path = ?1",
                [home],
                |row| {
                    let decoder = BlobDecoder::new(row.get_ref(0)?.as_blob()?);
                    for entry in decoder.into_iter().flatten().flatten() {
                        match entry.hash {
                            Some(hash) => wanted.insert(hash),
                            None => sizes.insert(entry.id.size),
                        };
                    }
                    Ok(())
                },
            )
            .optional()
            .map_err(index_error(&self.path))?;
        self.load_where(&[], 0, &|path, entry| {
            path == home
                || entry.hash.is_some_and(|hash| wanted.contains(&hash))
                || !sizes.is_empty() && sizes.contains(&entry.id.size)
        })
    }

    fn load_where(
        &self,
        below: &[PathBuf],
        expected: usize,
        wants: &dyn Fn(&[u8], &BlobEntry<'_>) -> bool,
    ) -> Result<Files, Error> {
        let mut files = Files::default();
        files.kind = self.kind.unwrap_or_default();
        let mut roots = self.roots()?;
        roots.retain(|root| root.machine.is_empty());
        files.roots = Roots::named(roots.into_iter().map(|root| root.path));
        let mut taken: HashSet<(String, Vec<u8>)> = HashSet::new();
        let mut damaged = None;
        let all = [None];
        let some: Vec<Option<&Path>> = below.iter().map(|path| Some(path.as_path())).collect();
        std::thread::scope(|scope| {
            let mut numbering = Numbering::begin(scope, expected);
            for root in if some.is_empty() { &all[..] } else { &some } {
                self.each(None, *root, |machine, path, block| {
                    if some.len() > 1 && !taken.insert((machine.into(), path.into())) {
                        return;
                    }
                    let entered = enter(&mut files, &mut numbering, (machine, path), block, wants);
                    if entered.is_err() && damaged.is_none() {
                        damaged = Some(path.to_vec());
                    }
                })?;
            }
            numbering.finish(&mut files);
            Ok::<(), Error>(())
        })?;
        match damaged {
            None => Ok(files),
            Some(path) => Err(self.damaged(&path)),
        }
    }
}

/// Adds the entries of a block to the table.
fn enter(
    files: &mut Files,
    numbering: &mut Numbering<'_>,
    (machine, path): (&str, &[u8]),
    block: &[u8],
    wants: &dyn Fn(&[u8], &BlobEntry<'_>) -> bool,
) -> Result<(), blob::Damaged> {
    let decoder = BlobDecoder::new(block)?;
    let number = |files: &mut Files, fsid| {
        files.filesystem(FileSystem {
            machine: machine.into(),
            fsid,
        })
    };
    let home = decoder.fsid();
    let home_number = number(files, home);
    let mut dir = None;
    for entry in decoder {
        let entry = entry?;
        if !wants(path, &entry) {
            continue;
        }
        let dir = *dir.get_or_insert_with(|| files.add_dir(path, home_number));
        let fs = match entry.fsid == home {
            true => home_number,
            false => number(files, entry.fsid),
        };
        files.add_file_later(
            dir,
            entry.name,
            NewFile {
                id: entry.id,
                fs,
                allocated: entry.allocated,
                fresh: entry.fresh,
                known: Some(RememberedFile {
                    generation: entry.generation,
                    hash: entry.hash,
                    share: entry.share,
                }),
            },
            numbering,
        );
    }
    Ok(())
}
