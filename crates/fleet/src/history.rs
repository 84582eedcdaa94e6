//! History of collected bundles. Each machine has its bundles, named by a hash of their content, and a log with a line
//! for each check. [`keep`] limits the size of the history.

use assay_model::finding::{Certainty, Checked, Severity};
use jiff::Timestamp;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// One check of a machine in the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Time of the check, by the local clock.
    pub at: Timestamp,
    /// BLAKE3 hash of the bundle in hexadecimal, which is also the bundle's file name.
    pub bundle: String,
    /// Version of assay that evaluated the bundle.
    pub assay: String,
    /// Findings according to the catalogue of that version.
    pub findings: Vec<Told>,
}

/// The part of a finding that the history stores.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Told {
    /// Fingerprint that identifies the finding in later checks.
    pub fingerprint: String,
    /// Severity of the finding.
    pub severity: Severity,
}

/// Returns the findings to store. An unknown result is not a finding.
#[must_use]
pub fn told(checked: &Checked) -> Vec<Told> {
    let all = checked.findings.iter();
    let mut told: Vec<Told> = all
        .filter(|finding| finding.certainty == Certainty::Violated)
        .map(|finding| Told {
            fingerprint: finding.fingerprint(),
            severity: finding.severity,
        })
        .collect();
    told.sort();
    told.dedup();
    told
}

/// Error: a file of the history cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct HistoryError {
    /// Path of the file or directory.
    pub path: PathBuf,
    /// Error of the kernel.
    #[source]
    pub source: io::Error,
}

/// A history of collected bundles in one directory.
#[derive(Clone, Debug)]
pub struct History {
    dir: PathBuf,
}

const LOG: &str = "log.jsonl";
/// Name of the file with the machine's name. The file exists only if the directory name does not contain the machine's
/// name.
const NAME: &str = "name";

/// Lines in the log of a machine.
#[derive(Default)]
struct Lines {
    /// Entries that this version of assay understands, oldest first.
    known: Vec<Entry>,
    /// Lines that other versions of assay wrote.
    foreign: Vec<Foreign>,
}

/// A line that this version of assay does not understand, with the name of its bundle. Another version uses both.
struct Foreign {
    line: String,
    bundle: String,
}

impl Foreign {
    /// Parses a line. Returns `None` for an incomplete line, which a killed process left.
    fn read(line: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct About {
            bundle: String,
        }
        let about: About = serde_json::from_str(line).ok()?;
        Some(Self {
            line: line.to_owned(),
            bundle: about.bundle,
        })
    }
}

impl History {
    /// Uses this directory for the history. Storing the first bundle creates the directory.
    #[must_use]
    pub fn at(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Lists the machines that have a history.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub fn machines(&self) -> Result<Vec<String>, HistoryError> {
        let found = match std::fs::read_dir(&self.dir) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(fail(&self.dir, error)),
        };
        let mut names: Vec<String> = found
            .filter_map(|entry| self.name_of(entry.ok()?.file_name().to_str()?))
            .collect();
        names.sort();
        Ok(names)
    }

    fn name_of(&self, directory: &str) -> Option<String> {
        if tells_its_name(directory) {
            return name_of(directory);
        }
        let name = std::fs::read_to_string(self.dir.join(directory).join(NAME)).ok()?;
        (self::directory(&name) == directory).then_some(name)
    }

    /// Returns the entries of a machine, oldest first. Skips incomplete lines, and lines of other versions.
    ///
    /// # Errors
    /// The log exists but cannot be read.
    pub fn entries(&self, machine: &str) -> Result<Vec<Entry>, HistoryError> {
        self.lines(machine).map(|lines| lines.known)
    }

