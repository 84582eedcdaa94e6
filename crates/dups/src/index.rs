//! Stage 4: stores scan results in SQLite.
//!
//! The index has one row per folder, with its files in a block ([`crate::blob`]). Groups are computed when the
//! index is read. A scan writes its changes in one transaction, so after a crash the index has either the old
//! or the new state.

mod index_lock;
mod load;
mod write;

use crate::blob::{self, BlobDecoder, BlobEntry};
use crate::hash::HashKind;
use crate::memory::Memory;
use crate::scan_options::RootScanOptions;
use crate::{Error, sys};
use rusqlite::{Connection, OpenFlags, params};
use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};

/// "asyd": marks the file as assay's index of duplicates.
const APPLICATION: u32 = 0x6173_7964;
/// Version of the tables and blocks.
const VERSION: i64 = 3;
const SCHEMA: &str = include_str!("index.sql");

/// An open index, for reading or for updates.
pub struct Index {
    path: PathBuf,
    db: Connection,
    generation: u32,
    /// Hash function of the stored hashes; `None` if there are none.
    kind: Option<HashKind>,
    /// Lock on the index, which is kept while the index is writable.
    _lock: Option<File>,
}

/// A root folder of an earlier scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Machine in a merged index; empty for this machine.
    pub machine: String,
    /// Absolute path of the root folder.
    pub path: PathBuf,
    /// End of the last scan of this root, nanoseconds since 1970.
    pub scanned: i64,
    /// Whether the last scan reached its end without interruption.
    pub complete: bool,
    /// Options of the last scan of this root.
    pub manner: RootScanOptions,
}

impl Root {
    /// Returns whether the root is the folder with this path on this machine.
    pub(crate) fn is_here(&self, path: &Path) -> bool {
        self.machine.is_empty() && self.path == path
    }
}

impl Index {
    /// Opens an index for updates. Creates the index and its parent folders if necessary.
    ///
    /// # Errors
    /// Another process updates the index, the file is not an index, or it cannot be written.
    pub fn open(path: &Path) -> Result<Self, Error> {
        if let Some(parent) = path.parent().filter(|one| !one.as_os_str().is_empty()) {
            std::fs::create_dir_all(parent).map_err(crate::error::io_error(
                parent,
                "cannot create the folder of the index (--index names another file)",
            ))?;
        }
        index_lock::look(path)?;
        index_lock::own(path)?;
        let lock = index_lock::lock(path)?;
        // Checks again under the lock, because another process may have created the index.
        let new = !index_lock::look(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let mut index = Self::connect(path, flags)?;
        index._lock = Some(lock);
        if new {
            index.run(&format!(
                "PRAGMA page_size = 16384; BEGIN; PRAGMA application_id = {APPLICATION};
                 PRAGMA user_version = {VERSION}; {SCHEMA} COMMIT;"
            ))?;
        }
        index.check()?;
        // In this mode a system crash leaves no partial transaction (SQLite documentation, PRAGMA
        // synchronous), if the file system honours fsync.
        index.run("PRAGMA synchronous = NORMAL")?;
        Ok(index)
    }

    /// Opens an index for reading.
    ///
    /// # Errors
    /// The index does not exist, or the file is not an index.
    pub fn read(path: &Path) -> Result<Self, Error> {
        if !index_lock::look(path)? {
            return Err(Error::Foreign {
                path: path.into(),
                what: "no index there yet; `assay dups scan PATH` makes one".into(),
            });
        }
        if index_lock::sqlite_journal_path(path).exists() {
            // A read-only connection cannot roll back a transaction that a crash interrupted.
            Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?
                .check()
                .map_err(half_written)?;
        }
        let mut index = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        index.check()?;
        // Memory mapping avoids copying the blocks from the page cache.
        index.run("PRAGMA mmap_size = 1073741824")?;
        Ok(index)
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Self, Error> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let db = Connection::open_with_flags(resolve_folder_links(path)?, flags)
            .map_err(index_error(path))?;
        db.busy_timeout(std::time::Duration::from_secs(10))
            .map_err(index_error(path))?;
        Ok(Self {
            path: path.into(),
            db,
            generation: 0,
            kind: None,
            _lock: None,
        })
    }

    fn check(&mut self) -> Result<(), Error> {
        let foreign = |what: String| Error::Foreign {
            path: self.path.clone(),
            what,
        };
        let version: i64 = self.ask("PRAGMA user_version")?;
        if version != VERSION {
            return Err(foreign(format!(
                "has format {version}, this assay reads {VERSION}; use the assay that wrote it, or scan into another file with --index"
            )));
        }
        self.generation = self.ask("SELECT generation FROM state")?;
        let hash: String = self.ask("SELECT hash FROM state")?;
        self.kind = HashKind::named(&hash);
        Ok(())
    }

    /// Returns the path of the index.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of the last scan.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Returns the hash function of the stored hashes; `None` if there are none.
    pub fn kind(&self) -> Option<HashKind> {
        self.kind
    }

    fn ask<T: rusqlite::types::FromSql>(&self, sql: &str) -> Result<T, Error> {
        self.db
            .query_row(sql, [], |row| row.get(0))
            .map_err(index_error(&self.path))
    }

    fn run(&self, sql: &str) -> Result<(), Error> {
        self.db.execute_batch(sql).map_err(index_error(&self.path))
    }

    /// Loads the blocks of all folders at or below the roots.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn remember(&self, roots: &[PathBuf]) -> Result<Memory, Error> {
        let mut memory = Memory::default();
        for root in roots {
            self.each(Some(""), Some(root), |_, path, block| {
                memory.add(path, block);
            })?;
        }
        memory.settle();
        Ok(memory)
    }

