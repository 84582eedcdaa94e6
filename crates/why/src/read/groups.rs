//! Control groups of both versions: limits, throttling, memory events, pressure and transfers.

use super::{MachineReader, parse_pairs, parse_pressure};
use crate::machine_snapshot::{Entity, EntityKind, MachineSnapshot};
use assay_facts::mountinfo;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Maximum number of groups in a snapshot.
const MOST: usize = 48;

/// Mount points of the control group hierarchies.
#[derive(Clone, Debug, Default)]
pub(super) struct GroupDirs {
    unified: Option<PathBuf>,
    cpu: Option<PathBuf>,
    memory: Option<PathBuf>,
    blkio: Option<PathBuf>,
    pids: Option<PathBuf>,
    freezer: Option<PathBuf>,
}

impl GroupDirs {
    pub(super) fn find(reader: &mut MachineReader) -> Self {
        let mut dirs = Self::default();
        let text = reader.text("/proc/self/mountinfo").unwrap_or_default();
        for mount in mountinfo::parse(text.as_bytes()).unwrap_or_default() {
            // If only a part of a hierarchy is mounted, its paths differ from those in
            // `/proc/PID/cgroup`.
            if mount.root != Path::new("/") {
                continue;
            }
            if mount.fs_type == "cgroup2" {
                dirs.unified.get_or_insert(mount.point);
            } else if mount.fs_type == "cgroup" {
                for option in mount.super_options.split(',') {
                    let place = match option {
                        "cpu" => &mut dirs.cpu,
                        "memory" => &mut dirs.memory,
                        "blkio" => &mut dirs.blkio,
                        "pids" => &mut dirs.pids,
                        "freezer" => &mut dirs.freezer,
                        _ => continue,
                    };
                    place.get_or_insert(mount.point.clone());
                }
            }
        }
        dirs
    }

    pub(super) fn read(
        &self,
        reader: &mut MachineReader,
        paths: &BTreeSet<String>,
        look: &mut MachineSnapshot,
    ) {
        for path in paths.iter().take(MOST) {
            let name = path.rsplit('/').next().unwrap_or(path);
            let mut group = Entity::new(EntityKind::Group, path.as_str(), name);
            let below =
                |dir: &Option<PathBuf>| Some(dir.as_ref()?.join(path.trim_start_matches('/')));
            if let Some(dir) = below(&self.unified) {
                read_unified(reader, &dir, &mut group);
            }
            if let Some(dir) = below(&self.cpu) {
                read_cpu(reader, &dir, &mut group);
            }
            if let Some(dir) = below(&self.memory) {
                read_memory(reader, &dir, &mut group);
            }
            if let Some(dir) = below(&self.pids) {
                read_pids(reader, &dir, &mut group);
            }
            if let Some(dir) = below(&self.freezer)
                && let Some(state) = reader.text_at(&dir.join("freezer.state"))
            {
                let is_thawed = state.trim() == "THAWED";
                group.set("frozen", f64::from(u8::from(!is_thawed)));
            }
            if let Some(dir) = below(&self.blkio) {
                read_blkio(reader, &dir, &mut group);
            }
            if !group.numbers.is_empty() {
                look.entities.push(group);
            }
        }
        if paths.len() > MOST {
            reader
                .missing
                .insert(format!("more than {MOST} control groups"));
        }
    }
}

