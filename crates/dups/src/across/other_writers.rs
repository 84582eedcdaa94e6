//! Reads tables that other programs such as DuckDB and pyarrow wrote: the columns of an export without assay's
//! metadata, with rows of any machines in any order.

use super::export_columns;
use super::export_rows::{Prefix, ROW};
use super::machines::Machines;
use super::sort::Sorter;
use crate::Error;
use crate::hash::HashKind;
use assay_columns::{Batch, ColumnKind, Reader, TableSource};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A table without assay's metadata, such as one written by DuckDB.
pub struct OtherTable {
    reader: Reader,
    path: PathBuf,
    prefix: Prefix,
}

impl OtherTable {
    /// Uses an open table; all its hashes must begin with `prefix`.
    pub fn new(reader: Reader, path: &Path, prefix: &str) -> Self {
        Self {
            reader,
            path: path.into(),
            prefix: Prefix::of(prefix),
        }
    }

    /// Reads all rows into a sorter. Returns the kind of the hashes, `None` without a row.
    ///
    /// # Errors
    /// The file is damaged, or a row has a value that no export has.
    pub fn read(
        mut self,
        machines: &Mutex<Machines>,
        sorter: &mut Sorter<ROW>,
    ) -> Result<Option<HashKind>, Error> {
        let (mut batch, mut kind, mut before) = (Batch::default(), None, 0_u64);
        let mut last: Option<(Vec<u8>, u32)> = None;
        loop {
            let read = self.reader.read(&mut batch);
            read.map_err(|source| Error::table(&self.path, source))?;
            if batch.rows == 0 {
                return Ok(kind);
            }
            let [machine, hash, size, count] = &batch.columns[..] else {
                return Err(Error::strange(&self.path, "it has other columns"));
            };
            for at in 0..batch.rows {
                let wrong = |what: &str| {
                    let row = before + at as u64 + 1;
                    Err(Error::strange(&self.path, format!("row {row}: {what}")))
                };
                let (name, hash) = (machine.bytes(at), hash.bytes(at));
                let Some(of) = HashKind::of_length(hash.len()) else {
                    return wrong("its hash has neither 16 bytes (xxh3-128) nor 32 (blake3)");
                };
                if *kind.get_or_insert(of) != of {
                    return wrong("its hash has another length than those before");
                }
                if !self.prefix.begins(hash) {
                    return wrong("its hash does not begin with the digits of this folder");
                }
                let number = |column: &assay_columns::Values| {
                    column.int(at).and_then(|value| u64::try_from(value).ok())
                };
                let Some(size) = number(size) else {
                    return wrong("its size is negative");
                };
                let Some(count) = number(count).filter(|count| *count > 0) else {
                    return wrong("its count is below 1");
                };
                let number = match &last {
                    Some((before, number)) if before == name => *number,
                    _ => {
                        let Ok(text) = std::str::from_utf8(name) else {
                            return wrong("its machine is not UTF-8");
                        };
                        let mut machines = machines.lock().unwrap_or_else(PoisonError::into_inner);
                        let number = machines.enter_name(text, &self.path)?;
                        last = Some((name.to_vec(), number));
                        number
                    }
                };
                let mut row = [0; ROW];
                row[..hash.len()].copy_from_slice(hash);
                row[32..40].copy_from_slice(&size.to_be_bytes());
                row[40..44].copy_from_slice(&number.to_be_bytes());
                row[44..].copy_from_slice(&count.to_be_bytes());
                sorter.push(row).map_err(Error::Output)?;
            }
            before += batch.rows as u64;
        }
    }
}

/// Opens a table with the columns of an export, for hashes of 16 or 32 bytes.
///
/// # Errors
/// The file does not have these columns, or cannot be read.
pub fn open_columns(source: &TableSource, path: &Path) -> Result<Reader, Error> {
    let open = |hash: ColumnKind| {
        let mut columns = export_columns(0);
        columns[1].kind = hash;
        Reader::open(source.clone(), &columns)
    };
    let fixed = |kind: HashKind| ColumnKind::Fixed(kind.length());
    // DuckDB has no type of fixed length.
    let other = |error| {
        let found = open(fixed(HashKind::Blake3)).or_else(|_| open(ColumnKind::Bytes));
        // If the hash is right for one of them, another column differs.
        found.map_err(|other| match other.to_string().contains("`hash`") {
            true => error,
            false => other,
        })
    };
    let found = open(fixed(HashKind::Xxh3)).or_else(other);
    found.map_err(|source| Error::table(path, source))
}