    fn lines(&self, machine: &str) -> Result<Lines, HistoryError> {
        let path = self.place(machine).join(LOG);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Lines::default()),
            Err(error) => return Err(fail(&path, error)),
        };
        let mut all = Lines::default();
        for line in text.lines() {
            match serde_json::from_str(line) {
                Ok(entry) => all.known.push(entry),
                Err(_) => all.foreign.extend(Foreign::read(line)),
            }
        }
        all.known.sort_by_key(|entry: &Entry| entry.at);
        Ok(all)
    }

    /// Reads the bundle of an entry.
    ///
    /// # Errors
    /// The bundle is missing, unreadable or damaged.
    pub fn bundle(&self, machine: &str, entry: &Entry) -> Result<Vec<u8>, HistoryError> {
        let path = self.file(machine, &entry.bundle);
        let bytes = std::fs::read(&path).map_err(|error| fail(&path, error))?;
        match hash(&bytes) == entry.bundle {
            true => Ok(bytes),
            false => Err(fail(
                &path,
                io::Error::other("it was changed since it was kept"),
            )),
        }
    }

    /// Stores a bundle and its findings, and removes old bundles according to [`keep`]. Even if the process is killed,
    /// no log line refers to a missing bundle.
    ///
    /// # Errors
    /// The directory or a file in it cannot be written.
    pub fn keep(
        &self,
        machine: &str,
        bundle: &[u8],
        at: Timestamp,
        assay: &str,
        checked: &Checked,
    ) -> Result<(), HistoryError> {
        let dir = self.place(machine);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir)
            .map_err(|error| fail(&dir, error))?;
        if !tells_its_name(&directory(machine)) {
            let name = dir.join(NAME);
            if !name.exists() {
                whole(&name, machine.as_bytes())?;
            }
        }
        let entry = Entry {
            at,
            bundle: hash(bundle),
            assay: assay.to_owned(),
            findings: told(checked),
        };
        // Another process may do the same now.
        let lock = dir.join("lock");
        let locked = open(&lock, true).and_then(|file| {
            flock(&file, FlockOperation::LockExclusive)?;
            Ok(file)
        });
        let _locked = locked.map_err(|error| fail(&lock, error))?;
        let file = self.file(machine, &entry.bundle);
        if !file.exists() {
            whole(&file, bundle)?;
        }
        let log = dir.join(LOG);
        let line = serde_json::to_string(&entry).map_err(|error| fail(&log, error.into()))?;
        let appended = open(&log, true).and_then(|mut file| {
            // An incomplete line of a killed process must not become part of the next line.
            let before = std::fs::read(&log)?;
            let torn = before.last().is_some_and(|&byte| byte != b'\n');
            let text = format!("{}{line}\n", if torn { "\n" } else { "" });
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        appended.map_err(|error| fail(&log, error))?;
        self.thin(machine, at)
    }

    fn thin(&self, machine: &str, now: Timestamp) -> Result<(), HistoryError> {
        let Lines {
            known: all,
            foreign,
        } = self.lines(machine)?;
        let times: Vec<Timestamp> = all.iter().map(|entry| entry.at).collect();
        let kept: Vec<&Entry> = all
            .iter()
            .zip(keep(&times, now))
            .filter_map(|(entry, stays)| stays.then_some(entry))
            .collect();
        let dir = self.place(machine);
        if kept.len() < all.len() {
            let log = dir.join(LOG);
            let mut text: String = foreign
                .iter()
                .map(|one| format!("{}\n", one.line))
                .collect();
            for entry in &kept {
                text += &serde_json::to_string(entry).map_err(|error| fail(&log, error.into()))?;
                text.push('\n');
            }
            whole(&log, text.as_bytes())?;
        }
        let bundles = kept.iter().map(|entry| &entry.bundle);
        let wanted: BTreeSet<String> = bundles
            .chain(foreign.iter().map(|one| &one.bundle))
            .map(|bundle| format!("{bundle}.bundle"))
            .collect();
        let found = std::fs::read_dir(&dir).map_err(|error| fail(&dir, error))?;
        for name in found.flatten().map(|entry| entry.file_name()) {
            let name = name.to_string_lossy().into_owned();
            let ours = name.ends_with(".bundle") || name.ends_with(".part");
            if ours && !wanted.contains(&name) {
                let path = dir.join(&name);
                std::fs::remove_file(&path).map_err(|error| fail(&path, error))?;
            }
        }
        Ok(())
    }

    fn place(&self, machine: &str) -> PathBuf {
        self.dir.join(directory(machine))
    }

    fn file(&self, machine: &str, hash: &str) -> PathBuf {
        // A manipulated log must not refer to files elsewhere.
        let hash: String = hash.chars().filter(char::is_ascii_hexdigit).collect();
        self.place(machine).join(format!("{hash}.bundle"))
    }
}

/// Returns for each time whether its bundle is kept. Kept are the newest twelve, the newest of each of the last 31
/// days, and the newest of each of the last 53 weeks.
#[must_use]
pub fn keep(times: &[Timestamp], now: Timestamp) -> Vec<bool> {
    const DAY: i64 = 86_400;
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(times[at]));
    let (mut days, mut weeks) = (BTreeSet::new(), BTreeSet::new());
    let mut stays = vec![false; times.len()];
    for (rank, &at) in order.iter().enumerate() {
        let second = times[at].as_second();
        let age = now.as_second().saturating_sub(second);
        // 1970 started on a Thursday.
        let (day, week) = (
            second.div_euclid(DAY),
            (second + 3 * DAY).div_euclid(7 * DAY),
        );
        let of_day = age <= 31 * DAY && days.insert(day);
        let of_week = age <= 53 * 7 * DAY && weeks.insert(week);
        stays[at] = rank < 12 || of_day || of_week;
    }
    stays
}

