//! Answers questions about the exports of many machines. Merges all sorted files, prefix by prefix.

use super::export::list_prefix_folders;
use super::export_rows::{Feed, Opened, ROW};
use super::machines::Machines;
use super::sort::{Merge, SortedRun, Sorter, write};
use crate::Error;
use crate::error::io_error;
use crate::hash::HashKind;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Maximum number of files that a thread merges at once. For 1000 files with 3.9 million rows, one merge took
/// 1.3 to 1.9 s of CPU time and 165 MB; merges of 128 files took 1.3 to 1.7 s and 26 MB.
const FAN: usize = 128;
/// Number of file descriptors that the merge leaves for other uses.
const RESERVE: u64 = 64;

/// Maximum number of machines that the answer lists for a content.
const NAMED: usize = 8;

/// Contents that machines have in common. Byte counts are sums of file sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Answer")]
pub struct CommonFiles {
    /// Kind of the hash: `xxh3-128` or `blake3`; empty without an export.
    pub hash: String,
    /// Number of files, summed over all machines.
    pub files: u64,
    /// Total size of the files in bytes.
    pub bytes: u64,
    /// Number of different contents.
    pub contents: u64,
    /// Number of contents with several files.
    pub groups: u64,
    /// Number of files beyond the first of each content.
    pub redundant_files: u64,
    /// Size of the redundant files. The bytes would be freed if only one copy of each content were kept.
    pub redundant_bytes: u64,
    /// Number of contents that at least two machines have.
    pub shared_groups: u64,
    /// Bytes of the shared contents. Each content counts once for every machine that has it, except one machine.
    pub shared_bytes: u64,
    /// Number of repeated rows; a file that is given twice repeats its rows. Repeated rows count once.
    pub repeated_rows: u64,
    /// Counts of each machine, ordered by name.
    pub machines: Vec<ExportMachine>,
    /// Contents with the most redundant bytes, in descending order.
    pub largest: Vec<Large>,
    /// Problems that make the answer incomplete.
    pub problems: Vec<String>,
}

/// Counts of one machine in the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Machine")]
pub struct ExportMachine {
    /// Name of the machine, as in its export.
    pub name: String,
    /// Number of files of this machine.
    pub files: u64,
    /// Size of the files of this machine.
    pub bytes: u64,
    /// Size of the redundant copies within this machine, beyond the first copy of each content.
    pub redundant_bytes: u64,
    /// Bytes of the machine's contents that another machine has, too. Each content counts once.
    pub shared_bytes: u64,
}

/// A content with many redundant bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Large {
    /// Hash in hexadecimal.
    pub hash: String,
    /// Size of each file in bytes.
    pub size: u64,
    /// Number of files with this content on all machines.
    pub files: u64,
    /// Number of machines with this content.
    pub machines: u64,
    /// Names of at most eight of these machines.
    pub names: Vec<String>,
    /// Bytes of all files beyond the first.
    pub redundant_bytes: u64,
}

/// Sums in 128 bits, so that a hostile file cannot cause an overflow.
#[derive(Clone, Copy, Default)]
struct Sums {
    files: u128,
    bytes: u128,
    contents: u128,
    groups: u128,
    redundant_files: u128,
    redundant_bytes: u128,
    shared_groups: u128,
    shared_bytes: u128,
    repeated_rows: u128,
}

/// Counts of one machine: files, bytes, redundant bytes, shared bytes.
type Own = [u128; 4];

/// Entry of the list of the largest contents. The order of the fields is the sort order: redundant bytes, size, hash,
/// machines with their number of files.
type Heavy = (u128, u64, Reverse<[u8; 32]>, Vec<(u32, u64)>);

/// Answers questions about the exports in these folders and files with `threads` threads. `top` limits the list of the
/// largest contents.
///
/// # Errors
/// A folder cannot be read, a file is damaged, or the exports use different hashes. A file that cannot be
/// opened is omitted and reported.
pub fn ask(dirs: &[PathBuf], top: usize, threads: usize) -> Result<CommonFiles, Error> {
    let threads = threads.max(1);
    let each =
        crate::open_folders::raise_descriptor_limit().saturating_sub(RESERVE) / threads as u64;
    let fan = usize::try_from(each).unwrap_or(FAN);
    ask_merging(dirs, top, threads, fan.min(FAN))
}