fn read_unified(reader: &mut MachineReader, dir: &Path, group: &mut Entity) {
    read_pids(reader, dir, group);
    read_unified_limits(reader, dir, group);
    let mut text = |name: &str| reader.text_at(&dir.join(name));
    if let Some(text) = text("cpu.stat") {
        set_pairs(
            &text,
            group,
            &[
                ("usage_usec", "cpu.usage_total", 1e6),
                ("nr_periods", "cpu.periods_total", 1.0),
                ("nr_throttled", "cpu.throttled_total", 1.0),
                ("throttled_usec", "cpu.throttled_s_total", 1e6),
            ],
        );
    }
    for name in ["cpu", "io", "memory"] {
        if let Some(text) = text(&format!("{name}.pressure")) {
            for (kind, seconds) in parse_pressure(&text) {
                group.set(&format!("psi.{name}.{kind}_total"), seconds);
            }
        }
    }
    if let Some(number) = text("memory.current").and_then(|text| text.trim().parse().ok()) {
        group.set("mem.current", number);
    }
    if let Some(text) = text("memory.events") {
        set_pairs(
            &text,
            group,
            &[
                ("max", "mem.reached_max_total", 1.0),
                ("high", "mem.reached_high_total", 1.0),
                ("oom_kill", "mem.oom_kill_total", 1.0),
            ],
        );
    }
    if let Some(text) = text("memory.stat") {
        set_pairs(
            &text,
            group,
            &[
                ("pgscan_direct", "mem.scan_direct_total", 1.0),
                ("workingset_refault_file", "mem.refault_file_total", 1.0),
                ("pswpin", "mem.swap_in_total", 1.0),
                ("pswpout", "mem.swap_out_total", 1.0),
            ],
        );
    }
    if let Some(text) = text("cgroup.events") {
        set_pairs(&text, group, &[("frozen", "frozen", 1.0)]);
    }
    if let Some(text) = text("io.stat") {
        let mut sums = [
            ("rbytes=", "io.read_total", 0.0),
            ("wbytes=", "io.write_total", 0.0),
            ("rios=", "io.read_ops_total", 0.0),
            ("wios=", "io.write_ops_total", 0.0),
        ];
        for word in text.split_ascii_whitespace() {
            for (name, _, sum) in &mut sums {
                *sum += word
                    .strip_prefix(*name)
                    .and_then(|n| n.parse().ok())
                    .unwrap_or(0.0);
            }
        }
        for (_, key, sum) in sums {
            group.set(key, sum);
        }
    }
}

/// Reads the limits of a group (version 2). They hardly change, so they are cached.
fn read_unified_limits(reader: &mut MachineReader, dir: &Path, group: &mut Entity) {
    let mut text = |name: &str| reader.setting_at(&dir.join(name));
    if let Some(quota) = text("cpu.max").as_deref().and_then(parse_cpu_max) {
        group.set("cpu.quota", quota);
    }
    for (file, key) in [("memory.max", "mem.max"), ("memory.high", "mem.high")] {
        if let Some(number) = text(file).and_then(|text| text.trim().parse().ok()) {
            group.set(key, number);
        }
    }
    if let Some(text) = text("io.max").filter(|text| !text.trim().is_empty()) {
        group
            .texts
            .insert("io.max".to_owned(), text.trim().replace('\n', "; "));
        for word in text.split_ascii_whitespace() {
            let Some((name, value)) = word.split_once('=') else {
                continue;
            };
            let key = match name {
                "rbps" => "io.read_limit",
                "wbps" => "io.write_limit",
                "riops" => "io.read_ops_limit",
                "wiops" => "io.write_ops_limit",
                _ => continue,
            };
            if let Ok(number) = value.parse() {
                group.set(key, number);
            }
        }
    }
}

fn read_cpu(reader: &mut MachineReader, dir: &Path, group: &mut Entity) {
    if let Some(text) = reader.text_at(&dir.join("cpu.stat")) {
        set_pairs(
            &text,
            group,
            &[
                ("nr_periods", "cpu.periods_total", 1.0),
                ("nr_throttled", "cpu.throttled_total", 1.0),
                ("throttled_time", "cpu.throttled_s_total", 1e9),
            ],
        );
    }
    let mut number =
        |name: &str| -> Option<f64> { reader.setting_at(&dir.join(name))?.trim().parse().ok() };
    if let (Some(quota), Some(period)) = (number("cpu.cfs_quota_us"), number("cpu.cfs_period_us"))
        && quota > 0.0
        && period > 0.0
    {
        group.set("cpu.quota", quota / period);
    }
    let usage = reader.text_at(&dir.join("cpuacct.usage"));
    if let Some(nanos) = usage.and_then(|text| text.trim().parse::<f64>().ok()) {
        group.set("cpu.usage_total", nanos / 1e9);
    }
}

