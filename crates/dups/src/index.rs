//! Stage 4: what is remembered, in SQLite.
//!
//! One row per folder, its files in a block ([`crate::blob`]); groups are derived when read, so
//! that there is one truth. Everything a scan changed is written in one transaction, in the order
//! of the table, so that a crash leaves either the old state or the new one.

mod door;
mod write;

use crate::blob::{self, Decoder, Entry};
use crate::contents::Numbering;
use crate::hash::Kind;
use crate::memory::Memory;
use crate::table::{FileSystem, Files, Known, NewFile};
use crate::{Error, sys};
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};
use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};

/// "asyd": marks the file as assay's index of duplicates.
const APPLICATION: u32 = 0x6173_7964;
/// Version of the tables and blocks.
const VERSION: i64 = 2;
const SCHEMA: &str = include_str!("index.sql");

/// An index, open.
pub struct Index {
    path: PathBuf,
    db: Connection,
    generation: u32,
    /// Which hashes it holds; `None` while it holds none.
    kind: Option<Kind>,
    /// Held while the index may be written.
    _lock: Option<File>,
}

/// A root that was scanned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Machine, in a merged index; empty for the machine that scanned.
    pub machine: String,
    /// Absolute path.
    pub path: PathBuf,
    /// When the last scan of it ended, nanoseconds since 1970.
    pub scanned: i64,
    /// Whether that scan was not interrupted.
    pub complete: bool,
}

impl Index {
    /// Opens an index to update it, creating it when there is none. Folders above it are created.
    ///
    /// # Errors
    /// When another process updates it, when the file is not an index, or cannot be written.
    pub fn open(path: &Path) -> Result<Self, Error> {
        if let Some(parent) = path.parent().filter(|one| !one.as_os_str().is_empty()) {
            std::fs::create_dir_all(parent).map_err(crate::error::io(
                parent,
                "cannot create the folder of the index",
            ))?;
        }
        door::look(path)?;
        let lock = door::lock(path)?;
        // Again under the lock: another process may just have made it.
        let new = !door::look(path)?;
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
        // In this mode a crash of the machine cannot leave half a transaction either (SQLite
        // documentation, PRAGMA synchronous), on any file system that keeps its promises.
        index.run("PRAGMA synchronous = NORMAL")?;
        Ok(index)
    }

    /// Opens an index to read it.
    ///
    /// # Errors
    /// When there is none, or the file is not an index.
    pub fn read(path: &Path) -> Result<Self, Error> {
        if !door::look(path)? {
            return Err(Error::Foreign {
                path: path.into(),
                what: "no index there yet; `assay dups scan PATH` makes one".into(),
            });
        }
        if door::journal(path).exists() {
            // Who may only read cannot take back what a crash left half written.
            let mut index = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
            index.check().map_err(|error| Error::Foreign {
                path: path.into(),
                what: format!(
                    "a scan that did not end left it half written, which only who may write it can take back, e.g. by `assay dups refresh` ({error})"
                ),
            })?;
        }
        let mut index = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        index.check()?;
        // Reading the blocks from the page cache itself saves copying all of them.
        index.run("PRAGMA mmap_size = 1073741824")?;
        Ok(index)
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Self, Error> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(path, flags).map_err(failed(path))?;
        db.busy_timeout(std::time::Duration::from_secs(10))
            .map_err(failed(path))?;
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
        self.kind = Kind::named(&hash);
        Ok(())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number of the last scan.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Which hashes it holds, if any.
    pub fn kind(&self) -> Option<Kind> {
        self.kind
    }

    fn ask<T: rusqlite::types::FromSql>(&self, sql: &str) -> Result<T, Error> {
        self.db
            .query_row(sql, [], |row| row.get(0))
            .map_err(failed(&self.path))
    }

    fn run(&self, sql: &str) -> Result<(), Error> {
        self.db.execute_batch(sql).map_err(failed(&self.path))
    }

    /// The blocks of all folders below the roots.
    ///
    /// # Errors
    /// When the index cannot be read.
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
        let (exact, from, to) = range(root);
        // Said so that SQLite finds the rows by the key, and reads nothing else.
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
        let mut statement = self.db.prepare_cached(sql).map_err(failed(&self.path))?;
        let mut rows = statement
            .query(params![machine, exact, from, to])
            .map_err(failed(&self.path))?;
        while let Some(row) = rows.next().map_err(failed(&self.path))? {
            let fetch = || -> rusqlite::Result<_> {
                Ok((
                    row.get_ref(0)?.as_str()?,
                    row.get_ref(1)?.as_blob()?,
                    row.get_ref(2)?.as_blob()?,
                ))
            };
            let (machine, path, block) = fetch().map_err(failed(&self.path))?;
            take(machine, path, block);
        }
        Ok(())
    }

