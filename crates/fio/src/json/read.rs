//! Finds the JSON documents in the output of fio, and parses them in one pass.

use super::scalars::{Key, Number, OptionValue};
use super::{DiskUtil, DocumentKind, FioDocument, JsonError};
use crate::options::{harmless_value, plain_name};
use assay_model::sample::{Latency, Operation, Operations, Worker};
use assay_model::secrets;
use assay_model::{Bytes, Nanos};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;

/// Keys with which a document may begin, in fio's order or in the order of a tool that sorts keys.
const FIRST_KEYS: [&str; 8] = [
    "fio version",
    "timestamp",
    "timestamp_ms",
    "time",
    "global options",
    "jobs",
    "client_stats",
    "disk_util",
];
/// Maximum number of `{` that look like the start of a document but are not. After this number, the search ends.
const MAX_FALSE_STARTS: usize = 64;

pub(super) fn read_documents(text: &str) -> Result<Vec<FioDocument>, JsonError> {
    if text.trim().is_empty() {
        return Err(JsonError::Empty);
    }
    let mut found = Vec::new();
    let mut failure = None;
    let mut false_starts = 0;
    let mut at = 0;
    while let Some(offset) = text[at..].find('{') {
        let start = at + offset;
        if !opens_document(&text[start + 1..]) {
            at = start + 1;
            continue;
        }
        let mut state = State::default();
        let mut reader = serde_json::Deserializer::from_str(&text[start..]);
        let outcome = DocumentSeed(&mut state).deserialize(&mut reader);
        match outcome {
            Ok(()) => {
                at = start + reader.into_iter::<IgnoredAny>().byte_offset();
                found.push(state.finish());
            }
            Err(error) if error.is_eof() => {
                return Err(JsonError::Truncated {
                    line: text.bytes().filter(|b| *b == b'\n').count() + 1,
                    byte: text.len(),
                    documents: found,
                    partial: Box::new(state.finish()),
                });
            }
            Err(error) => {
                let before = text[..start].bytes().filter(|b| *b == b'\n').count();
                failure.get_or_insert_with(|| syntax_error(&error, before));
                false_starts += 1;
                if false_starts >= MAX_FALSE_STARTS {
                    break;
                }
                at = start + 1;
            }
        }
    }
    match (found.is_empty(), failure) {
        // A document that is broken in its middle must be reported.
        (_, Some(error)) => Err(error),
        (true, None) => Err(JsonError::NoDocument {
            hint: find_hint(text),
        }),
        (false, None) => Ok(found),
    }
}

fn opens_document(rest: &str) -> bool {
    let Some(rest) = rest.trim_start().strip_prefix('"') else {
        return false;
    };
    FIRST_KEYS
        .iter()
        .any(|key| rest.strip_prefix(key).is_some_and(|r| r.starts_with('"')))
}

fn syntax_error(error: &serde_json::Error, lines_before: usize) -> JsonError {
    let text = error.to_string();
    let message = text
        .rsplit_once(" at line ")
        .map_or(text.as_str(), |(message, _)| message);
    JsonError::Syntax {
        line: lines_before + error.line(),
        column: error.column(),
        message: secrets::withhold_in_text(message),
    }
}

fn find_hint(text: &str) -> String {
    let hint = if text.contains("Run status group") || text.contains("; fio-") {
        "; this looks like fio's normal output for people"
    } else if text.starts_with("3;") || text.starts_with("terse") || text.starts_with("5;fio") {
        "; this looks like fio's terse output"
    } else if text.trim_start().starts_with('[') && text.contains("rw=") {
        "; this looks like a job file: `assay lint` reads those"
    } else {
        ""
    };
    hint.to_owned()
}

/// State while a document is parsed.
#[derive(Default)]
struct State {
    document: FioDocument,
    /// For each job, values that can only be interpreted after the whole document was read.
    notes: Vec<Notes>,
}

#[derive(Clone, Copy, Default)]
struct Notes {
    elapsed_s: u64,
    /// For each direction, whether `io_bytes` may count KiB, because `io_kbytes` and `bw_bytes` are missing.
    maybe_kib: [bool; 3],
    unified: bool,
    all_clients: bool,
}