/// Like [`ask`], with at most `fan` files merged at once (at least two).
///
/// # Errors
/// As [`ask`].
pub fn ask_merging(
    dirs: &[PathBuf],
    top: usize,
    threads: usize,
    fan: usize,
) -> Result<CommonFiles, Error> {
    let fan = fan.max(2);
    let mut files = Vec::new();
    for dir in dirs {
        if dir.is_file() {
            files.push((String::new(), dir.clone()));
            continue;
        }
        let before = files.len();
        let found = list_prefix_folders(dir)?;
        let none = found.is_empty();
        for (prefix, folder) in found {
            files_of(&folder, &prefix, &mut files)?;
        }
        files_of(dir, "", &mut files)?;
        if none && files.len() == before {
            return Err(Error::Usage(format!(
                "{}: neither folders `prefix=…` nor Parquet files there; `assay dups export` writes them",
                crate::name::format_readable(crate::sys::path_bytes(dir))
            )));
        }
    }
    // Exports with longer prefixes are grouped by the shortest prefix length.
    let digits = files.iter().map(|one| one.0.len()).min().unwrap_or(1);
    let mut parts: BTreeMap<String, Vec<(String, PathBuf)>> = BTreeMap::new();
    for (prefix, path) in files {
        let part = prefix[..digits].to_owned();
        parts.entry(part).or_default().push((prefix, path));
    }
    let queue = Mutex::new(parts.into_values());
    let shared = Shared::default();
    let take = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || -> Result<Fold, Error> {
        let mut fold = Fold::new(top, fan);
        while let Some(part) = take() {
            fold.part(part, &shared)?;
        }
        Ok(fold)
    };
    let folds: Vec<Result<Fold, Error>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(crate::pool::join).collect()
    });
    let mut whole = Fold::new(top, fan);
    for fold in folds {
        whole.absorb(fold?);
    }
    Ok(whole.answer(shared))
}

/// Lists the exported files in the folder of a prefix.
fn files_of(folder: &Path, prefix: &str, into: &mut Vec<(String, PathBuf)>) -> Result<(), Error> {
    for entry in std::fs::read_dir(folder).map_err(io_error(folder, "cannot read"))? {
        let path = entry.map_err(io_error(folder, "cannot read"))?.path();
        let hidden = path
            .file_name()
            .is_some_and(|name| crate::sys::path_bytes(name.as_ref()).starts_with(b"."));
        if !hidden && path.extension().is_some_and(|one| one == "parquet") {
            into.push((prefix.to_owned(), path));
        }
    }
    Ok(())
}

/// State that the merging threads share.
#[derive(Default)]
struct Shared {
    machines: Mutex<Machines>,
    kind: Mutex<Option<HashKind>>,
    left_out: Mutex<Vec<String>>,
}

impl Shared {
    /// Opens a file; returns `None` if the file must be skipped. Rows of tables from other programs are added to
    /// `others`, because they are not sorted.
    fn open(
        &self,
        prefix: &str,
        path: &Path,
        others: &mut Option<Sorter<ROW>>,
    ) -> Result<Option<Feed>, Error> {
        match Opened::open(path, prefix, &self.machines) {
            Ok(Opened::Export(feed)) => {
                self.agree(feed.kind(), path)?;
                Ok(Some(*feed))
            }
            Ok(Opened::Other(table)) => {
                let sorter = others.get_or_insert_default();
                if let Some(kind) = table.read(&self.machines, sorter)? {
                    self.agree(kind, path)?;
                }
                Ok(None)
            }
            Err(error @ (Error::Io { .. } | Error::Table { .. })) => {
                let mut left_out = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
                left_out.push(format!("left out: {error}"));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Checks that all files have hashes of the same kind.
    fn agree(&self, of: HashKind, path: &Path) -> Result<(), Error> {
        let mut kind = self.kind.lock().unwrap_or_else(PoisonError::into_inner);
        match *kind.get_or_insert(of) == of {
            true => Ok(()),
            false => Err(Error::Usage(format!(
                "{}: it has {} hashes and others have another kind, so they cannot be compared; scan again with the same --hash everywhere",
                crate::name::format_readable(crate::sys::path_bytes(path)),
                of.name()
            ))),
        }
    }
}

/// Sorted rows from a file, or from an earlier merge of several files.
enum Rows {
    File(Box<Feed>),
    Run(SortedRun<ROW>),
}

impl Iterator for Rows {
    type Item = Result<[u8; ROW], Error>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::File(feed) => feed.next(),
            Self::Run(run) => Some(run.next()?.map_err(Error::Output)),
        }
    }
}

/// Accumulates the counts while the rows are merged.
struct Fold {
    sums: Sums,
    own: Vec<Own>,
    largest: BinaryHeap<Reverse<Heavy>>,
    top: usize,
    /// Maximum number of files merged at once.
    fan: usize,
    key: [u8; 40],
    members: Vec<(u32, u64)>,
}

impl Fold {
    fn new(top: usize, fan: usize) -> Self {
        Self {
            sums: Sums::default(),
            own: Vec::new(),
            largest: BinaryHeap::new(),
            top,
            fan,
            key: [0; 40],
            members: Vec::new(),
        }
    }

