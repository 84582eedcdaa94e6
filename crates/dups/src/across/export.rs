//! Writes an index as Parquet files without paths, one per machine and hash prefix. Each row is a content with its size
//! and the number of its files.

use super::publish::{Folder, Pending, file_name, hold};
use super::sort::Sorter;
use super::{Teller, VERSION, export_columns, note};
use crate::blob::BlobEntry;
use crate::hash::HashKind;
use crate::index::Index;
use crate::mount_identity::find_possible_aliases;
use crate::{Error, roots::Roots};
use assay_columns::{CellValue, TableWriter};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// Maximum number of hexadecimal digits of a hash prefix.
pub const DIGITS: u8 = 3;

/// Size of a machine's export, for the report after the export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Number of different contents; one row each.
    pub contents: u64,
    /// Number of files; hard links count once.
    pub files: u64,
    /// Number of files without a hash; the export does not contain them.
    pub unhashed: u64,
    /// Number of Parquet files written for the machine.
    pub parts: u64,
}

/// Length of a record in bytes. Fields: machine, hash, size, file system, inode, fingerprint of the extents, number of
/// the file system in `FileSystemMap`.
const RECORD: usize = 4 + 32 + 8 + 4 + 8 + 8 + 4;
/// Stands for a file system that does not matter for the count, or that is on another machine.
const NOWHERE: u32 = u32::MAX;
/// Maximum number of distinct extent fingerprints per content. Additional fingerprints count as one.
const SHARES: usize = 1 << 20;

/// Writes the contents of an index to `dir` and replaces earlier exports of the same machines.
///
/// The prefix has `digits` hexadecimal digits, so a machine has 16^`digits` files.
///
/// # Errors
/// The index cannot be read, or a file cannot be written. Then the earlier export is still there, or
/// [`super::ask`] reports a mixture of exports.
pub fn export(
    index: &Index,
    dir: &Path,
    digits: u8,
    teller: &Teller,
) -> Result<BTreeMap<String, Exported>, Error> {
    if !(1..=DIGITS).contains(&digits) {
        return Err(Error::Usage(format!(
            "a prefix of {digits} digits: expected 1 to {DIGITS}"
        )));
    }
    let gathered = read_index(index, digits, &teller.machine)?;
    let held = hold(dir)?;
    let mut output = Output {
        held: &held,
        digits,
        teller,
        kind: index.kind().unwrap_or_default(),
        machines: &gathered.machines,
        prefixes: &gathered.prefixes,
        exported: gathered.exported,
        open: None,
        pending: Vec::new(),
    };
    let mut content: Option<Content> = None;
    let broken = |error| Error::Output(error);
    for record in gathered.sorter.finish().map_err(broken)? {
        let record = Record(record.map_err(broken)?);
        match &mut content {
            Some(one) if one.key == record.key() => one.add(&record),
            other => {
                if let Some(done) = other.replace(Content::of(&record)) {
                    output.row(&done, &gathered.roots)?;
                }
            }
        }
    }
    if let Some(done) = content {
        output.row(&done, &gathered.roots)?;
    }
    output.finish()
}

/// Record of one file, in the byte order by which all records are sorted.
struct Record([u8; RECORD]);

/// Sort key of a record: machine, hash and size.
type Key = [u8; 44];

impl Record {
    fn key(&self) -> Key {
        let mut key = [0; 44];
        key.copy_from_slice(&self.0[..44]);
        key
    }

    fn number<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.0[at..at + N]);
        bytes
    }

    fn inode(&self) -> (u32, u64) {
        let fs = u32::from_be_bytes(self.number(44));
        (fs, u64::from_be_bytes(self.number(48)))
    }

    fn share(&self) -> u64 {
        u64::from_be_bytes(self.number(56))
    }

    fn ground(&self) -> u32 {
        u32::from_be_bytes(self.number(64))
    }
}

struct Gathered {
    sorter: Sorter<RECORD>,
    machines: Vec<String>,
    /// For each machine, the hash prefixes that occur.
    prefixes: Vec<HashSet<u16>>,
    exported: Vec<Exported>,
    roots: Roots,
}