impl State {
    fn finish(self) -> FioDocument {
        let Self {
            mut document,
            notes,
        } = self;
        // A document without a version counts as new: bytes.
        let kib = document.version().is_some_and(|version| version < (2, 21));
        // Without other entries, only the sum over all clients exists (fio 2.x).
        let only_sum = notes.iter().all(|note| note.all_clients);
        document.elapsed_s = notes.iter().map(|note| note.elapsed_s).max().unwrap_or(0);
        let mut jobs = Vec::with_capacity(document.jobs.len());
        for (mut job, note) in std::mem::take(&mut document.jobs).into_iter().zip(notes) {
            if note.all_clients && !only_sum {
                continue;
            }
            for (kind, maybe) in [Operation::Read, Operation::Write, Operation::Trim]
                .into_iter()
                .zip(note.maybe_kib)
            {
                if let Some(stats) = job.operations.get_mut(&kind)
                    && maybe
                    && kib
                {
                    stats.bytes = Bytes(stats.bytes.0.saturating_mul(1024));
                }
            }
            for (key, value) in &document.global_options {
                if !job.fio.options.contains_key(key) {
                    job.fio.options.insert(key.clone(), value.clone());
                }
            }
            if note.unified {
                let writes = job.fio.options.get("rw").is_some_and(|rw| rw.contains('w'));
                if writes && let Some(all) = job.operations.remove(&Operation::Read) {
                    job.operations.insert(Operation::Write, all);
                }
                document.unified.push(jobs.len());
            }
            jobs.push(job);
        }
        document.jobs = jobs;
        document
    }
}

/// Declares a seed that parses an object key by key into `self.0`. If a key is repeated, its last value applies.
/// Unknown keys are skipped.
macro_rules! object_seed {
    ($seed:ident, $target:ty, $what:literal, |$state:ident, $key:ident, $map:ident| $body:expr) => {
        struct $seed<'a>(&'a mut $target);
        impl<'de> DeserializeSeed<'de> for $seed<'_> {
            type Value = ();
            fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
                deserializer.deserialize_map(self)
            }
        }
        impl<'de> Visitor<'de> for $seed<'_> {
            type Value = ();
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($what)
            }
            fn visit_map<A: MapAccess<'de>>(self, mut $map: A) -> Result<(), A::Error> {
                let $state = self.0;
                while let Some(Key($key)) = $map.next_key()? {
                    $body
                }
                Ok(())
            }
        }
    };
}

// Below the macro, which it uses, too.
mod latency;
use latency::read_latency;

object_seed!(
    DocumentSeed,
    State,
    "a document of fio",
    |state, key, map| {
        let document = &mut state.document;
        match &*key {
            "fio version" => {
                document.fio_version =
                    secrets::withhold_in_text(&map.next_value::<OptionValue>()?.0);
            }
            "timestamp" => {
                let seconds = map.next_value::<Number>()?.whole();
                document
                    .timestamp_ms
                    .get_or_insert(i64::try_from(seconds.saturating_mul(1000)).unwrap_or(i64::MAX));
            }
            "timestamp_ms" => {
                let ms = map.next_value::<Number>()?.whole();
                document.timestamp_ms = Some(i64::try_from(ms).unwrap_or(i64::MAX));
            }
            "global options" => {
                map.next_value_seed(OptionsSeed(&mut document.global_options))?;
            }
            "jobs" => map.next_value_seed(JobsSeed(state))?,
            "client_stats" => {
                document.kind = DocumentKind::Client;
                map.next_value_seed(JobsSeed(state))?;
            }
            "disk_util" => map.next_value_seed(DisksSeed(&mut document.disks))?,
            _ => {
                let _: IgnoredAny = map.next_value()?;
            }
        }
    }
);

object_seed!(
    OptionsSeed,
    BTreeMap<String, String>,
    "options by name",
    |options, key, map| {
        let value = map.next_value::<OptionValue>()?.0;
        if let Some(name) = plain_name(&key) {
            options.insert(name.to_owned(), harmless_value(name, value.trim()));
        }
    }
);

