//! Parses the options of a command line, a job file or a result by fio's own rules.
//!
//! Names, aliases, types and defaults are those of `fio --cmdhelp=all` of fio 3.33 and of its HOWTO.

mod command_line;
mod description;
mod effective_depth;
mod engines;
mod harmless;
mod job_file;
mod quantity;
mod read;
mod runner;
mod shell;
mod text;
mod windows_lines;

pub use command_line::{Commands, Invocation, command_line, command_words, read_commands};
pub use effective_depth::DepthLimit;
pub use engines::{EngineKind, find_engine, nearest_engine};
pub(crate) use harmless::harmless_name as plain_name;
pub use harmless::harmless_value;
pub use job_file::{Surroundings, job_file, job_file_in};
pub use quantity::{parse_bytes, unit_trap};
pub use read::{Text, reached_depth, read_text, read_text_in};
pub use shell::UNKNOWN;
pub use text::decode;

use assay_model::sample::Worker;
use assay_model::{Bytes, Nanos};
use std::collections::{BTreeMap, BTreeSet};

/// Options that need no value (`empty or boolean value` in `--cmdhelp`). The `job options` of a result contain such an
/// option only if it was given a value.
const FLAGS: [&str; 12] = [
    "bs_unaligned",
    "norandommap",
    "time_based",
    "verify_only",
    "exitall",
    "exitall_on_error",
    "stonewall",
    "new_group",
    "thread",
    "group_reporting",
    "zero_buffers",
    "refill_buffers",
];

/// Aliases of options, as (alias, name).
const ALIASES: [(&str, &str); 19] = [
    ("readwrite", "rw"),
    ("blocksize", "bs"),
    ("blockalign", "ba"),
    ("blocksize_range", "bsrange"),
    ("blocksize_unaligned", "bs_unaligned"),
    ("iodepth_batch_submit", "iodepth_batch"),
    ("iodepth_batch_complete", "iodepth_batch_complete_min"),
    ("io_limit", "io_size"),
    ("fill_fs", "fill_device"),
    ("fileoffset", "offset"),
    ("nr_files", "nrfiles"),
    ("timeout", "runtime"),
    ("iomem", "mem"),
    ("ratemin", "rate_min"),
    ("ratecycle", "rate_cycle"),
    ("wait_for_previous", "stonewall"),
    ("disable_bw", "disable_bw_measurement"),
    ("ss", "steadystate"),
    ("ss_dur", "steadystate_duration"),
];

/// Reasons why a command line or job file cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}{message}")]
pub struct OptionsError {
    /// Position of the error as `file:line: `. Empty for a command line.
    pub place: String,
    /// Description of the error, and the expected value.
    pub message: String,
}

impl OptionsError {
    fn new(message: impl Into<String>) -> Self {
        Self {
            place: String::new(),
            message: message.into(),
        }
    }
}

/// Durability of writes by a flag with which the file is opened (`sync=`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncOption {
    /// Without a flag.
    #[default]
    No,
    /// With O_SYNC.
    Sync,
    /// With O_DSYNC.
    Dsync,
}

/// Access pattern of a job, the value of `rw=`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Whether the job reads.
    pub reads: bool,
    /// Whether the job writes.
    pub writes: bool,
    /// Whether the job trims.
    pub trims: bool,
    /// Whether the offsets are random.
    pub random: bool,
}

impl Access {
    fn parse(text: &str) -> Option<Self> {
        let word = text.split(':').next().unwrap_or(text).trim();
        let (random, kind) = match word.strip_prefix("rand") {
            Some(kind) => (true, kind),
            None => (false, word),
        };
        let (reads, writes, trims) = match kind {
            "read" => (true, false, false),
            "write" => (false, true, false),
            "trim" => (false, false, true),
            "rw" | "readwrite" => (true, true, false),
            "trimwrite" => (false, true, true),
            _ => return None,
        };
        Some(Self {
            reads,
            writes,
            trims,
            random,
        })
    }

    /// Returns whether the job reads and writes.
    #[must_use]
    pub fn mixed(self) -> bool {
        self.reads && self.writes
    }
}

/// Source of the options, which determines what a missing option means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OptionSource {
    /// Command line or job file, which contains all options.
    #[default]
    Complete,
    /// `job options` of a result, in which options without a value are missing.
    Echo,
}