    /// The roots that were scanned.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn roots(&self) -> Result<Vec<Root>, Error> {
        let get = || -> rusqlite::Result<Vec<Root>> {
            let mut statement = self.db.prepare_cached(
                "SELECT machine, path, scanned, complete FROM roots ORDER BY machine, path",
            )?;
            let rows = statement.query_map([], |row| {
                Ok(Root {
                    machine: row.get(0)?,
                    path: sys::path(row.get_ref(1)?.as_blob()?).into(),
                    scanned: row.get(2)?,
                    complete: row.get(3)?,
                })
            })?;
            rows.collect()
        };
        get().map_err(failed(&self.path))
    }

    /// All files at or below any of `below` (absolute paths; all files when empty), as they were
    /// when they were last scanned.
    ///
    /// # Errors
    /// When the index cannot be read or a block of it is damaged.
    pub fn load(&self, below: &[PathBuf]) -> Result<Files, Error> {
        let expected = match below.is_empty() {
            true => {
                std::fs::metadata(&self.path).map_or(0, |meta| meta.len()) as usize / blob::MEAN
            }
            false => 0,
        };
        self.load_where(below, expected, &|_, _| true)
    }

    /// The files of one folder of this machine, and from everywhere the files of equal content, or of
    /// equal size where the content has no hash: enough to say how many copies each has, at the cost
    /// of one pass over the index.
    ///
    /// # Errors
    /// As [`Index::load`].
    pub fn load_around(&self, folder: &Path) -> Result<Files, Error> {
        let (mut wanted, mut sizes) = (HashSet::new(), HashSet::new());
        let home = sys::bytes(folder);
        self.db
            .query_row(
                "SELECT block FROM folders WHERE machine = '' AND path = ?1",
                [home],
                |row| {
                    let decoder = Decoder::new(row.get_ref(0)?.as_blob()?);
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
            .map_err(failed(&self.path))?;
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
        wants: &dyn Fn(&[u8], &Entry<'_>) -> bool,
    ) -> Result<Files, Error> {
        let mut files = Files::default();
        files.kind = self.kind.unwrap_or_default();
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
            Some(path) => Err(Error::Foreign {
                path: self.path.clone(),
                what: format!(
                    "the entry of folder {} is damaged; scan again with --rehash",
                    crate::name::readable(&path)
                ),
            }),
        }
    }
}

/// Folder and name of a path.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(0) => (b"/", &path[1..]),
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

/// Reads a block into the table.
fn enter(
    files: &mut Files,
    numbering: &mut Numbering<'_>,
    (machine, path): (&str, &[u8]),
    block: &[u8],
    wants: &dyn Fn(&[u8], &Entry<'_>) -> bool,
) -> Result<(), blob::Damaged> {
    let decoder = Decoder::new(block)?;
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
        let id = files.add_file(
            dir,
            entry.name,
            NewFile {
                id: entry.id,
                fs,
                allocated: entry.allocated,
                fresh: entry.fresh,
                linked: entry.linked,
                known: Some(Known {
                    generation: entry.generation,
                    hash: None,
                    share: entry.share,
                }),
            },
        );
        if let Some(hash) = entry.hash {
            files.files[id as usize].hash = 0;
            numbering.add(hash);
        }
    }
    Ok(())
}

/// Bounds of the paths at or below a root: the path itself, and a half-open range.
fn range(root: Option<&Path>) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let Some(root) = root else {
        return (Vec::new(), Vec::new(), vec![0xff; 2]);
    };
    let exact = sys::bytes(root).to_vec();
    let mut from = exact.clone();
    if !from.ends_with(b"/") {
        from.push(b'/');
    }
    let mut to = from.clone();
    // '0' is the byte after '/'.
    *to.last_mut().unwrap_or(&mut 0) = b'0';
    (exact, from, to)
}

fn failed(path: &Path) -> impl FnOnce(rusqlite::Error) -> Error + use<> {
    let path = path.to_path_buf();
    move |source| Error::Index { path, source }
}
