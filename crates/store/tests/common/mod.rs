//! Constructs runs and samples to store.
#![allow(dead_code, reason = "not every test needs all of it")]

use assay_model::criterion::{Metric, Quantity};
use assay_model::plan::{Plan, Slot};
use assay_model::run::{Origin, Run, RunState};
use assay_model::sample::{Latency, Operation, Operations, Outcome, Sample, Worker};
use assay_model::study::StudyRun;
use assay_model::target::{TargetInfo, TargetKind};
use assay_model::trial::{Side, Trial, TrialId, TrialPlan, TrialState};
use assay_model::{Bytes, Change, Facts, Load, Nanos, RunId};

/// A run of four slots on one target.
pub fn run(uid: &str) -> Run {
    let slot = |round| Slot {
        round,
        workload: 0,
        target: 0,
        seed: u64::MAX,
    };
    Run {
        id: RunId(0),
        uid: uid.to_owned(),
        assay_version: "0.1.0".to_owned(),
        started: jiff::Timestamp::from_nanosecond(1_700_000_000_123_456_789).unwrap(),
        ended: None,
        state: RunState::Running,
        origin: Origin::Measured,
        plan: Plan {
            name: "quick".to_owned(),
            rounds: 4,
            order: (1..=4).map(slot).collect(),
            ..Plan::default()
        },
        targets: vec![TargetInfo {
            name: "/srv/a b".to_owned(),
            kind: TargetKind::Directory,
            fs_type: Some("ext4".to_owned()),
            mount_point: None,
            mount_options: None,
            mount_source: None,
            devices: vec!["vda".to_owned()],
            disks: vec!["vda".to_owned()],
            size: Bytes(1 << 30),
            free: None,
        }],
        facts: Facts::default(),
        remarks: vec!["something \"quoted\"".to_owned()],
        ladder: None,
    }
}

/// A sample whose histogram is not small.
pub fn sample(slot: u32, iops: f64) -> Sample {
    let bins = (0..200u64).map(|bin| (1000 + bin * 37, 1 + bin * u64::from(slot + 1) % 91));
    Sample {
        workload: "randread-4k-qd16".to_owned(),
        target: "/srv/a b".to_owned(),
        round: slot + 1,
        slot,
        started: jiff::Timestamp::UNIX_EPOCH,
        wall: Nanos(5_500_000_000),
        outcome: Outcome::Completed,
        tool: "fio-3.33".to_owned(),
        workers: vec![Worker {
            name: "randread-4k-qd16".to_owned(),
            operations: [(
                Operation::Read,
                Operations {
                    bytes: Bytes(4096),
                    count: 1,
                    runtime: Nanos(1_000_000_000),
                    per_s: iops,
                    bytes_per_s: 0.1 + 0.2,
                    clat: Latency {
                        n: 1,
                        max: 9999,
                        mean: 1234.5678901234567,
                        percentiles: vec![(99.9, 1)],
                        histogram: bins.collect(),
                        ..Latency::default()
                    },
                    ..Operations::default()
                },
            )]
            .into(),
            ..Worker::default()
        }],
        counters: Default::default(),
        file: None,
        series: vec![],
    }
}

/// A trial of read-ahead.
pub fn trial(uid: &str) -> Trial {
    let value = |text: &str| text.to_owned();
    let run = run(uid);
    Trial {
        id: TrialId(0),
        uid: uid.to_owned(),
        assay_version: run.assay_version,
        started: run.started,
        ended: None,
        state: TrialState::Running,
        plan: TrialPlan {
            advice: value("read-ahead"),
            title: value("Read ahead further"),
            predicts: value("faster"),
            parameters: Default::default(),
            target: value("/srv/a b"),
            change: Change::Set {
                setting: assay_model::change::Setting::Queue {
                    device: value("vda"),
                    attribute: value("read_ahead_kb"),
                },
                value: Some(value("4096")),
            },
            aa: false,
            load: Load::Command {
                argv: vec![value("true")],
                prints: None,
            },
            metric: Metric::all(Quantity::P50),
            guards: vec![],
            margin: 0.03,
            slot: Nanos(1),
            slot_min: None,
            washout: Nanos(0),
            cached: false,
            safety: None,
            keep: None,
            risk: assay_model::advice::RiskLevel::Low,
            max_pairs: 60,
            budget: None,
            alpha: 0.05,
            seed: u64::MAX,
            first: vec![Side::Now, Side::Changed],
        },
        target: Some(run.targets[0].clone()),
        facts: run.facts,
        durability: vec![],
        kept: None,
        kept_in: None,
        remarks: vec![],
        campaign: vec![],
    }
}

/// A study of one command.
pub fn study(uid: &str, name: &str) -> StudyRun {
    serde_json::from_value(serde_json::json!({
        "uid": uid, "assay_version": "0.1.0", "started": "2026-01-02T03:04:05Z", "ended": null,
        "study": {
            "name": name, "title": "t", "question": "q", "bench": "commands",
            "source": { "title": "s", "year": 2013, "machine": "m" },
            "forms": { "quick": { "rounds": 1, "time": "1s" }, "full": { "rounds": 2, "time": "1s" } },
            "configuration": [{ "name": "a", "title": null, "run": ["true"] }],
            "figure": [{ "name": "f", "title": null, "better": "lower", "together": null,
                         "derived": null, "of": "time" }],
            "conclusion": [],
        },
        "form": "quick", "machine": { "kernel": "Linux" }, "seed": 7,
        "observations": [], "not_tried": [], "complete": false,
    }))
    .unwrap()
}

pub fn observation(uid: &str) -> assay_store::Observation {
    let at = jiff::Timestamp::from_second(1_800_000_000).unwrap();
    assay_store::Observation {
        uid: uid.to_owned(),
        by: assay_store::Observer::Why,
        started: at,
        ended: at,
        subject: "this machine".to_owned(),
        summary: "Nothing here waits: in 60 s nothing suspicious was seen.".to_owned(),
        document: serde_json::json!({ "waiting": 0.01, "suspects": [] }),
    }
}