/// Converts a machine's name to a directory name. Letters, digits and `.-_@` stay; other bytes become hexadecimal.
fn directory(machine: &str) -> String {
    let mut out = String::new();
    for &byte in machine.as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'@' => out.push(byte.into()),
            b'.' if !out.is_empty() => out.push('.'),
            other => out += &format!("%{other:02x}"),
        }
    }
    // A file name may have 255 bytes.
    match out.len() <= 200 {
        true => out,
        false => format!("%%{}", hash(machine.as_bytes())),
    }
}

/// Returns whether [`name_of`] can restore the machine's name from the directory name. This is impossible for a long
/// name, which is hashed.
fn tells_its_name(directory: &str) -> bool {
    !directory.starts_with("%%")
}

fn name_of(directory: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = directory.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        let text = std::str::from_utf8(&digits).ok()?;
        bytes.push(u8::from_str_radix(text, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}

fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..32].to_owned()
}

fn fail(path: &Path, source: io::Error) -> HistoryError {
    HistoryError {
        path: path.to_owned(),
        source,
    }
}

fn open(path: &Path, append: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(append).read(true).mode(0o600);
    options.open(path)
}

/// Writes a file atomically, so that it contains all bytes or is unchanged.
fn whole(path: &Path, bytes: &[u8]) -> Result<(), HistoryError> {
    let part = path.with_extension(format!("{}.part", std::process::id()));
    let written = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(&part)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        })
        .and_then(|()| std::fs::rename(&part, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    written.map_err(|error| fail(path, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn time(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_year_of_hours_stays_small() {
        let now = 1_700_000_000;
        let times: Vec<Timestamp> = (0..24 * 365).map(|hour| time(now - 3600 * hour)).collect();
        let kept = keep(&times, time(now))
            .into_iter()
            .filter(|stays| *stays)
            .count();
        assert!((80..=110).contains(&kept), "{kept}");
    }

    #[test]
    fn a_line_that_was_cut_off_hides_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let history = History::at(dir.path().join("fleet"));
        let checked = Checked::default();
        assert!(history.machines().unwrap().is_empty());
        history
            .keep("a/../b", b"one", time(1_000), "1", &checked)
            .unwrap();
        let log = dir.path().join("fleet").join(directory("a/../b")).join(LOG);
        let mut torn = std::fs::read(&log).unwrap();
        torn.extend(&torn.clone()[..20]);
        std::fs::write(&log, torn).unwrap();
        history
            .keep("a/../b", b"two", time(2_000), "1", &checked)
            .unwrap();
        let all = history.entries("a/../b").unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!(history.bundle("a/../b", &all[1]).unwrap(), b"two");
        assert_eq!(history.machines().unwrap(), ["a/../b"]);
        let file = history.file("a/../b", &all[0].bundle);
        std::fs::write(file, b"other").unwrap();
        assert!(history.bundle("a/../b", &all[0]).is_err());
    }

    #[test]
    fn a_machine_with_a_long_name_is_listed() {
        let dir = tempfile::tempdir().unwrap();
        let history = History::at(dir.path().join("fleet"));
        let name = "é".repeat(300);
        history
            .keep(&name, b"one", time(1_000), "1", &Checked::default())
            .unwrap();
        assert_eq!(history.machines().unwrap(), [name]);
    }

    /// A log may contain lines of a newer version, which this version does not understand. When old entries are
    /// removed, these lines and their bundles stay.
    #[test]
    fn what_another_version_wrote_stays() {
        let dir = tempfile::tempdir().unwrap();
        let history = History::at(dir.path().join("fleet"));
        let checked = Checked::default();
        let keep = |bundle: &[u8], second| {
            history
                .keep("a", bundle, time(second), "1", &checked)
                .unwrap();
        };
        keep(b"theirs", 1_000);
        let log = dir.path().join("fleet/a").join(LOG);
        let line = std::fs::read_to_string(&log).unwrap();
        let theirs = line.replace("\"findings\":[]", "\"findings\":{\"all\":[]}");
        assert_ne!(line, theirs);
        std::fs::write(&log, &theirs).unwrap();
        // More than the number kept per day.
        for number in 0_u32..20 {
            keep(&number.to_le_bytes(), 2_000 + i64::from(number));
        }
        assert_eq!(history.entries("a").unwrap().len(), 12);
        let text = std::fs::read_to_string(&log).unwrap();
        assert!(text.contains(theirs.trim_end()), "{text}");
        let bundle = dir
            .path()
            .join("fleet/a")
            .join(format!("{}.bundle", hash(b"theirs")));
        assert!(bundle.exists());
    }

    proptest! {
        #[test]
        fn any_name_is_a_directory_of_its_own(name in "\\PC{1,60}") {
            let directory = directory(&name);
            prop_assert!(!directory.contains('/') && !directory.starts_with('.'));
            if directory.len() <= 200 && !directory.starts_with("%%") {
                prop_assert_eq!(name_of(&directory), Some(name));
            }
        }
    }
}