/// Effective options of one job. Each option has its given value, else fio's default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobOptions {
    /// Name of the job.
    pub name: String,
    /// Given options by fio's main name. The value of an option without a value is empty. Contains options for which
    /// there is no field. Possible secrets are removed, see [`harmless_value`].
    pub given: BTreeMap<String, String>,
    /// Where the options come from.
    pub source: OptionSource,
    /// Value of `rw`; sequential reads by default.
    pub access: Access,
    /// Value of `ioengine`; `psync` by default (Linux).
    pub engine: String,
    /// Value of `iodepth`; 1 by default.
    pub iodepth: u64,
    /// Value of `direct`, or the opposite of `buffered`.
    pub direct: bool,
    /// Value of `sync`, which determines an open flag.
    pub sync: SyncOption,
    /// Value of `fsync`: number of writes after which a flush follows; 0 means never.
    pub fsync: u64,
    /// Value of `fdatasync`: number of writes after which a flush of the data follows; 0 means never.
    pub fdatasync: u64,
    /// Whether `end_fsync` or `fsync_on_close` is set.
    pub end_fsync: bool,
    /// Values of `bs` for reads and for writes; 4096 by default. For a range, its minimum.
    pub block_size: (Bytes, Bytes),
    /// Value of `numjobs`; 1 by default.
    pub numjobs: u64,
    /// Value of `size`, else of `filesize`, if it is in bytes.
    pub size: Option<Bytes>,
    /// Value of `runtime`; `None` if it is not given.
    pub runtime: Option<Nanos>,
    /// Value of `ramp_time`; `None` if it is not given.
    pub ramp: Option<Nanos>,
    /// Options whose value is unknown, by fio's main name. They are not in `given`.
    pub unknown: BTreeSet<String>,
    /// Whether the job may have further options that are unknown here.
    pub open: bool,
    /// Values of loop variables and branches in the script that give this job: `NAME=VALUE …`.
    pub chosen: String,
}

impl JobOptions {
    /// Creates options from names and values. The name of the job is `name`, unless an option sets it.
    ///
    /// # Errors
    /// A value that fio would also reject; the message contains the option.
    pub fn from_given(
        name: &str,
        given: impl IntoIterator<Item = (String, String)>,
        source: OptionSource,
    ) -> Result<Self, OptionsError> {
        let mut all: BTreeMap<String, String> = BTreeMap::new();
        for (key, value) in given {
            let key = canonical_name(&key);
            // Both options write one field of fio (`odirect`, options.c), so the last counts. An echo has no
            // order.
            let other = match key.as_str() {
                "direct" => "buffered",
                "buffered" => "direct",
                _ => "",
            };
            if source == OptionSource::Complete && !other.is_empty() {
                all.remove(other);
            }
            let value = harmless_value(&key, value.trim());
            all.insert(key, value);
        }
        let given = all;
        let mut options = Self {
            name: given.get("name").map_or(name, String::as_str).to_owned(),
            given,
            source,
            ..Self::default()
        };
        options.settle()?;
        Ok(options)
    }

    /// Creates options from the `job options` of a result. Invalid values are treated as missing: fio must have
    /// accepted the options, because the job ran.
    #[must_use]
    pub fn from_result(job: &Worker) -> Self {
        let mut given = job.fio.options.clone();
        let mut options = loop {
            let pairs = given.iter().map(|(k, v)| (k.clone(), v.clone()));
            match Self::from_given(&job.name, pairs, OptionSource::Echo) {
                Ok(options) => break options,
                // The message starts with the option.
                Err(error) => {
                    let key = error.message.split('=').next().unwrap_or_default();
                    let before = given.len();
                    given.retain(|name, _| canonical_name(name) != key);
                    if given.len() == before {
                        given.clear();
                    }
                }
            }
        };
        options.open = job.fio.open;
        if options.given("ioengine").is_none() && (options.is_of_windows() || reached_depth(job)) {
            // Default on Windows (os/os-windows.h); synchronous everywhere else.
            options.engine = "windowsaio".to_owned();
        }
        options
    }