/// Declares a seed that parses an array of objects. If the array is truncated, keeps its complete objects.
macro_rules! array_seed {
    ($seed:ident, $target:ty, $what:literal, |$state:ident, $seq:ident| $body:expr) => {
        struct $seed<'a>(&'a mut $target);
        impl<'de> DeserializeSeed<'de> for $seed<'_> {
            type Value = ();
            fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
                deserializer.deserialize_seq(self)
            }
        }
        impl<'de> Visitor<'de> for $seed<'_> {
            type Value = ();
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($what)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut $seq: A) -> Result<(), A::Error> {
                let $state = self.0;
                $body
            }
        }
    };
}

array_seed!(JobsSeed, State, "a list of jobs", |state, seq| loop {
    let mut job = (Worker::default(), Notes::default());
    if seq.next_element_seed(JobSeed(&mut job))?.is_none() {
        return Ok(());
    }
    let (mut result, notes) = job;
    if result.runtime.0 == 0 {
        // Before 3.8 there is no job_runtime, so the longest direction is used.
        let longest = result.operations.values().map(|io| io.runtime).max();
        result.runtime = longest.unwrap_or_default();
    }
    state.document.jobs.push(result);
    state.notes.push(notes);
});

array_seed!(
    DisksSeed,
    Vec<DiskUtil>,
    "a list of disks",
    |disks, seq| loop {
        let mut disk = DiskUtil::default();
        if seq.next_element_seed(DiskSeed(&mut disk))?.is_none() {
            return Ok(());
        }
        disks.push(disk);
    }
);

object_seed!(DiskSeed, DiskUtil, "a disk", |disk, key, map| {
    match &*key {
        "name" => disk.name = map.next_value::<OptionValue>()?.0,
        "read_ios" => disk.read_ios = map.next_value::<Number>()?.whole(),
        "write_ios" => disk.write_ios = map.next_value::<Number>()?.whole(),
        "read_ticks" => disk.read_ms = map.next_value::<Number>()?.whole(),
        "write_ticks" => disk.write_ms = map.next_value::<Number>()?.whole(),
        "in_queue" => disk.in_queue_ms = map.next_value::<Number>()?.whole(),
        "util" => disk.util = map.next_value::<Number>()?.float(),
        _ => {
            let _: IgnoredAny = map.next_value()?;
        }
    }
});

object_seed!(
    JobSeed,
    (Worker, Notes),
    "a job of fio",
    |state, key, map| {
        let (job, notes) = &mut *state;
        match &*key {
            "jobname" => {
                job.name = secrets::withhold_in_text(&map.next_value::<OptionValue>()?.0);
                notes.all_clients = job.name == "All clients";
            }
            "groupid" => {
                job.fio.group =
                    u32::try_from(map.next_value::<Number>()?.whole()).unwrap_or(u32::MAX);
            }
            "elapsed" => notes.elapsed_s = map.next_value::<Number>()?.whole(),
            "error" => {
                job.fio.error =
                    i32::try_from(map.next_value::<Number>()?.whole()).unwrap_or(i32::MAX);
            }
            "job options" => map.next_value_seed(OptionsSeed(&mut job.fio.options))?,
            "read" => {
                let read = read_direction(&mut map, &mut notes.maybe_kib[0])?;
                set(job, Operation::Read, read);
            }
            "write" => {
                let written = read_direction(&mut map, &mut notes.maybe_kib[1])?;
                set(job, Operation::Write, written);
            }
            "trim" => {
                let trimmed = read_direction(&mut map, &mut notes.maybe_kib[2])?;
                set(job, Operation::Trim, trimmed);
            }
            "mixed" => {
                let mixed = read_direction(&mut map, &mut notes.maybe_kib[0])?;
                // `unified_rw_reporting=both` prints the directions, too.
                if mixed.is_some() && job.read().is_none() && job.write().is_none() {
                    set(job, Operation::Read, mixed);
                    notes.unified = true;
                }
            }
            "sync" => {
                let mut sync = Sync::default();
                map.next_value_seed(SyncSeed(&mut sync))?;
                let mut latency = sync.latency;
                if latency.n == 0 {
                    latency.n = sync.ios;
                }
                let flushes = (latency.n > 0).then(|| Operations::flushes(latency));
                set(job, Operation::Flush, flushes);
            }
            "job_runtime" => job.runtime = to_nanos(map.next_value::<Number>()?),
            "usr_cpu" => job.usr_cpu = map.next_value::<Number>()?.float(),
            "sys_cpu" => job.sys_cpu = map.next_value::<Number>()?.float(),
            "ctx" => job.fio.ctx = map.next_value::<Number>()?.whole(),
            "iodepth_level" => map.next_value_seed(LevelsSeed(&mut job.fio.iodepth_level))?,
            _ => {
                let _: IgnoredAny = map.next_value()?;
            }
        }
    }
);

