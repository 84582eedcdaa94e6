//! Stage 4: what is remembered, in SQLite.
//!
//! One row per folder, its files in a block ([`crate::blob`]); groups are derived when read, so
//! that there is one truth. Everything a scan changed is written in one transaction, in the order
//! of the table, so that a crash leaves either the old state or the new one.

use crate::blob::{self, Decoder, Entry};
use crate::table::{FileId, FileSystem, Files, Known, NewFile};
use crate::walk::Memory;
use crate::{Error, Identity, sys};
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};

/// "asyd": marks the file as assay's index of duplicates.
const APPLICATION: i64 = 0x6173_7964;
/// Version of the tables and blocks.
const VERSION: i64 = 1;
/// The time of an unchanged rescan is written at most this often, nanoseconds: writing costs more
/// than the rest of the rescan.
const TOUCH: i64 = 60_000_000_000;

const SCHEMA: &str = include_str!("index.sql");

/// An index, open.
pub struct Index {
    path: PathBuf,
    db: Connection,
    generation: u32,
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
        let lock = lock(path)?;
        let new = std::fs::metadata(path).is_ok_and(|meta| meta.len() == 0) || !path.exists();
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
        if !path.exists() {
            return Err(Error::Foreign {
                path: path.into(),
                what: "no index there yet; `assay dups scan PATH` makes one".into(),
            });
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
            _lock: None,
        })
    }

    fn check(&mut self) -> Result<(), Error> {
        let foreign = |what: String| Error::Foreign {
            path: self.path.clone(),
            what,
        };
        let application = self
            .ask::<i64>("PRAGMA application_id")
            .map_err(|_| foreign("this is no index of assay (nor any SQLite file); it was left alone. Name another file with --index, or move this one away".into()))?;
        if application != APPLICATION {
            return Err(foreign(
                "an SQLite file, but not an index of duplicates; it was left alone. Name another file with --index".into(),
            ));
        }
        let version: i64 = self.ask("PRAGMA user_version")?;
        if version != VERSION {
            return Err(foreign(format!(
                "has format {version}, this assay reads {VERSION}; use the assay that wrote it, or scan into another file with --index"
            )));
        }
        self.generation = self.ask("SELECT generation FROM state")?;
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
                memory.insert(path.into(), block.into());
            })?;
        }
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
        let mut statement = self
            .db
            .prepare_cached(
                "SELECT machine, path, block FROM folders
                 WHERE (?1 IS NULL OR machine = ?1) AND (path = ?2 OR path >= ?3 AND path < ?4)",
            )
            .map_err(failed(&self.path))?;
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

    /// Writes what a scan changed, in one transaction; an unchanged scan writes nothing.
    /// `remembered`: the folders that [`Index::remember`] returned.
    ///
    /// # Errors
    /// When the index cannot be written; it is then as it was before.
    pub fn save(
        &mut self,
        roots: &[PathBuf],
        files: &Files,
        remembered: &HashSet<Box<[u8]>>,
        generation: u32,
        interrupted: bool,
    ) -> Result<(), Error> {
        // Nothing was remembered or to be believed: everything is replaced at the end.
        let afresh = remembered.is_empty() && !interrupted;
        let mut dirty: Vec<u32> = (0..files.dirs.len() as u32)
            .filter(|dir| afresh || files.dirs[*dir as usize].dirty)
            .collect();
        let mut vanished: Vec<&[u8]> = Vec::new();
        if !interrupted && !remembered.is_empty() {
            let seen: HashSet<&[u8]> = (0..files.dirs.len() as u32)
                .map(|dir| files.dir_path(dir))
                .collect();
            vanished.extend(
                remembered
                    .iter()
                    .map(|key| &**key)
                    .filter(|key| !seen.contains(key)),
            );
        }
        let now = sys::now();
        let known = self.roots()?;
        let fresh_enough = |root: &PathBuf| {
            known.iter().any(|one| {
                one.machine.is_empty()
                    && one.path == *root
                    && one.complete != interrupted
                    && now - one.scanned < TOUCH
            })
        };
        if dirty.is_empty() && vanished.is_empty() && roots.iter().all(fresh_enough) {
            return Ok(());
        }
        dirty.sort_unstable_by_key(|dir| files.dir_path(*dir));
        let path = self.path.clone();
        let write = || -> rusqlite::Result<()> {
            let transaction = self.db.transaction()?;
            if afresh {
                for root in roots {
                    let (exact, from, to) = range(Some(root));
                    transaction.execute(
                        "DELETE FROM folders WHERE machine = '' AND (path = ?1 OR path >= ?2 AND path < ?3)",
                        params![exact, from, to],
                    )?;
                }
            }
            {
                let mut put = transaction.prepare_cached(
                    "INSERT OR REPLACE INTO folders (machine, path, block) VALUES ('', ?1, ?2)",
                )?;
                for dir in dirty {
                    put.execute(params![files.dir_path(dir), blob::encode_dir(files, dir)])?;
                }
                let mut remove = transaction
                    .prepare_cached("DELETE FROM folders WHERE machine = '' AND path = ?1")?;
                for path in vanished {
                    remove.execute([path])?;
                }
                let mut root_row = transaction.prepare_cached(
                    "INSERT OR REPLACE INTO roots (machine, path, scanned, complete)
                     VALUES ('', ?1, ?2, ?3)",
                )?;
                for root in roots {
                    root_row.execute(params![sys::bytes(root), now, !interrupted])?;
                }
            }
            transaction.execute("UPDATE state SET generation = ?1", [generation])?;
            transaction.commit()
        };
        write().map_err(failed(&path))?;
        self.generation = generation;
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
        self.load_where(below, &|_, _| true)
    }

    /// The files of one folder of this machine, and from everywhere the files of equal content:
    /// enough to say how many copies each has, at the cost of one pass over the index.
    ///
    /// # Errors
    /// As [`Index::load`].
    pub fn load_around(&self, folder: &Path) -> Result<Files, Error> {
        let mut wanted = HashSet::new();
        let home = sys::bytes(folder);
        self.db
            .query_row(
                "SELECT block FROM folders WHERE machine = '' AND path = ?1",
                [home],
                |row| {
                    let decoder = Decoder::new(row.get_ref(0)?.as_blob()?);
                    for entry in decoder.into_iter().flatten().flatten() {
                        wanted.extend(entry.hash);
                    }
                    Ok(())
                },
            )
            .optional()
            .map_err(failed(&self.path))?;
        self.load_where(&[], &|path, entry| {
            path == home || entry.hash.is_some_and(|hash| wanted.contains(&hash))
        })
    }

    fn load_where(
        &self,
        below: &[PathBuf],
        wants: &dyn Fn(&[u8], &Entry<'_>) -> bool,
    ) -> Result<Files, Error> {
        let mut files = Files::default();
        let mut taken: HashSet<(String, Vec<u8>)> = HashSet::new();
        let mut damaged = None;
        let all = [None];
        let some: Vec<Option<&Path>> = below.iter().map(|path| Some(path.as_path())).collect();
        for root in if some.is_empty() { &all[..] } else { &some } {
            self.each(None, *root, |machine, path, block| {
                if some.len() > 1 && !taken.insert((machine.into(), path.into())) {
                    return;
                }
                if enter(&mut files, machine, path, block, wants).is_err() && damaged.is_none() {
                    damaged = Some(path.to_vec());
                }
            })?;
        }
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

    /// Takes over all folders of another index under the name of its machine, replacing what was
    /// there under that name.
    ///
    /// # Errors
    /// When either index cannot be used.
    pub fn merge(&mut self, machine: &str, other: &Self) -> Result<u64, Error> {
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
                    "INSERT INTO roots (machine, path, scanned, complete) VALUES (?1, ?2, ?3, ?4)",
                    params![name, sys::bytes(&root.path), root.scanned, root.complete],
                )?;
            }
            transaction.commit()
        };
        write().map_err(failed(&path))?;
        Ok(folders.len() as u64)
    }

    /// Forgets everything at or below a path on this machine; returns how many folders that were.
    ///
    /// # Errors
    /// When the index cannot be written.
    pub fn forget(&mut self, root: &Path) -> Result<usize, Error> {
        let (exact, from, to) = range(Some(root));
        let mut count = 0;
        for table in ["folders", "roots"] {
            let removed = self
                .db
                .execute(
                    &format!("DELETE FROM {table} WHERE machine = '' AND (path = ?1 OR path >= ?2 AND path < ?3)"),
                    params![exact, from, to],
                )
                .map_err(failed(&self.path))?;
            count = count.max(removed);
        }
        Ok(count)
    }

    /// Rewrites the entries of files after they were acted on, so that the next scan need not
    /// read them again. `now` says what each name is now: `None` = gone.
    ///
    /// # Errors
    /// When the index cannot be written; the next scan then finds out by itself.
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
                let Ok(decoder) = Decoder::new(&block) else {
                    continue;
                };
                let fsid = decoder.fsid();
                let mut entries = Vec::new();
                for mut entry in decoder.flatten() {
                    match changed.iter().find(|(name, _)| *name == entry.name) {
                        Some((_, None)) => continue,
                        Some((_, Some(id))) => {
                            entry.id = *id;
                            entry.linked = true;
                            // Just touched: trusted only after a scan has read it again.
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
        write().map_err(failed(&path))
    }
}

/// A name within a folder, and what it is now; `None` = gone.
type Change<'a> = (&'a [u8], Option<Identity>);

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
    machine: &str,
    path: &[u8],
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
        let _: FileId = files.add_file(
            dir,
            entry.name,
            NewFile {
                id: entry.id,
                fs,
                sparse: entry.sparse,
                fresh: entry.fresh,
                linked: entry.linked,
                known: Some(Known {
                    generation: entry.generation,
                    hash: entry.hash,
                    share: entry.share,
                }),
            },
        );
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

/// Takes the lock beside an index that keeps two writers apart; a crash gives it back.
fn lock(path: &Path) -> Result<File, Error> {
    let mut name = path.as_os_str().to_owned();
    name.push("-lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&name)
        .map_err(crate::error::io(&name, "cannot lock the index"))?;
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::Busy { path: path.into() }),
        Err(errno) => Err(crate::error::io(&name, "cannot lock the index")(
            errno.into(),
        )),
    }
}

fn failed(path: &Path) -> impl FnOnce(rusqlite::Error) -> Error + use<> {
    let path = path.to_path_buf();
    move |source| Error::Index { path, source }
}