    /// Calls `take` with machine, path and block of each folder at or below `root`.
    fn each(
        &self,
        machine: Option<&str>,
        root: Option<&Path>,
        mut take: impl FnMut(&str, &[u8], &[u8]),
    ) -> Result<(), Error> {
        let (exact, from, to) = path_range(root);
        // Written so that SQLite finds the rows by the key and reads no others.
        let sql = match machine {
            Some(_) => {
                "SELECT machine, path, block FROM folders WHERE machine = ?1 AND path = ?2 UNION ALL
                 SELECT machine, path, block FROM folders WHERE machine = ?1 AND path > ?3 AND path < ?4"
            }
            None => {
                "SELECT machine, path, block FROM folders
                 WHERE ?1 IS NULL AND (path = ?2 OR path >= ?3 AND path < ?4)"
            }
        };
        let mut statement = self
            .db
            .prepare_cached(sql)
            .map_err(index_error(&self.path))?;
        let mut rows = statement
            .query(params![machine, exact, from, to])
            .map_err(index_error(&self.path))?;
        while let Some(row) = rows.next().map_err(index_error(&self.path))? {
            let fetch = || -> rusqlite::Result<_> {
                Ok((
                    row.get_ref(0)?.as_str()?,
                    row.get_ref(1)?.as_blob()?,
                    row.get_ref(2)?.as_blob()?,
                ))
            };
            let (machine, path, block) = fetch().map_err(index_error(&self.path))?;
            take(machine, path, block);
        }
        Ok(())
    }