    /// Merges the files of one hash prefix.
    fn part(&mut self, files: Vec<(String, PathBuf)>, shared: &Shared) -> Result<(), Error> {
        let mut rows: Vec<Rows> = Vec::new();
        let mut several = files.chunks(self.fan);
        let mut others = None;
        if files.len() > self.fan {
            // If there are too many files, merges groups of them into runs first.
            for some in several {
                let run = write_rows(Merge::of(open(some, shared, &mut others)?)?)?;
                rows.push(Rows::Run(SortedRun::file(run).map_err(Error::Output)?));
                if rows.len() == self.fan {
                    let run = write_rows(Merge::of(std::mem::take(&mut rows))?)?;
                    rows.push(Rows::Run(SortedRun::file(run).map_err(Error::Output)?));
                }
            }
        } else if let Some(some) = several.next() {
            rows = open(some, shared, &mut others)?;
        }
        if let Some(sorter) = others {
            let sorted = sorter.finish().map_err(Error::Output)?;
            let run = write::<ROW>(sorted).map_err(Error::Output)?;
            rows.push(Rows::Run(SortedRun::file(run).map_err(Error::Output)?));
        }
        for row in Merge::of(rows)? {
            self.row(&row?);
        }
        self.close();
        Ok(())
    }

    fn row(&mut self, row: &[u8; ROW]) {
        let (key, rest) = row.split_at(40);
        if key != self.key {
            self.close();
            self.key.copy_from_slice(key);
        }
        let (machine, count) = rest.split_at(4);
        let machine = u32::from_be_bytes(machine.try_into().unwrap_or_default());
        let count = u64::from_be_bytes(count.try_into().unwrap_or_default());
        match self.members.last_mut() {
            // Machine numbers ascend, so a repeated machine is the last one.
            Some(last) if last.0 == machine => {
                last.1 = count;
                self.sums.repeated_rows += 1;
            }
            _ => self.members.push((machine, count)),
        }
    }

    /// Adds the current content to the counts, after its last row.
    fn close(&mut self) {
        if self.members.is_empty() {
            return;
        }
        let size = u64::from_be_bytes(self.key[32..].try_into().unwrap_or_default());
        let bytes = u128::from(size);
        let files: u128 = self.members.iter().map(|one| u128::from(one.1)).sum();
        let machines = self.members.len() as u128;
        let redundant = bytes.saturating_mul(files - 1);
        let sums = &mut self.sums;
        sums.contents += 1;
        sums.files += files;
        sums.bytes = sums.bytes.saturating_add(bytes.saturating_mul(files));
        if files > 1 {
            sums.groups += 1;
            sums.redundant_files += files - 1;
            sums.redundant_bytes = sums.redundant_bytes.saturating_add(redundant);
        }
        if machines > 1 {
            sums.shared_groups += 1;
            sums.shared_bytes += bytes * (machines - 1);
        }
        for (machine, count) in &self.members {
            let at = *machine as usize;
            if self.own.len() <= at {
                self.own.resize(at + 1, Own::default());
            }
            let count = u128::from(*count);
            let own = &mut self.own[at];
            own[0] += count;
            own[1] = own[1].saturating_add(bytes.saturating_mul(count));
            own[2] = own[2].saturating_add(bytes.saturating_mul(count - 1));
            own[3] += if machines > 1 { bytes } else { 0 };
        }
        if redundant > 0 && self.is_among(redundant, size) {
            let mut hash = [0; 32];
            hash.copy_from_slice(&self.key[..32]);
            let members = std::mem::take(&mut self.members);
            self.push((redundant, size, Reverse(hash), members));
        }
        self.members.clear();
    }

    /// Returns whether a content is large enough for the list of the largest contents.
    fn is_among(&self, redundant: u128, size: u64) -> bool {
        let least = self.largest.peek().map(|least| (least.0.0, least.0.1));
        self.top > 0
            && (self.largest.len() < self.top
                || least.is_some_and(|least| least <= (redundant, size)))
    }

