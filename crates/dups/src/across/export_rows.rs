//! Reads the rows of an exported file as sortable records and checks each row, because the file is untrusted.

use super::machines::Machines;
use super::other_writers::{OtherTable, open_columns};
use super::sort::Sorter;
use super::{VERSION, note};
use crate::Error;
use crate::hash::HashKind;
use assay_columns::{Batch, Reader, TableSource};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Length of a record in bytes. Fields: hash, size, machine, count; numbers are big-endian.
pub const ROW: usize = 32 + 8 + 4 + 8;

/// Opens an untrusted table: only a regular file, without following links.
pub(crate) fn open_table(path: &Path) -> Result<TableSource, Error> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let open = || -> std::io::Result<TableSource> {
        let file: File = rustix::fs::open(path, flags, Mode::empty())?.into();
        match file.metadata()?.is_file() {
            true => TableSource::file(file),
            false => Err(std::io::Error::other("not a regular file")),
        }
    };
    open().map_err(crate::error::io_error(path, "cannot open"))
}

/// Returns the hash kind that a table declares. Fails if the table is not an export, or if exports do not support the
/// kind.
fn read_hash_kind(reader: &Reader) -> Result<HashKind, String> {
    match reader.note(note::WHAT) {
        Some("dups") => {}
        Some(other) => {
            return Err(format!(
                "it is no export of `assay dups`, but a table `{}` of assay",
                other.escape_debug()
            ));
        }
        None => return Err("it is no export of `assay dups`".into()),
    }
    match reader.note(note::VERSION) {
        Some(VERSION) => {}
        other => {
            return Err(format!(
                "it has version {}, this assay reads {VERSION}; use the same assay on both sides",
                other.unwrap_or("none").escape_debug()
            ));
        }
    }
    let hash = reader.note(note::HASH).unwrap_or_default();
    HashKind::named(hash).ok_or_else(|| format!("it has a hash `{}`", hash.escape_debug()))
}

/// Reads the sorted rows of one exported file.
pub struct Feed {
    reader: Reader,
    batch: Batch,
    at: usize,
    path: PathBuf,
    kind: HashKind,
    machine: u32,
    name: Vec<u8>,
    /// Prefix of all hashes in the file.
    prefix: Prefix,
    last: Option<[u8; 40]>,
    over: bool,
}

/// An open file with the columns of an export.
pub enum Opened {
    /// Export of assay, with sorted rows.
    Export(Box<Feed>),
    /// Table of another program, with rows in any order.
    Other(Box<OtherTable>),
}

impl Opened {
    /// Opens a file in the folder of a prefix.
    pub fn open(path: &Path, prefix: &str, machines: &Mutex<Machines>) -> Result<Self, Error> {
        Self::of(&open_table(path)?, path, prefix, machines)
    }

    /// Reads an open table. Error messages contain `path`.
    fn of(
        source: &TableSource,
        path: &Path,
        prefix: &str,
        machines: &Mutex<Machines>,
    ) -> Result<Self, Error> {
        let reader = open_columns(source, path)?;
        Ok(match reader.note(note::WHAT) {
            None => Self::Other(Box::new(OtherTable::new(reader, path, prefix))),
            Some(_) => Self::Export(Box::new(Feed::of(reader, path, prefix, machines)?)),
        })
    }
}

impl Feed {
    fn of(
        reader: Reader,
        path: &Path,
        prefix: &str,
        machines: &Mutex<Machines>,
    ) -> Result<Self, Error> {
        let kind = read_hash_kind(&reader).map_err(|what| Error::strange(path, what))?;
        let mut machines = machines.lock().unwrap_or_else(PoisonError::into_inner);
        let machine = machines.enter(&reader, prefix, path)?;
        Ok(Self {
            name: machines.name(machine).as_bytes().to_vec(),
            reader,
            batch: Batch::default(),
            at: 0,
            path: path.into(),
            kind,
            machine,
            prefix: Prefix::of(prefix),
            last: None,
            over: false,
        })
    }

    /// Returns the kind of the file's hashes.
    pub fn kind(&self) -> HashKind {
        self.kind
    }

