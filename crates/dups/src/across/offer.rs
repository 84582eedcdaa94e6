//! Writes the offer of a machine: the size and a short sample of every file. From the offers of all machines, the hub
//! (`assay dups collide`) finds contents that several machines may have. Reads at most 12 KiB of a file.

use super::export_rows::open_table;
use super::machines::Machines;
use super::sort::Sorter;
use super::{Teller, VERSION, note};
use crate::index::Index;
use crate::read::{Cost, PROBE, unchanged};
use crate::roots::Roots;
use crate::table::File;
use crate::{Control, Error, Identity};
use assay_columns::{Batch, CellValue, Column, ColumnKind, Reader, TableSource, TableWriter};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};

/// Size and sample of a file. Files with the same key may have the same content.
pub type SampleKey = (u64, [u8; 8]);

/// Columns of an offer: size, sample, and number of files.
pub(super) const OFFERED: [Column; 3] = [
    Column::new("size", ColumnKind::Int),
    Column::new("sample", ColumnKind::Fixed(8)),
    Column::new("count", ColumnKind::Count),
];

/// Size of an offer, for the report after the offer was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offered {
    /// Number of different sizes and samples; one row each.
    pub rows: u64,
    /// Number of file names on which the offer is based.
    pub names: u64,
    /// Number of omitted files: files that are unreadable or have changed since the scan.
    pub left_out: u64,
}

/// Computes the sample of an open file: a hash of its beginning, middle and end, or of all of it if it is
/// short. Equal contents have equal samples.
pub(crate) fn sample(
    fd: &OwnedFd,
    size: u64,
    cost: &mut Cost,
) -> Result<[u8; 8], crate::read::Trouble> {
    let mut bytes = [0; 3 * PROBE];
    let length = usize::try_from(size).unwrap_or(usize::MAX).min(bytes.len());
    match length < bytes.len() {
        true => cost.fill(fd, &mut bytes[..length], 0)?,
        false => cost.probe(fd, size, &mut bytes)?,
    }
    let hash = crate::hash::HashKind::Xxh3.of(&bytes[..length]);
    let mut sample = [0; 8];
    sample.copy_from_slice(&hash[..8]);
    Ok(sample)
}

/// Length of a record in bytes. Fields: size, sample.
const RECORD: usize = 16;
/// Maximum number of file names in the queue of the sampling threads.
const WAITING: usize = 1024;

/// Writes the offer of this machine's files.
///
/// # Errors
/// The index cannot be read, or the offer cannot be written.
pub fn write_offer<W: Write + Send>(
    index: &Index,
    out: W,
    teller: &Teller,
    control: &Control<'_>,
) -> Result<(Offered, W), Error> {
    let broken = |source| Error::table("the offer", source);
    let mut offered = Offered::default();
    let sorter = sample_files(index, control, &mut offered)?;
    let notes = [
        (note::WHAT, "dups-offer".to_owned()),
        (note::VERSION, VERSION.to_owned()),
        (note::MACHINE, teller.machine.clone()),
        (note::ID, teller.id.clone().unwrap_or_default()),
        (note::EXPORT, teller.export.clone()),
    ];
    let mut writer = TableWriter::new(out, &OFFERED, &notes).map_err(broken)?;
    let mut last: Option<([u8; RECORD], i64)> = None;
    let mut put = |record: [u8; RECORD], count: i64| {
        let (size, sample) = record.split_at(8);
        let size = i64::from_be_bytes(size.try_into().unwrap_or_default());
        writer.row(&[
            CellValue::Int(size),
            CellValue::Fixed(sample),
            CellValue::Int(count),
        ])
    };
    for record in sorter.finish().map_err(Error::Output)? {
        let record = record.map_err(Error::Output)?;
        match &mut last {
            Some((same, count)) if *same == record => *count += 1,
            other => {
                if let Some((record, count)) = other.replace((record, 1)) {
                    put(record, count).map_err(broken)?;
                }
                offered.rows += 1;
            }
        }
    }
    if let Some((record, count)) = last {
        put(record, count).map_err(broken)?;
    }
    Ok((offered, writer.finish().map_err(broken)?))
}