    /// Calls `take` with machine, folder and file for every file of the index. Does not keep the files in memory.
    pub(crate) fn entries(
        &self,
        mut take: impl FnMut(&str, &[u8], &BlobEntry<'_>),
    ) -> Result<(), Error> {
        let mut damaged = None;
        self.each(None, None, |machine, path, block| {
            let mut whole = || -> Result<(), blob::Damaged> {
                for entry in BlobDecoder::new(block)? {
                    take(machine, path, &entry?);
                }
                Ok(())
            };
            if whole().is_err() && damaged.is_none() {
                damaged = Some(path.to_vec());
            }
        })?;
        match damaged {
            None => Ok(()),
            Some(path) => Err(self.damaged(&path)),
        }
    }

    fn damaged(&self, path: &[u8]) -> Error {
        Error::Foreign {
            path: self.path.clone(),
            what: format!(
                "the entry of folder {} is damaged; scan again with --rehash",
                crate::name::format_readable(path)
            ),
        }
    }

    /// Returns the file systems of a root's folders on this machine. Folders of other roots within this root are
    /// excluded.
    pub(crate) fn filesystems(&self, root: &Path) -> Result<HashSet<i64>, Error> {
        let mut others = self.roots()?;
        others
            .retain(|one| one.machine.is_empty() && one.path != root && one.path.starts_with(root));
        let get = || -> rusqlite::Result<HashSet<i64>> {
            let mut statement = self.db.prepare_cached(
                "SELECT path, substr(block, 1, 8) FROM folders
                 WHERE machine = '' AND (path = ?1 OR path >= ?2 AND path < ?3)",
            )?;
            let (exact, from, to) = path_range(Some(root));
            let rows = statement.query_map(params![exact, from, to], |row| {
                let folder = sys::path_from_bytes(row.get_ref(0)?.as_blob()?);
                if others.iter().any(|one| folder.starts_with(&one.path)) {
                    return Ok(None);
                }
                let head = row.get_ref(1)?.as_blob()?;
                Ok(BlobDecoder::new(head).map(|block| block.fsid()).ok())
            })?;
            rows.filter_map(Result::transpose).collect()
        };
        get().map_err(index_error(&self.path))
    }

    /// Returns the scanned roots.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn roots(&self) -> Result<Vec<Root>, Error> {
        let get = || -> rusqlite::Result<Vec<Root>> {
            let mut statement = self.db.prepare_cached(
                "SELECT machine, path, scanned, complete, manner FROM roots ORDER BY machine, path",
            )?;
            let rows = statement.query_map([], |row| {
                let manner = serde_json::from_str(row.get_ref(4)?.as_str()?);
                let text = rusqlite::types::Type::Text;
                Ok(Root {
                    machine: row.get(0)?,
                    path: sys::path_from_bytes(row.get_ref(1)?.as_blob()?).into(),
                    scanned: row.get(2)?,
                    complete: row.get(3)?,
                    manner: manner.map_err(|error| {
                        rusqlite::Error::FromSqlConversionFailure(4, text, error.into())
                    })?,
                })
            })?;
            rows.collect()
        };
        get().map_err(index_error(&self.path))
    }
}

/// Resolves links in the parent folders, which belong to the user. SQLite is then forbidden to follow links.
fn resolve_folder_links(path: &Path) -> Result<PathBuf, Error> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let folder = std::fs::canonicalize(folder).map_err(crate::error::io_error(
        folder,
        "cannot open the folder of the index",
    ))?;
    Ok(folder.join(path.file_name().unwrap_or_default()))
}

/// Returns the bounds of paths at or below a root: the path itself, and a half-open range.
fn path_range(root: Option<&Path>) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let Some(root) = root else {
        return (Vec::new(), Vec::new(), vec![0xff; 2]);
    };
    let exact = sys::path_bytes(root).to_vec();
    let mut from = exact.clone();
    if !from.ends_with(b"/") {
        from.push(b'/');
    }
    let mut to = from.clone();
    // '0' is the byte after '/'.
    *to.last_mut().unwrap_or(&mut 0) = b'0';
    (exact, from, to)
}

/// Explains an error of SQLite: it needs write access, because a crashed process left a rollback journal.
fn half_written(error: Error) -> Error {
    use rusqlite::ErrorCode::{CannotOpen, ReadOnly};
    match error {
        Error::Index { path, cause }
            if matches!(cause.sqlite_error_code(), Some(CannotOpen | ReadOnly)) =>
        {
            Error::Foreign {
                path,
                what: "an interrupted scan left it half written, which takes who may write it to set right, e.g. by `assay dups refresh`".into(),
            }
        }
        other => other,
    }
}

fn index_error(path: &Path) -> impl FnOnce(rusqlite::Error) -> Error + use<> {
    let path = path.to_path_buf();
    move |cause| Error::Index { path, cause }
}