    fn row(&mut self) -> Result<Option<[u8; ROW]>, Error> {
        if self.at == self.batch.rows {
            self.at = 0;
            let read = self.reader.read(&mut self.batch);
            read.map_err(|source| Error::table(&self.path, source))?;
            if self.batch.rows == 0 {
                return Ok(None);
            }
        }
        let at = self.at;
        self.at += 1;
        let [machine, hash, size, count] = &self.batch.columns[..] else {
            return Err(self.damaged());
        };
        let (hash, length) = (hash.bytes(at), self.kind.length());
        let number = |column: &assay_columns::Values, least: u64| {
            let value = column.int(at).and_then(|value| u64::try_from(value).ok());
            value.filter(|value| *value >= least)
        };
        let (Some(size), Some(count)) = (number(size, 0), number(count, 1)) else {
            return Err(self.damaged());
        };
        if hash.len() != length || machine.bytes(at) != self.name || !self.prefix.begins(hash) {
            return Err(self.damaged());
        }
        let mut row = [0; ROW];
        row[..length].copy_from_slice(hash);
        row[32..40].copy_from_slice(&size.to_be_bytes());
        row[40..44].copy_from_slice(&self.machine.to_be_bytes());
        row[44..].copy_from_slice(&count.to_be_bytes());
        let mut key = [0; 40];
        key.copy_from_slice(&row[..40]);
        if self.last.is_some_and(|last| last >= key) {
            return Err(self.damaged());
        }
        self.last = Some(key);
        Ok(Some(row))
    }

    fn damaged(&self) -> Error {
        Error::strange(
            &self.path,
            "its rows are not as assay writes them: hashes of this folder's prefix, in order, of one machine; remove it, or export there again",
        )
    }
}

/// Hexadecimal digits from the name of a folder, as bits for a fast comparison.
pub(super) struct Prefix {
    mask: u64,
    value: u64,
}

impl Prefix {
    /// Parses at most sixteen digits. Any other text matches no hash.
    pub fn of(digits: &str) -> Self {
        let bits = 4 * digits.len() as u32;
        match u64::from_str_radix(digits, 16) {
            Ok(value) if (1..=64).contains(&bits) => Self {
                mask: u64::MAX << (64 - bits),
                value: value << (64 - bits),
            },
            _ if digits.is_empty() => Self { mask: 0, value: 0 },
            _ => Self { mask: 0, value: 1 },
        }
    }

    /// Returns whether a hash begins with the digits.
    pub fn begins(&self, hash: &[u8]) -> bool {
        let first = hash.first_chunk().map(|first| u64::from_be_bytes(*first));
        first.is_some_and(|first| first & self.mask == self.value)
    }
}

impl Iterator for Feed {
    type Item = Result<[u8; ROW], Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let row = self.row();
        self.over = !matches!(row, Ok(Some(_)));
        row.transpose()
    }
}

/// Reads a whole table of assay or another program, checks that all hashes start with the given digits, and counts the
/// rows.
///
/// # Errors
/// The file has other columns, or is damaged.
pub fn count_rows(source: TableSource, path: &Path, prefix: &str) -> Result<u64, Error> {
    let machines = Mutex::default();
    match Opened::of(&source, path, prefix, &machines)? {
        Opened::Export(feed) => feed.map(|row| row.map(|_| 1)).sum(),
        Opened::Other(table) => {
            let mut sorter = Sorter::default();
            table.read(&machines, &mut sorter)?;
            let rows = sorter.finish().map_err(Error::Output)?;
            rows.map(|row| row.map(|_| 1).map_err(Error::Output)).sum()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_begin_with_digits() {
        let hash = [0xab, 0xcd, 0xef, 0, 0, 0, 0, 1, 9];
        for (digits, begins) in [
            ("", true),
            ("a", true),
            ("b", false),
            ("abc", true),
            ("abcd", true),
            ("abce", false),
            ("abcdef0000000001", true),
            ("abcdef00000000011", false),
            ("xy", false),
            ("+a", false),
        ] {
            assert_eq!(Prefix::of(digits).begins(&hash), begins, "{digits}");
        }
        assert!(!Prefix::of("a").begins(&hash[..7]));
    }
}