/// Stores the operations of one direction. If the key is repeated, its last value applies.
fn set(job: &mut Worker, kind: Operation, done: Option<Operations>) {
    match done {
        Some(done) => job.operations.insert(kind, done),
        None => job.operations.remove(&kind),
    };
}

fn to_nanos(number: Number) -> Nanos {
    Nanos(number.whole().saturating_mul(1_000_000))
}

object_seed!(
    LevelsSeed,
    BTreeMap<String, f64>,
    "shares by depth",
    |levels, key, map| {
        let share = map.next_value::<Number>()?.float();
        levels.insert(key.into_owned(), share);
    }
);

#[derive(Default)]
struct Sync {
    ios: u64,
    latency: Latency,
}

object_seed!(SyncSeed, Sync, "a sync section", |sync, key, map| {
    match &*key {
        "total_ios" => sync.ios = map.next_value::<Number>()?.whole(),
        "lat_ns" => sync.latency = read_latency(&mut map, 1)?,
        "lat" => sync.latency = read_latency(&mut map, 1000)?,
        _ => {
            let _: IgnoredAny = map.next_value()?;
        }
    }
});

#[derive(Default)]
struct Direction {
    stats: Operations,
    bw_kib: f64,
    bw_bytes: f64,
    plain_bytes: bool,
}

/// Parses one direction. Returns `None` if the job executed no operations in this direction.
fn read_direction<'de, A: MapAccess<'de>>(
    map: &mut A,
    maybe_kib: &mut bool,
) -> Result<Option<Operations>, A::Error> {
    let mut direction = Direction::default();
    map.next_value_seed(DirectionSeed(&mut direction))?;
    let mut stats = direction.stats;
    stats.bytes_per_s = if direction.bw_bytes > 0.0 {
        direction.bw_bytes
    } else {
        direction.bw_kib * 1024.0
    };
    *maybe_kib = !direction.plain_bytes;
    Ok((stats.count > 0 || stats.bytes.0 > 0).then_some(stats))
}

object_seed!(
    DirectionSeed,
    Direction,
    "a direction of a job",
    |direction, key, map| {
        let stats = &mut direction.stats;
        match &*key {
            "io_bytes" => stats.bytes = Bytes(map.next_value::<Number>()?.whole()),
            "io_kbytes" => {
                direction.plain_bytes = true;
                let _: IgnoredAny = map.next_value()?;
            }
            "bw_bytes" => {
                direction.plain_bytes = true;
                direction.bw_bytes = map.next_value::<Number>()?.float();
            }
            "bw" => direction.bw_kib = map.next_value::<Number>()?.float(),
            "iops" => stats.per_s = map.next_value::<Number>()?.float(),
            "runtime" => stats.runtime = to_nanos(map.next_value::<Number>()?),
            "total_ios" => stats.count = map.next_value::<Number>()?.whole(),
            "short_ios" => stats.short = map.next_value::<Number>()?.whole(),
            "drop_ios" => stats.dropped = map.next_value::<Number>()?.whole(),
            "slat_ns" => stats.slat = read_latency(&mut map, 1)?,
            "clat_ns" => stats.clat = read_latency(&mut map, 1)?,
            "lat_ns" => stats.lat = read_latency(&mut map, 1)?,
            "slat" => stats.slat = read_latency(&mut map, 1000)?,
            "clat" => stats.clat = read_latency(&mut map, 1000)?,
            "lat" => stats.lat = read_latency(&mut map, 1000)?,
            _ => {
                let _: IgnoredAny = map.next_value()?;
            }
        }
    }
);