fn read_memory(reader: &mut MachineReader, dir: &Path, group: &mut Entity) {
    for (file, key) in [
        ("memory.usage_in_bytes", "mem.current"),
        ("memory.limit_in_bytes", "mem.max"),
        ("memory.failcnt", "mem.reached_max_total"),
    ] {
        let path = dir.join(file);
        let text = match file {
            "memory.limit_in_bytes" => reader.setting_at(&path),
            _ => reader.text_at(&path),
        };
        let number = text.and_then(|text| text.trim().parse().ok());
        // "No limit" is the largest multiple of the page size that fits a signed long.
        if let Some(number) = number.filter(|number: &f64| *number < 1e18) {
            group.set(key, number);
        }
    }
    if let Some(text) = reader.text_at(&dir.join("memory.stat")) {
        set_pairs(
            &text,
            group,
            &[
                ("workingset_refault_file", "mem.refault_file_total", 1.0),
                ("pgmajfault", "mem.majfaults_total", 1.0),
            ],
        );
    }
    if let Some(text) = reader.text_at(&dir.join("memory.oom_control")) {
        set_pairs(&text, group, &[("oom_kill", "mem.oom_kill_total", 1.0)]);
    }
}

fn read_pids(reader: &mut MachineReader, dir: &Path, group: &mut Entity) {
    for name in ["pids.current", "pids.max"] {
        let path = dir.join(name);
        let text = match name {
            "pids.max" => reader.setting_at(&path),
            _ => reader.text_at(&path),
        };
        if let Some(number) = text.and_then(|text| text.trim().parse().ok()) {
            group.set(name, number);
        }
    }
    if let Some(text) = reader.text_at(&dir.join("pids.events")) {
        set_pairs(&text, group, &[("max", "pids.refused_total", 1.0)]);
    }
}

fn read_blkio(reader: &mut MachineReader, dir: &Path, group: &mut Entity) {
    let mut lines = Vec::new();
    for (name, key) in [
        ("read_bps", "io.read_limit"),
        ("write_bps", "io.write_limit"),
        ("read_iops", "io.read_ops_limit"),
        ("write_iops", "io.write_ops_limit"),
    ] {
        let text = reader.setting_at(&dir.join(format!("blkio.throttle.{name}_device")));
        for line in text.unwrap_or_default().lines() {
            let limit = line
                .split_ascii_whitespace()
                .nth(1)
                .and_then(|word| word.parse().ok());
            if let Some(limit) = limit {
                group.set(key, limit);
                lines.push(format!("{name} {line}"));
            }
        }
    }
    if lines.is_empty() {
        return;
    }
    group.texts.insert("io.max".to_owned(), lines.join("; "));
    for (file, read, write) in [
        ("io_service_bytes", "io.read_total", "io.write_total"),
        ("io_serviced", "io.read_ops_total", "io.write_ops_total"),
    ] {
        let text = reader.text_at(&dir.join(format!("blkio.throttle.{file}")));
        let (mut reads, mut writes) = (0.0, 0.0);
        for line in text.unwrap_or_default().lines() {
            let mut words = line.split_ascii_whitespace().skip(1);
            let (Some(kind), Some(Ok(count))) = (words.next(), words.next().map(str::parse::<f64>))
            else {
                continue;
            };
            match kind {
                "Read" => reads += count,
                "Write" => writes += count,
                _ => {}
            }
        }
        group.set(read, reads);
        group.set(write, writes);
    }
}

fn set_pairs(text: &str, group: &mut Entity, known: &[(&str, &str, f64)]) {
    for (name, value) in parse_pairs(text) {
        if let Some((_, key, divisor)) = known.iter().find(|(known, ..)| *known == name) {
            group.set(key, value / divisor);
        }
    }
}

/// Parses `QUOTA PERIOD` of `cpu.max` as a number of CPUs; `None` for `max`.
fn parse_cpu_max(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
    (period > 0.0).then(|| quota / period)
}