    fn push(&mut self, one: Heavy) {
        self.largest.push(Reverse(one));
        if self.largest.len() > self.top {
            self.largest.pop();
        }
    }

    fn absorb(&mut self, other: Self) {
        let (a, b) = (&mut self.sums, other.sums);
        a.files += b.files;
        a.bytes = a.bytes.saturating_add(b.bytes);
        a.contents += b.contents;
        a.groups += b.groups;
        a.redundant_files += b.redundant_files;
        a.redundant_bytes = a.redundant_bytes.saturating_add(b.redundant_bytes);
        a.shared_groups += b.shared_groups;
        a.shared_bytes += b.shared_bytes;
        a.repeated_rows += b.repeated_rows;
        if self.own.len() < other.own.len() {
            self.own.resize(other.own.len(), Own::default());
        }
        for (own, more) in self.own.iter_mut().zip(other.own) {
            for (value, more) in own.iter_mut().zip(more) {
                *value = value.saturating_add(more);
            }
        }
        for Reverse(one) in other.largest {
            self.push(one);
        }
    }

    fn answer(mut self, shared: Shared) -> CommonFiles {
        let inner = |error: PoisonError<Machines>| error.into_inner();
        let machines = shared.machines.into_inner().unwrap_or_else(inner);
        let kind = *shared.kind.lock().unwrap_or_else(PoisonError::into_inner);
        let length = kind.map_or(0, HashKind::length);
        self.own.resize(machines.len(), Own::default());
        let one = |(number, own): (usize, &Own)| ExportMachine {
            name: machines.name(number as u32).to_owned(),
            files: saturate_sum(own[0]),
            bytes: saturate_sum(own[1]),
            redundant_bytes: saturate_sum(own[2]),
            shared_bytes: saturate_sum(own[3]),
        };
        let mut list: Vec<ExportMachine> = self.own.iter().enumerate().map(one).collect();
        list.sort_by(|a, b| a.name.cmp(&b.name));
        let heavy = self.largest.into_sorted_vec();
        let largest = heavy
            .into_iter()
            .map(|Reverse((bytes, size, hash, members))| {
                let names = members.iter().map(|one| machines.name(one.0).to_owned());
                let mut names: Vec<String> = names.collect();
                names.sort();
                names.truncate(NAMED);
                Large {
                    hash: crate::name::encode_hex(&hash.0[..length]),
                    size,
                    files: saturate_sum(members.iter().map(|one| u128::from(one.1)).sum()),
                    machines: members.len() as u64,
                    names,
                    redundant_bytes: saturate_sum(bytes),
                }
            });
        let mut problems = machines.problems();
        let left_out = shared.left_out.into_inner();
        problems.extend(left_out.unwrap_or_else(PoisonError::into_inner));
        problems.sort();
        let sums = self.sums;
        CommonFiles {
            hash: kind.map_or("", HashKind::name).to_owned(),
            files: saturate_sum(sums.files),
            bytes: saturate_sum(sums.bytes),
            contents: saturate_sum(sums.contents),
            groups: saturate_sum(sums.groups),
            redundant_files: saturate_sum(sums.redundant_files),
            redundant_bytes: saturate_sum(sums.redundant_bytes),
            shared_groups: saturate_sum(sums.shared_groups),
            shared_bytes: saturate_sum(sums.shared_bytes),
            repeated_rows: saturate_sum(sums.repeated_rows),
            machines: list,
            largest: largest.collect(),
            problems,
        }
    }
}

fn saturate_sum(sum: u128) -> u64 {
    u64::try_from(sum).unwrap_or(u64::MAX)
}

fn open(
    files: &[(String, PathBuf)],
    shared: &Shared,
    others: &mut Option<Sorter<ROW>>,
) -> Result<Vec<Rows>, Error> {
    let mut rows = Vec::new();
    for (prefix, path) in files {
        if let Some(feed) = shared.open(prefix, path, others)? {
            rows.push(Rows::File(Box::new(feed)));
        }
    }
    Ok(rows)
}

/// Writes merged rows to an unnamed file, which the next merge reads.
fn write_rows(
    rows: impl Iterator<Item = Result<[u8; ROW], Error>>,
) -> Result<std::fs::File, Error> {
    let mut failed = None;
    let whole = rows.map_while(|row| row.map_err(|error| failed = Some(error)).ok().map(Ok));
    let file = write(whole).map_err(Error::Output)?;
    failed.map_or(Ok(file), Err)
}