    /// Returns whether file names are Windows paths, such as `C\:\x`, `.\x` or `\\.\PhysicalDrive0`.
    fn is_of_windows(&self) -> bool {
        let names = ["filename", "directory"]
            .into_iter()
            .filter_map(|key| self.given(key));
        names
            .into_iter()
            .any(|name| name.replace("\\:", ":").contains('\\'))
    }

    fn settle(&mut self) -> Result<(), OptionsError> {
        let base = self.kb_base();
        self.access = match self.given("rw") {
            None => Access {
                reads: true,
                ..Access::default()
            },
            Some(text) => Access::parse(text).ok_or_else(|| {
                refuse(
                    "rw",
                    text,
                    "read, write, randread, randwrite, rw, randrw, or trim with those",
                )
            })?,
        };
        // `ioengine=external:/path`, and engines with options after a colon.
        self.engine = self
            .given("ioengine")
            .and_then(|text| text.split(':').next())
            .unwrap_or("psync")
            .to_owned();
        self.iodepth = self.count("iodepth")?.unwrap_or(1).max(1);
        self.numjobs = self.count("numjobs")?.unwrap_or(1).max(1);
        self.direct = match self.given("buffered") {
            Some(_) if self.given("direct").is_none() => !self.boolean("buffered", true)?,
            _ => self.boolean("direct", false)? || self.boolean("atomic", false)?,
        };
        self.sync = match self.given("sync") {
            None | Some("0" | "none") => SyncOption::No,
            Some("" | "1" | "sync") => SyncOption::Sync,
            Some("dsync") => SyncOption::Dsync,
            Some(text) => return Err(refuse("sync", text, "none, sync, dsync, 0 or 1")),
        };
        self.fsync = self.count("fsync")?.unwrap_or(0);
        self.fdatasync = self.count("fdatasync")?.unwrap_or(0);
        self.end_fsync =
            self.boolean("end_fsync", false)? || self.boolean("fsync_on_close", false)?;
        self.block_size = self.block_sizes(base)?;
        self.size = match self.given("size") {
            Some(text) => self.amount("size", text, base)?,
            None => match self.given("filesize") {
                Some(text) => self.amount("filesize", text, base)?,
                None => None,
            },
        };
        self.runtime = self.time("runtime")?.filter(|time| time.0 > 0);
        self.ramp = self.time("ramp_time")?.filter(|time| time.0 > 0);
        for flag in [
            "time_based",
            "group_reporting",
            "norandommap",
            "refill_buffers",
        ] {
            self.boolean(flag, false)?;
        }
        Ok(())
    }

    /// Returns the given value of an option.
    #[must_use]
    pub fn given(&self, key: &str) -> Option<&str> {
        self.given.get(key).map(String::as_str)
    }

    /// Returns the value of a boolean option; `default` if it is missing or invalid.
    #[must_use]
    pub fn is_on(&self, key: &str, default: bool) -> bool {
        self.boolean(key, default).unwrap_or(default)
    }

