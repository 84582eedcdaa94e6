//! Converts a result to a run with one round, so that it can be stored, shown and compared.

use crate::{Figures, ResultRow, ToolResult};
use assay_model::plan::{Plan, Slot};
use assay_model::run::RunState;
use assay_model::sample::{Counters, Latency, Operation, Operations, Outcome, Sample, Worker};
use assay_model::target::{TargetInfo, TargetKind};
use assay_model::workload::Engine;
use assay_model::{Facts, Nanos, Origin, Planned, Run, RunId, Workload};
use jiff::Timestamp;
use std::collections::BTreeMap;

/// Data for the run that a result does not contain.
#[derive(Clone, Debug)]
pub struct ResultContext {
    /// Name of the file that contains the result, without its directory.
    pub file: String,
    /// Unique id of the run (`Run::uid`).
    pub uid: String,
    /// Version of assay (`Run::assay_version`).
    pub version: String,
    /// Time of the run if the result contains none.
    pub now: Timestamp,
    /// Remarks to store with the run, such as the doubts about the result.
    pub remarks: Vec<String>,
}

/// Converts a result to a run with one sample per workload. An unknown block size becomes 0.
#[must_use]
pub fn to_run(result: &ToolResult, context: &ResultContext) -> (Run, Vec<Sample>) {
    let time = result.time.and_then(|time| {
        let zoned = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
        Some(zoned.timestamp())
    });
    let time = time.unwrap_or(context.now);
    let target = to_target(result);
    let mut plan = Plan {
        name: "imported".to_owned(),
        title: format!("Imported from {}", context.file),
        rounds: 1,
        file_size: target.size,
        targets: vec![target.name.clone()],
        ..Plan::default()
    };
    let tool = format!("{} {}", result.tool.name(), result.version);
    let mut samples = Vec::new();
    let mut names = BTreeMap::new();
    for (index, row) in result.rows.iter().enumerate() {
        let workload = to_workload(row, result.direct, unique_name(&row.name, &mut names));
        plan.order.push(Slot {
            round: 1,
            workload: index,
            target: 0,
            seed: 0,
        });
        samples.push(Sample {
            workload: workload.name.clone(),
            target: target.name.clone(),
            round: 1,
            slot: u32::try_from(index).unwrap_or(u32::MAX),
            started: time,
            wall: row.runtime.unwrap_or_default(),
            outcome: Outcome::Completed,
            tool: tool.trim_end().to_owned(),
            workers: vec![to_worker(row)],
            counters: Counters::default(),
            file: None,
            series: Vec::new(),
        });
        plan.workloads.push(Planned::of_fio(workload));
    }
    let run = Run {
        id: RunId(0),
        uid: context.uid.clone(),
        assay_version: context.version.clone(),
        started: time,
        ended: Some(time),
        state: RunState::Complete,
        origin: Origin::Imported {
            file: context.file.clone(),
        },
        plan,
        targets: vec![target],
        facts: Facts::default(),
        remarks: context.remarks.clone(),
        ladder: None,
    };
    (run, samples)
}

fn to_target(result: &ToolResult) -> TargetInfo {
    let name = result.target.as_deref().unwrap_or("unknown");
    TargetInfo {
        name: name.to_owned(),
        kind: match name.starts_with("/dev/") {
            true => TargetKind::BlockDevice,
            false => TargetKind::File,
        },
        fs_type: None,
        mount_point: None,
        mount_options: None,
        mount_source: None,
        devices: Vec::new(),
        disks: Vec::new(),
        size: result.file_size.unwrap_or_default(),
        free: None,
    }
}

fn to_workload(row: &ResultRow, direct: Option<bool>, name: String) -> Workload {
    Workload {
        name,
        pattern: row.pattern,
        block_size: row.block_size.unwrap_or_default(),
        queue_depth: row.queue_depth,
        jobs: row.threads,
        read_percent: row.read_percent,
        engine: Engine::Auto,
        // Unknown counts as assay's default.
        direct: direct.unwrap_or(true),
        durability: row.durability,
        runtime: row.runtime,
        ramp: None,
    }
}

fn to_worker(row: &ResultRow) -> Worker {
    let mut worker = Worker {
        name: row.name.clone(),
        runtime: row.runtime.unwrap_or_default(),
        ..Worker::default()
    };
    for (kind, figures) in [(Operation::Read, &row.read), (Operation::Write, &row.write)] {
        if let Some(figures) = figures {
            worker
                .operations
                .insert(kind, to_operations(figures, row.runtime));
        }
    }
    worker
}

fn to_operations(figures: &Figures, runtime: Option<Nanos>) -> Operations {
    let nanos = |time: Option<Nanos>| time.map_or(0, |time| time.0);
    let latency = Latency {
        mean: nanos(figures.mean) as f64,
        max: nanos(figures.max),
        percentiles: figures
            .percentiles
            .iter()
            .map(|(percent, time)| (*percent, time.0))
            .collect(),
        ..Latency::default()
    };
    Operations {
        count: figures.count.unwrap_or(0),
        bytes: figures.bytes.unwrap_or_default(),
        runtime: runtime.unwrap_or_default(),
        per_s: figures.per_s.unwrap_or(0.0),
        bytes_per_s: figures.bytes_per_s.unwrap_or(0.0),
        clat: latency.clone(),
        lat: latency,
        ..Operations::default()
    }
}

/// Converts a name to a form that criteria can contain: letters, digits, `-` and `_`, at most 60 characters. Adds a
/// number if the name occurred before.
fn unique_name(name: &str, seen: &mut BTreeMap<String, u32>) -> String {
    let mut base = String::new();
    for c in name.to_ascii_lowercase().chars().take(120) {
        match c {
            'a'..='z' | '0'..='9' | '_' => base.push(c),
            _ if base.ends_with('-') || base.is_empty() => {}
            _ => base.push('-'),
        }
    }
    let base: String = base.trim_end_matches('-').chars().take(56).collect();
    let count = seen.entry(base.clone()).or_insert(0);
    *count += 1;
    match *count {
        1 => base,
        count => format!("{base}-{count}"),
    }
}