/// Reads all entries of the index once.
fn read_index(index: &Index, digits: u8, here: &str) -> Result<Gathered, Error> {
    let mut roots = index.roots()?;
    roots.retain(|root| root.machine.is_empty());
    let roots = Roots::named(roots.into_iter().map(|root| root.path));
    let plain = roots.landscape().is_plain();
    let mut found = Gathered {
        sorter: Sorter::default(),
        machines: Vec::new(),
        prefixes: Vec::new(),
        exported: Vec::new(),
        roots: Roots::default(),
    };
    let mut filesystems: HashMap<(u32, i64), u32> = HashMap::new();
    let mut full = Ok(());
    index.entries(|machine, path, entry| {
        let ground = match machine.is_empty() && !plain {
            true => roots.landscape().ground(path),
            false => None,
        };
        let named = if machine.is_empty() { here } else { machine };
        let number = match found.machines.iter().rposition(|one| one == named) {
            Some(number) => number,
            None => {
                found.machines.push(named.to_owned());
                found.prefixes.push(HashSet::new());
                found.exported.push(Exported::default());
                found.machines.len() - 1
            }
        };
        let Some(hash) = entry.hash else {
            found.exported[number].unhashed += 1;
            return;
        };
        found.prefixes[number].insert(hash_prefix(&hash, digits));
        let machine = number as u32;
        let next = filesystems.len() as u32;
        let fs = *filesystems.entry((machine, entry.fsid)).or_insert(next);
        let ground = ground.and_then(|one| u32::try_from(one).ok());
        let record = encode(machine, fs, entry, &hash, ground.unwrap_or(NOWHERE));
        if full.is_ok() {
            full = found.sorter.push(record).map_err(Error::Output);
        }
    })?;
    full?;
    found.roots = roots;
    Ok(found)
}

fn encode(
    machine: u32,
    fs: u32,
    entry: &BlobEntry<'_>,
    hash: &[u8; 32],
    ground: u32,
) -> [u8; RECORD] {
    let mut record = [0; RECORD];
    record[..4].copy_from_slice(&machine.to_be_bytes());
    record[4..36].copy_from_slice(hash);
    record[36..44].copy_from_slice(&entry.id.size.to_be_bytes());
    record[44..48].copy_from_slice(&fs.to_be_bytes());
    record[48..56].copy_from_slice(&entry.id.ino.to_be_bytes());
    record[56..64].copy_from_slice(&entry.share.unwrap_or(0).to_be_bytes());
    record[64..].copy_from_slice(&ground.to_be_bytes());
    record
}

/// Returns the first digits of a hash as a number.
pub(crate) fn hash_prefix(hash: &[u8], digits: u8) -> u16 {
    let head = hash
        .first_chunk()
        .map_or(0, |head| u16::from_be_bytes(*head));
    head >> (16 - 4 * u32::from(digits))
}

/// Collects the files of one content on one machine, ordered by file system and inode.
struct Content {
    key: Key,
    last: (u32, u64),
    shared: HashSet<(u32, u64)>,
    /// For each file system that may show files of another file system: its number, the number of inodes, and the
    /// number of inodes with their own blocks.
    grounds: Vec<(u32, u64, u64)>,
}

impl Content {
    fn of(record: &Record) -> Self {
        let mut one = Self {
            key: record.key(),
            last: record.inode(),
            shared: HashSet::new(),
            grounds: Vec::new(),
        };
        one.count(record);
        one
    }

    fn add(&mut self, record: &Record) {
        // Another name of the same inode.
        if self.last != record.inode() {
            self.last = record.inode();
            self.count(record);
        }
    }

    fn count(&mut self, record: &Record) {
        let own = match record.share() {
            0 => true,
            _ if self.shared.len() == SHARES => false,
            share => self.shared.insert((record.inode().0, share)),
        };
        let ground = record.ground();
        let at = self.grounds.iter().position(|one| one.0 == ground);
        let at = at.unwrap_or_else(|| {
            self.grounds.push((ground, 0, 0));
            self.grounds.len() - 1
        });
        self.grounds[at].1 += 1;
        self.grounds[at].2 += u64::from(own);
    }

    /// Returns the minimum number of different files. Files that share all their blocks count once, and so do files
    /// that may be the same file.
    fn files(&self, roots: &Roots) -> u64 {
        let land = roots.landscape();
        // Only the difference between one and several files of a kind matters.
        let each = self.grounds.iter().flat_map(|(ground, inodes, _)| {
            let ground = (*ground != NOWHERE).then_some(*ground as usize);
            std::iter::repeat_n(ground, usize::from(*inodes > 1) + 1)
        });
        let each: Vec<Option<usize>> = each.collect();
        let doubtful = find_possible_aliases(&each, |a, b| land.doubt(a, b));
        let lost: HashSet<usize> = each
            .iter()
            .zip(doubtful)
            .filter_map(|(ground, lost)| ground.filter(|_| lost))
            .collect();
        let certain = self
            .grounds
            .iter()
            .filter(|one| !lost.contains(&(one.0 as usize)));
        let certain: u64 = certain.map(|one| one.2).sum();
        certain + u64::from(!lost.is_empty())
    }
}

/// Output files that are being written.
struct Output<'a> {
    held: &'a Folder,
    digits: u8,
    teller: &'a Teller,
    kind: HashKind,
    machines: &'a [String],
    prefixes: &'a [HashSet<u16>],
    exported: Vec<Exported>,
    open: Option<Part>,
    pending: Vec<Pending>,
}

