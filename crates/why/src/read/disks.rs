//! Disks: operations, bytes and time by direction, requests in flight, and properties of each disk.

use super::MachineReader;
use crate::machine_snapshot::{Entity, EntityKind, MachineSnapshot};
use std::collections::BTreeMap;
use std::path::Path;

/// Maximum number of disks in a snapshot; those with the most operations are kept.
const MOST: usize = 128;

/// Columns of `/proc/diskstats` after the name (iostats.rst), and the divisor that converts them to
/// seconds or bytes.
const COLUMNS: [(usize, &str, f64); 15] = [
    (0, "read.ops_total", 1.0),
    (2, "read.bytes_total", 1.0 / 512.0),
    (3, "read.wait_total", 1000.0),
    (4, "write.ops_total", 1.0),
    (6, "write.bytes_total", 1.0 / 512.0),
    (7, "write.wait_total", 1000.0),
    (8, "inflight", 1.0),
    (9, "busy_total", 1000.0),
    (10, "queue_total", 1000.0),
    (11, "discard.ops_total", 1.0),
    (13, "discard.bytes_total", 1.0 / 512.0),
    (14, "discard.wait_total", 1000.0),
    (15, "flush.ops_total", 1.0),
    (16, "flush.wait_total", 1000.0),
    (1, "read.merged_total", 1.0),
];

/// Properties of each disk that do not change: scheduler, kind, members.
#[derive(Default)]
pub(super) struct DiskTexts {
    known: BTreeMap<String, BTreeMap<String, String>>,
}

impl DiskTexts {
    pub(super) fn read(&mut self, reader: &mut MachineReader, look: &mut MachineSnapshot) {
        let Some(text) = reader.text("/proc/diskstats") else {
            return;
        };
        let mut disks: Vec<Entity> = text.lines().filter_map(parse_line).collect();
        disks.sort_by(|a, b| total_operations(b).total_cmp(&total_operations(a)));
        disks.truncate(MOST * 2);
        let mut taken = 0;
        for mut disk in disks {
            let texts = match self.known.get(&disk.name) {
                Some(texts) => texts.clone(),
                None => {
                    let texts = describe(reader, &disk.name);
                    self.known.insert(disk.name.clone(), texts.clone());
                    texts
                }
            };
            // A partition: its operations are counted for its disk.
            if texts.is_empty() || taken >= MOST {
                continue;
            }
            taken += 1;
            disk.texts = texts;
            look.entities.push(disk);
        }
    }
}

fn total_operations(disk: &Entity) -> f64 {
    let part = |key: &str| disk.numbers.get(key).copied().unwrap_or(0.0);
    part("read.ops_total")
        + part("write.ops_total")
        + part("flush.ops_total")
        + part("discard.ops_total")
}

fn parse_line(line: &str) -> Option<Entity> {
    let mut words = line.split_ascii_whitespace().skip(2);
    let name = words.next()?;
    let numbers: Vec<f64> = words.filter_map(|word| word.parse().ok()).collect();
    let mut entity = Entity::new(EntityKind::Disk, name, name);
    for (at, key, divisor) in COLUMNS {
        if let Some(number) = numbers.get(at) {
            entity.set(key, number / divisor);
        }
    }
    let is_used =
        total_operations(&entity) > 0.0 || entity.numbers.get("inflight").is_some_and(|n| *n > 0.0);
    is_used.then_some(entity)
}

/// Returns the kernel name of the disk on which a file lies; `None` if its file system has no single disk.
fn find_disk_of_file(reader: &mut MachineReader, file: &Path) -> Option<String> {
    if !reader.begin(file) {
        return None;
    }
    let stat = reader.host.stat(file);
    reader.end();
    let device = stat.ok()?.dev;
    let link = reader.link(&format!("/sys/dev/block/{device}"))?;
    let mut parts = link.rsplit('/');
    let (name, above) = (parts.next()?, parts.next()?);
    // A partition is a folder of its disk.
    let is_disk = above == "block";
    Some(if is_disk { name } else { above }.to_owned())
}

/// Returns the properties of a disk; empty for a partition.
fn describe(reader: &mut MachineReader, name: &str) -> BTreeMap<String, String> {
    let dir = format!("/sys/block/{}", name.replace('/', "!"));
    let mut texts = BTreeMap::new();
    let Some(rotational) = reader.text(&format!("{dir}/queue/rotational")) else {
        return texts;
    };
    texts.insert("rotational".to_owned(), rotational.trim().to_owned());
    for (file, key) in [
        ("queue/scheduler", "scheduler"),
        ("queue/write_cache", "write_cache"),
        ("queue/nr_requests", "nr_requests"),
        ("device/model", "model"),
        ("dm/name", "dm"),
        ("dm/uuid", "dm_uuid"),
        ("loop/backing_file", "backing_file"),
    ] {
        if let Some(text) = reader.text(&format!("{dir}/{file}")) {
            texts.insert(key.to_owned(), text.trim().to_owned());
        }
    }
    let mut lower = reader.names(&format!("{dir}/slaves"));
    if let Some(file) = texts.get("backing_file") {
        lower.extend(find_disk_of_file(reader, Path::new(file)));
    }
    if !lower.is_empty() {
        texts.insert("lower".to_owned(), lower.join(","));
    }
    texts
}