    /// Returns whether all given options are known. In a result, options without a value may be missing.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.source == OptionSource::Complete
    }

    /// Returns whether every write is durable on completion, or writes are flushed regularly.
    #[must_use]
    pub fn flushes(&self) -> bool {
        self.sync != SyncOption::No
            || self.fsync > 0
            || self.fdatasync > 0
            || self.given("sync_file_range").is_some()
    }

    /// Returns the value of an option that is a number; `None` if it is missing or invalid.
    #[must_use]
    pub fn count_of(&self, key: &str) -> Option<u64> {
        self.count(key).ok().flatten()
    }

    /// Returns the first number in the value of an option such as `rate=10m,5m`.
    #[must_use]
    pub fn first_bytes(&self, key: &str) -> Option<u64> {
        let text = self.given(key)?.split(',').next()?;
        parse_bytes(text, self.kb_base()).filter(|value| *value > 0)
    }

    /// Returns the value of `kb_base`; 1024 by default.
    #[must_use]
    pub fn kb_base(&self) -> u64 {
        match self.given("kb_base") {
            Some("1000") => 1000,
            _ => 1024,
        }
    }

    fn boolean(&self, key: &str, default: bool) -> Result<bool, OptionsError> {
        match self.given(key) {
            None => Ok(default),
            Some("") => Ok(true),
            Some(text) => match text.parse::<i64>() {
                Ok(number) => Ok(number != 0),
                Err(_) => Err(refuse(key, text, "0 or 1")),
            },
        }
    }

    fn count(&self, key: &str) -> Result<Option<u64>, OptionsError> {
        let Some(text) = self.given(key) else {
            return Ok(None);
        };
        parse_bytes(text, self.kb_base())
            .map(Some)
            .ok_or_else(|| refuse(key, text, "a number from 0"))
    }

    fn amount(&self, key: &str, text: &str, base: u64) -> Result<Option<Bytes>, OptionsError> {
        if text.ends_with('%') || text.ends_with('z') {
            return Ok(None);
        }
        // `filesize` may be a range.
        let first = text.split('-').next().unwrap_or(text);
        parse_bytes(first, base)
            .map(|bytes| Some(Bytes(bytes)))
            .ok_or_else(|| refuse(key, text, "a size such as 4k, 1g or 50%"))
    }

    /// Returns the block sizes of reads and writes in bytes. For a range or a split (`bssplit`), returns its minimum.
    fn block_sizes(&self, base: u64) -> Result<(Bytes, Bytes), OptionsError> {
        let (key, text) = match ["bs", "bsrange", "bssplit"]
            .into_iter()
            .find_map(|key| Some((key, self.given(key)?)))
        {
            Some(found) => found,
            None => return Ok((Bytes(4096), Bytes(4096))),
        };
        let one = |text: &str| -> Result<Option<Bytes>, OptionsError> {
            let parts = text.split(if key == "bssplit" { ':' } else { '-' });
            let mut smallest = None;
            if text.starts_with('-') {
                return Err(refuse(key, text, "a size such as 4k or 1m"));
            }
            for part in parts {
                let size = part.split('/').next().unwrap_or(part).trim();
                if size.is_empty() {
                    continue;
                }
                let size = parse_bytes(size, base)
                    .filter(|size| *size > 0)
                    .ok_or_else(|| refuse(key, text, "a size such as 4k or 1m"))?;
                smallest = Some(smallest.map_or(size, |known: u64| known.min(size)));
            }
            Ok(smallest.map(Bytes))
        };
        let mut parts = text.split(',');
        let read = one(parts.next().unwrap_or_default())?;
        let write = parts.next().map(one).transpose()?.flatten();
        let default = Bytes(4096);
        Ok((read.unwrap_or(default), write.or(read).unwrap_or(default)))
    }

    fn time(&self, key: &str) -> Result<Option<Nanos>, OptionsError> {
        let Some(text) = self.given(key) else {
            return Ok(None);
        };
        quantity::parse_time(text)
            .map(Some)
            .ok_or_else(|| refuse(key, text, "a time such as 60, 1500ms or 5m, not negative"))
    }
}

/// All options of fio 3.33 (`--cmdhelp=all`, `--enghelp`), one per line. Also contains some options of newer releases,
/// and of engines that distributions do not build.
const NAMES: &str = include_str!("options/names.txt");

/// Returns the option that `key` is probably a misspelling of. `None` if fio accepts `key` (also abbreviated, as in
/// getopt_long), or if no option is similar.
#[must_use]
pub fn find_meant_option(key: &str) -> Option<&'static str> {
    const CLOSE: usize = 2;
    if key.len() <= CLOSE * 2 || NAMES.lines().any(|name| name.starts_with(key)) {
        return None;
    }
    NAMES
        .lines()
        .map(|name| (strsim::damerau_levenshtein(key, name), name))
        .filter(|(distance, _)| *distance <= CLOSE)
        .min()
        .map(|(_, name)| name)
}

fn refuse(key: &str, value: &str, expected: &str) -> OptionsError {
    OptionsError::new(format!(
        "{key}={}: fio expects {expected}",
        value.escape_debug()
    ))
}

/// Returns fio's main name of an option. Accepts `-` for `_` and the reverse, which fio does not, because pasted text
/// often confuses the two.
fn canonical_name(key: &str) -> String {
    let key = key.trim().to_ascii_lowercase();
    let found = ALIASES.iter().find(|(alias, _)| *alias == key);
    found.map_or(key, |(_, name)| (*name).to_owned())
}

fn is_flag(key: &str) -> bool {
    FLAGS.contains(&key)
}

#[cfg(test)]
mod tests;