struct Part {
    machine: usize,
    prefix: u16,
    pending: Pending,
    writer: TableWriter<BufWriter<File>>,
}

impl Output<'_> {
    fn row(&mut self, content: &Content, roots: &Roots) -> Result<(), Error> {
        let (machine, rest) = content.key.split_at(4);
        let (hash, size) = rest.split_at(32);
        let machine = u32::from_be_bytes(machine.try_into().unwrap_or_default()) as usize;
        let size = u64::from_be_bytes(size.try_into().unwrap_or_default());
        let prefix = hash_prefix(hash, self.digits);
        let goes_on = |part: &Part| part.machine == machine && part.prefix == prefix;
        if !self.open.as_ref().is_some_and(goes_on) {
            self.close()?;
            self.open = Some(self.begin(machine, prefix)?);
        }
        let files = content.files(roots);
        let exported = &mut self.exported[machine];
        exported.contents += 1;
        exported.files += files;
        let Some(part) = &mut self.open else {
            return Ok(());
        };
        let row = [
            CellValue::Text(&self.machines[machine]),
            CellValue::Fixed(&hash[..self.kind.length()]),
            CellValue::Int(i64::try_from(size).unwrap_or(i64::MAX)),
            CellValue::Int(i64::try_from(files).unwrap_or(i64::MAX)),
        ];
        let written = part.writer.row(&row);
        written.map_err(|source| Error::table(part.pending.shown(), source))
    }

    fn begin(&mut self, machine: usize, prefix: u16) -> Result<Part, Error> {
        let name = &self.machines[machine];
        let below = prefix_folder_name(prefix, self.digits);
        let file = format!("{}.parquet", file_name(name));
        let (pending, out) = Pending::begin(self.held, &below, &file)?;
        let own = *name == self.teller.machine;
        let id = self.teller.id.clone().filter(|_| own);
        let notes = [
            (note::WHAT, "dups".to_owned()),
            (note::VERSION, VERSION.to_owned()),
            (note::MACHINE, name.clone()),
            (note::ID, id.unwrap_or_default()),
            (note::HASH, self.kind.name().to_owned()),
            (note::EXPORT, self.teller.export.clone()),
            (note::FILES, self.prefixes[machine].len().to_string()),
        ];
        let writer = TableWriter::new(out, &export_columns(self.kind.length()), &notes)
            .map_err(|source| Error::table(pending.shown(), source))?;
        self.exported[machine].parts += 1;
        Ok(Part {
            machine,
            prefix,
            pending,
            writer,
        })
    }

    fn close(&mut self) -> Result<(), Error> {
        if let Some(part) = self.open.take() {
            let out = part.writer.finish();
            let out = out.map_err(|source| Error::table(part.pending.shown(), source))?;
            part.pending.complete(out)?;
            self.pending.push(part.pending);
        }
        Ok(())
    }

    /// Gives all files their final names, and removes earlier exports of the same machines.
    fn finish(mut self) -> Result<BTreeMap<String, Exported>, Error> {
        self.close()?;
        let mut here = HashSet::new();
        for pending in self.pending {
            here.insert(pending.path().to_path_buf());
            pending.publish()?;
        }
        for (_, dir) in list_prefix_folders(&self.held.path())? {
            for machine in self.machines {
                let path = dir.join(format!("{}.parquet", file_name(machine)));
                if !here.contains(&path) {
                    match std::fs::remove_file(&path) {
                        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                            return Err(crate::error::io_error(path, "cannot remove")(error));
                        }
                        _ => {}
                    }
                }
            }
            // Removes the folder only if it is empty.
            let _ = std::fs::remove_dir(&dir);
        }
        Ok(self.machines.iter().cloned().zip(self.exported).collect())
    }
}

/// Returns the name of a prefix's folder in the style of Hive, so that other Parquet readers recognise the prefix.
fn prefix_folder_name(prefix: u16, digits: u8) -> String {
    format!("prefix={prefix:0width$x}", width = usize::from(digits))
}

/// Lists the prefix folders of an export with their digits.
pub(crate) fn list_prefix_folders(dir: &Path) -> Result<Vec<(String, PathBuf)>, Error> {
    let cannot = || crate::error::io_error(dir, "cannot read");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(cannot())? {
        let entry = entry.map_err(cannot())?;
        let name = entry.file_name();
        let digits = name.to_str().and_then(|name| name.strip_prefix("prefix="));
        let fits = |digits: &&str| {
            (1..=usize::from(DIGITS)).contains(&digits.len())
                && digits
                    .bytes()
                    .all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
        };
        if let Some(digits) = digits.filter(fits) {
            found.push((digits.to_owned(), entry.path()));
        }
    }
    found.sort();
    Ok(found)
}
