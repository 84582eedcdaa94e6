//! Writes scans, merges and the results of actions to the index.

use super::{Index, index_error, path_range};
use crate::blob::{self, BlobDecoder};
use crate::earlier_roots::Within;
use crate::memory::Memory;
use crate::name::split;
use crate::scan_options::RootScanOptions;
use crate::store::SpillArray;
use crate::table::Files;
use crate::{Error, Identity, sys};
use rusqlite::{OptionalExtension as _, params};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Minimum interval, in nanoseconds, between two updates of the scan time of an unchanged root. The update costs more
/// than the rest of the rescan.
const TOUCH: i64 = 60_000_000_000;

/// A file name in a folder and the file's new state; `None` if the file was removed.
type Change<'a> = (&'a [u8], Option<Identity>);

fn manner_to_text(manner: &RootScanOptions) -> rusqlite::Result<String> {
    serde_json::to_string(manner)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

impl Index {
    /// Writes the changes of a scan of `roots` in one transaction. An unchanged scan writes nothing. `memory` is the
    /// result of [`Index::remember`] after the walk has marked folders in it. `within` contains earlier roots below
    /// `roots`.
    ///
    /// # Errors
    /// The index cannot be written; it keeps its old state.
    pub fn save(
        &mut self,
        roots: &[(PathBuf, RootScanOptions)],
        within: &Within,
        files: &Files,
        memory: &Memory,
        generation: u32,
        interrupted: bool,
    ) -> Result<(), Error> {
        // Nothing was remembered or trusted, so all rows are replaced at the end.
        let afresh = memory.is_empty() && !interrupted;
        let mut dirty: SpillArray<u32> = (0..files.dirs.len() as u32)
            .filter(|dir| afresh || files.dirs[*dir as usize].dirty)
            .collect();
        // After an interrupted walk, missing folders may still exist.
        let vanished = || {
            let all = memory.vanished().filter(|_| !interrupted);
            all.filter(|path| !within.is_apart(path))
        };
        let now = sys::coarse_unix_nanos();
        let known = self.roots()?;
        let fresh_enough = |(root, manner): &(PathBuf, RootScanOptions)| {
            known.iter().any(|one| {
                one.is_here(root)
                    && one.manner == *manner
                    && one.complete != interrupted
                    && now - one.scanned < TOUCH
            })
        };
        let unchanged =
            dirty.is_empty() && vanished().next().is_none() && within.superseded.is_empty();
        if unchanged && roots.iter().all(fresh_enough) {
            return Ok(());
        }
        dirty.sort_unstable_by_key(|dir| files.dir_path(*dir));
        let path = self.path.clone();
        let mut write = || -> rusqlite::Result<()> {
            let transaction = self.db.transaction()?;
            if afresh {
                for (root, _) in roots {
                    let (exact, from, to) = path_range(Some(root));
                    let mut below = transaction.prepare_cached(
                        "SELECT path FROM folders WHERE machine = '' AND (path = ?1 OR path >= ?2 AND path < ?3)",
                    )?;
                    let paths = below.query_map(params![exact, from, to], |row| row.get(0))?;
                    let paths: Vec<Vec<u8>> = paths.collect::<Result<_, _>>()?;
                    for path in paths.iter().filter(|path| !within.is_apart(path)) {
                        transaction.execute(
                            "DELETE FROM folders WHERE machine = '' AND path = ?1",
                            [path],
                        )?;
                    }
                }
            }
            {
                let mut put = transaction.prepare_cached(
                    "INSERT OR REPLACE INTO folders (machine, path, block) VALUES ('', ?1, ?2)",
                )?;
                for dir in dirty.iter() {
                    put.execute(params![files.dir_path(*dir), blob::encode_dir(files, *dir)])?;
                }
                let mut remove = transaction
                    .prepare_cached("DELETE FROM folders WHERE machine = '' AND path = ?1")?;
                for path in vanished() {
                    remove.execute([path])?;
                }
                let mut root_row = transaction.prepare_cached(
                    "INSERT OR REPLACE INTO roots (machine, path, scanned, complete, manner)
                     VALUES ('', ?1, ?2, ?3, ?4)",
                )?;
                for (root, manner) in roots {
                    let bytes = sys::path_bytes(root);
                    root_row.execute(params![bytes, now, !interrupted, manner_to_text(manner)?])?;
                }
                let mut no_root = transaction
                    .prepare_cached("DELETE FROM roots WHERE machine = '' AND path = ?1")?;
                for root in within.superseded.iter().filter(|_| !interrupted) {
                    no_root.execute([sys::path_bytes(root)])?;
                }
            }
            transaction.execute(
                "UPDATE state SET generation = ?1, hash = ?2",
                params![generation, files.kind.name()],
            )?;
            transaction.commit()
        };
        write().map_err(index_error(&path))?;
        self.generation = generation;
        self.kind = Some(files.kind);
        Ok(())
    }

    /// Copies all folders of another index, and stores them under the name of its machine. Replaces older folders of
    /// this machine.
    ///
    /// # Errors
    /// One of the indexes cannot be used.
    pub fn merge(&mut self, machine: &str, other: &Self) -> Result<u64, Error> {
        if let (Some(own), Some(their)) = (self.kind, other.kind)
            && own != their
        {
            return Err(Error::Usage(format!(
                "{} holds {} hashes, {} holds {}: they cannot be compared; scan again with --hash {}",
                crate::name::format_readable(sys::path_bytes(&other.path)),
                their.name(),
                crate::name::format_readable(sys::path_bytes(&self.path)),
                own.name(),
                own.name(),
            )));
        }
        let kind = self.kind.or(other.kind);
        let mut folders = Vec::new();
        other.each(None, None, |inner, path, block| {
            let name = match inner {
                "" => machine.to_owned(),
                inner => format!("{machine}/{inner}"),
            };
            folders.push((name, path.to_vec(), block.to_vec()));
        })?;
        let roots = other.roots()?;
        let path = self.path.clone();
        let mut write = || -> rusqlite::Result<()> {
            let transaction = self.db.transaction()?;
            let inner = format!("{machine}/");
            for table in ["folders", "roots"] {
                transaction.execute(
                    &format!("DELETE FROM {table} WHERE machine = ?1 OR substr(machine, 1, length(?2)) = ?2"),
                    params![machine, inner],
                )?;
            }
            {
                let mut put = transaction
                    .prepare("INSERT INTO folders (machine, path, block) VALUES (?1, ?2, ?3)")?;
                for (name, path, block) in &folders {
                    put.execute(params![name, path, block])?;
                }
            }
            for root in &roots {
                let name = match root.machine.as_str() {
                    "" => machine.to_owned(),
                    inner => format!("{machine}/{inner}"),
                };
                transaction.execute(
                    "INSERT INTO roots (machine, path, scanned, complete, manner) VALUES (?1, ?2, ?3, ?4, ?5)",
                    params![
                        name,
                        sys::path_bytes(&root.path),
                        root.scanned,
                        root.complete,
                        manner_to_text(&root.manner)?
                    ],
                )?;
            }
            let name = kind.map_or("", crate::hash::HashKind::name);
            transaction.execute("UPDATE state SET hash = ?1", [name])?;
            transaction.commit()
        };
        write().map_err(index_error(&path))?;
        self.kind = kind;
        Ok(folders.len() as u64)
    }

    /// Removes everything at or below a path on this machine. Returns the number of folders.
    ///
    /// # Errors
    /// The index cannot be written.
    pub fn forget(&mut self, root: &Path) -> Result<usize, Error> {
        let (exact, from, to) = path_range(Some(root));
        let mut count = 0;
        for table in ["folders", "roots"] {
            let removed = self
                .db
                .execute(
                    &format!("DELETE FROM {table} WHERE machine = '' AND (path = ?1 OR path >= ?2 AND path < ?3)"),
                    params![exact, from, to],
                )
                .map_err(index_error(&self.path))?;
            count = count.max(removed);
        }
        Ok(count)
    }

    /// Updates the entries of files that an action changed, so that the next scan need not read these files again.
    /// `changes` contains the new state of each name; `None` means removed.
    ///
    /// # Errors
    /// The index cannot be written. The next scan then detects the changes.
    pub fn amend(&mut self, changes: &BTreeMap<Vec<u8>, Option<Identity>>) -> Result<(), Error> {
        let mut by_dir: BTreeMap<&[u8], Vec<Change<'_>>> = BTreeMap::new();
        for (path, now) in changes {
            let (dir, name) = split(path);
            by_dir.entry(dir).or_default().push((name, *now));
        }
        let path = self.path.clone();
        let write = || -> rusqlite::Result<()> {
            let transaction = self.db.transaction()?;
            for (dir, changed) in by_dir {
                let block: Option<Vec<u8>> = transaction
                    .query_row(
                        "SELECT block FROM folders WHERE machine = '' AND path = ?1",
                        [dir],
                        |row| row.get(0),
                    )
                    .optional()?;
                let Some(block) = block else { continue };
                let Ok(decoder) = BlobDecoder::new(&block) else {
                    continue;
                };
                let fsid = decoder.fsid();
                let mut entries = Vec::new();
                for mut entry in decoder.flatten() {
                    match changed.iter().find(|(name, _)| *name == entry.name) {
                        Some((_, None)) => continue,
                        Some((_, Some(id))) => {
                            entry.id = *id;
                            // The file was just changed, so the next scan must read it again.
                            entry.fresh = true;
                            entry.share = None;
                        }
                        None => {}
                    }
                    entries.push(entry);
                }
                transaction.execute(
                    "UPDATE folders SET block = ?2 WHERE machine = '' AND path = ?1",
                    params![dir, blob::encode(fsid, &entries)],
                )?;
            }
            transaction.commit()
        };
        write().map_err(index_error(&path))
    }
}
