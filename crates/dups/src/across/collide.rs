//! The work of the hub, the machine that runs `assay dups collide`: finds pairs of file size and sample that several
//! machines have. Each machine then hashes only the contents with these pairs.

use super::machines::Machines;
use super::offer::{OFFERED, SampleKey, Samples};
use super::publish::{Pending, file_name, hold};
use super::sort::{FAN, Merge, SortedRun, Sorter, write};
use super::{VERSION, note};
use crate::Error;
use assay_columns::{CellValue, TableWriter};
use std::path::{Path, PathBuf};

/// Length of a record in bytes. Fields: size, sample, machine; or machine, size, sample.
const RECORD: usize = 8 + 8 + 4;

/// List of contents that a machine must hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanting {
    /// Name of the machine that must hash the contents.
    pub machine: String,
    /// Number of rows (size and sample).
    pub rows: u64,
    /// Path of the written table.
    pub path: PathBuf,
}

/// Writes to `dir`, for each machine, its pairs of size and sample that another machine also has. Several offers of one
/// machine count as one machine.
///
/// # Errors
/// An offer cannot be read or is damaged, or a file cannot be written. Written files are complete.
pub fn find_common_samples(offers: &[PathBuf], dir: &Path) -> Result<Vec<Wanting>, Error> {
    let mut machines = Machines::default();
    let mut runs = Vec::new();
    if offers.len() <= FAN {
        runs = open(offers, &mut machines)?;
    } else {
        for some in offers.chunks(FAN) {
            let merged = Merge::of(open(some, &mut machines)?)?;
            runs.push(run(merged)?);
            if runs.len() == FAN {
                let merged = Merge::of(std::mem::take(&mut runs))?;
                runs.push(run(merged)?);
            }
        }
    }
    let mut wanted = Sorter::<RECORD>::default();
    let mut group: Vec<[u8; RECORD]> = Vec::new();
    let mut close = |group: &mut Vec<[u8; RECORD]>| -> Result<(), Error> {
        group.dedup();
        for record in group.iter().filter(|_| group.len() > 1) {
            let mut turned = [0; RECORD];
            turned[..4].copy_from_slice(&record[16..]);
            turned[4..].copy_from_slice(&record[..16]);
            wanted.push(turned).map_err(Error::Output)?;
        }
        group.clear();
        Ok(())
    };
    for record in Merge::of(runs)? {
        let record = record?;
        if group.last().is_some_and(|last| last[..16] != record[..16]) {
            close(&mut group)?;
        }
        group.push(record);
    }
    close(&mut group)?;
    publish(wanted, &machines, dir)
}

type Records = Box<dyn Iterator<Item = Result<[u8; RECORD], Error>>>;

fn open(offers: &[PathBuf], machines: &mut Machines) -> Result<Vec<Records>, Error> {
    let one = |path: &PathBuf| -> Result<Records, Error> {
        let (samples, machine) = Samples::offered(path, machines)?;
        let record = move |key: SampleKey| {
            let mut record = [0; RECORD];
            record[..8].copy_from_slice(&key.0.to_be_bytes());
            record[8..16].copy_from_slice(&key.1);
            record[16..].copy_from_slice(&machine.to_be_bytes());
            record
        };
        Ok(Box::new(samples.map(move |key| key.map(record))))
    };
    offers.iter().map(one).collect()
}

/// Writes merged records to an unnamed file, which the next merge reads.
fn run(merged: impl Iterator<Item = Result<[u8; RECORD], Error>>) -> Result<Records, Error> {
    let mut failed = None;
    let whole = merged.map_while(|row| row.map_err(|error| failed = Some(error)).ok().map(Ok));
    let file = write(whole).map_err(Error::Output)?;
    if let Some(error) = failed {
        return Err(error);
    }
    let run = SortedRun::<RECORD>::file(file).map_err(Error::Output)?;
    Ok(Box::new(run.map(|record| record.map_err(Error::Output))))
}

/// Writes a list for each machine; the list is empty if the machine has nothing to hash.
fn publish(wanted: Sorter<RECORD>, machines: &Machines, dir: &Path) -> Result<Vec<Wanting>, Error> {
    let folder = hold(dir)?;
    let mut records = wanted.finish().map_err(Error::Output)?.peekable();
    let mut done = Vec::new();
    for machine in 0..machines.len() as u32 {
        let name = machines.name(machine);
        let (pending, out) = Pending::begin(&folder, "", &format!("{}.parquet", file_name(name)))?;
        let broken = |source| Error::table(pending.shown(), source);
        let notes = [
            (note::WHAT, "dups-wanted".to_owned()),
            (note::VERSION, VERSION.to_owned()),
            (note::MACHINE, name.to_owned()),
            (note::ID, machines.id(machine).to_owned()),
        ];
        let mut writer = TableWriter::new(out, &OFFERED, &notes).map_err(broken)?;
        let mut rows = 0;
        let own = machine.to_be_bytes();
        while let Some(record) =
            records.next_if(|one| one.as_ref().map_or(true, |one| one[..4] == own))
        {
            let record = record.map_err(Error::Output)?;
            let size = i64::from_be_bytes(record[4..12].try_into().unwrap_or_default());
            let row = [
                CellValue::Int(size),
                CellValue::Fixed(&record[12..]),
                CellValue::Int(1),
            ];
            writer.row(&row).map_err(broken)?;
            rows += 1;
        }
        let out = writer.finish().map_err(broken)?;
        pending.complete(out)?;
        let path = pending.shown().to_path_buf();
        pending.publish()?;
        done.push(Wanting {
            machine: name.to_owned(),
            rows,
            path,
        });
    }
    done.sort_by(|a, b| a.machine.cmp(&b.machine));
    Ok(done)
}