/// Computes the samples of all files of this machine with several threads.
fn sample_files(
    index: &Index,
    control: &Control<'_>,
    offered: &mut Offered,
) -> Result<Sorter<RECORD>, Error> {
    let mut roots = index.roots()?;
    roots.retain(|root| root.machine.is_empty());
    let roots = Roots::named(roots.into_iter().map(|root| root.path));
    let threads = control.threads.unwrap_or(8).max(1);
    let (names, waiting) = sync_channel::<(Vec<u8>, Identity)>(WAITING);
    let waiting = Mutex::new(waiting);
    let found = Mutex::new((Sorter::<RECORD>::default(), 0_u64, Ok(())));
    let work = || {
        while let Some((path, id)) = next(&waiting) {
            let one = roots.open_file(&path).ok().and_then(|fd| {
                let file = File::known(id);
                let sample = sample(&fd, id.size, &mut Cost::default()).ok()?;
                unchanged(&fd, &file).ok()?;
                Some(sample)
            });
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(sample) = one else {
                found.1 += 1;
                continue;
            };
            let mut record = [0; RECORD];
            record[..8].copy_from_slice(&id.size.to_be_bytes());
            record[8..].copy_from_slice(&sample);
            if found.2.is_ok() {
                found.2 = found.0.push(record);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
        let mut path = Vec::new();
        let ended = index.entries(|machine, folder, entry| {
            if !machine.is_empty() || control.stopped() {
                return;
            }
            control.tick();
            offered.names += 1;
            path.clear();
            path.extend_from_slice(&crate::table::join(folder, entry.name));
            // Sending fails only after a panic, which the scope passes on.
            let _ = names.send((path.clone(), entry.id));
        });
        drop(names);
        ended
    })?;
    let (sorter, left_out, pushed) = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    pushed.map_err(Error::Output)?;
    offered.left_out = left_out;
    match control.stopped() {
        false => Ok(sorter),
        true => Err(Error::Usage("interrupted: nothing was offered".into())),
    }
}

fn next(waiting: &Mutex<Receiver<(Vec<u8>, Identity)>>) -> Option<(Vec<u8>, Identity)> {
    let waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
    waiting.recv().ok()
}

/// Reads the rows of an offer, or of a list of files to hash. Checks each row, because the file is untrusted.
pub(super) struct Samples {
    reader: Reader,
    batch: Batch,
    at: usize,
    path: PathBuf,
    last: Option<SampleKey>,
    over: bool,
}

impl Samples {
    /// Reads a table of kind `what`. Error messages contain `path`.
    pub fn of(source: TableSource, path: &Path, what: &str) -> Result<Self, Error> {
        let reader = Reader::open(source, &OFFERED).map_err(|source| Error::table(path, source))?;
        if reader.note(note::WHAT) != Some(what) || reader.note(note::VERSION) != Some(VERSION) {
            return Err(Error::strange(
                path,
                format!("it is no `{what}` of version {VERSION}; use the same assay on both sides"),
            ));
        }
        Ok(Self {
            reader,
            batch: Batch::default(),
            at: 0,
            path: path.into(),
            last: None,
            over: false,
        })
    }

    /// Opens an offer. Returns its rows and the number of its machine.
    pub fn offered(path: &Path, machines: &mut Machines) -> Result<(Self, u32), Error> {
        let one = Self::of(open_table(path)?, path, "dups-offer")?;
        let machine = machines.enter(&one.reader, "", path)?;
        Ok((one, machine))
    }

    /// Returns an entry of the table's metadata.
    pub fn note(&self, name: &str) -> &str {
        self.reader.note(name).unwrap_or_default()
    }

    /// Returns the number of rows that the table declares.
    pub fn rows(&self) -> u64 {
        self.reader.rows()
    }

    fn row(&mut self) -> Result<Option<SampleKey>, Error> {
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
        let key = match &self.batch.columns[..] {
            [size, sample, _] => {
                let size = size.int(at).and_then(|size| u64::try_from(size).ok());
                size.zip(sample.bytes(at).try_into().ok())
            }
            _ => None,
        };
        match key.filter(|key| self.last.is_none_or(|last| last < *key)) {
            Some(key) => {
                self.last = Some(key);
                Ok(Some(key))
            }
            None => Err(Error::strange(
                &self.path,
                "its rows are not in the order in which assay writes them; let it be made again",
            )),
        }
    }
}

impl Iterator for Samples {
    type Item = Result<SampleKey, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let row = self.row();
        self.over = !matches!(row, Ok(Some(_)));
        row.transpose()
    }
}
