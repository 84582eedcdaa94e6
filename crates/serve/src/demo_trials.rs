//! Trials of invented machines. The slots come from a formula; the verdicts come from the real rules.

use crate::demo_records::{
    REMARK, Random, build_sample, describe_facts, describe_target, fill_operations,
};
use assay_model::advice::{Guard, RiskLevel};
use assay_model::change::{Change, Setting};
use assay_model::criterion::{Metric, Quantity};
use assay_model::trial::{Kept, MAX_PAIRS, Side, Slot, Trial, TrialId, TrialPlan, TrialState};
use assay_model::workload::{Durability, Engine, Pattern};
use assay_model::{Bytes, Load, Nanos, Workload};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// Parameters of an invented trial.
pub(crate) struct DemoTrial {
    pub(crate) advice: &'static str,
    pub(crate) title: &'static str,
    pub(crate) target: &'static str,
    pub(crate) setting: Setting,
    pub(crate) value: &'static str,
    /// Latency of B divided by latency of A.
    pub(crate) ratio: f64,
    /// Number of measured pairs.
    pub(crate) pairs: u32,
    pub(crate) state: TrialState,
    pub(crate) kept: Option<Kept>,
}

/// Lists the trials of the fleet, each with the index of its machine and its age in days.
pub(crate) fn list_trials() -> [(usize, i64, DemoTrial); 5] {
    let queue = |attribute: &str| Setting::Queue {
        device: "sda".to_owned(),
        attribute: attribute.to_owned(),
    };
    let mount = Setting::MountOption {
        mountpoint: "/srv".to_owned(),
        choices: vec!["relatime".to_owned(), "noatime".to_owned()],
    };
    let dirty = Setting::Sysctl {
        key: "vm.dirty_ratio".to_owned(),
    };
    let io_scheduler = ("io-scheduler", "Fast disks need no I/O scheduler");
    let read_ahead = ("read-ahead", "A larger read-ahead makes disks faster");
    let demo = |(advice, title), target, setting, value, ratio, pairs, kept| DemoTrial {
        advice,
        title,
        target,
        setting,
        value,
        ratio,
        pairs,
        state: TrialState::Complete,
        kept: Some(kept),
    };
    [
        (
            1,
            34,
            demo(
                io_scheduler,
                "/var/lib/postgresql",
                queue("scheduler"),
                "none",
                0.90,
                30,
                Kept::Kept,
            ),
        ),
        (
            3,
            20,
            demo(
                ("noatime", "noatime saves writes"),
                "/srv",
                mount,
                "noatime",
                1.002,
                42,
                Kept::Reverted,
            ),
        ),
        (
            2,
            9,
            demo(
                read_ahead,
                "/var/mail",
                queue("read_ahead_kb"),
                "4096",
                1.07,
                21,
                Kept::Reverted,
            ),
        ),
        (
            2,
            4,
            demo(
                io_scheduler,
                "/var/mail",
                queue("scheduler"),
                "none",
                0.93,
                30,
                Kept::Reverted,
            ),
        ),
        (
            3,
            1,
            demo(
                (
                    "sysctl-dirty-ratio",
                    "A higher vm.dirty_ratio makes writing faster",
                ),
                "/srv",
                dirty,
                "60",
                0.985,
                15,
                Kept::Reverted,
            ),
        ),
    ]
}

/// Builds a trial with its slots.
pub(crate) fn build_trial(
    demo: &DemoTrial,
    started: Timestamp,
    kernel: &str,
    random: &mut Random,
) -> (Trial, Vec<Slot>) {
    const MEAN: f64 = 3.1e6;
    let plan = build_plan(demo, random);
    let mut slots = Vec::new();
    // Pair 0 warms up and counts nowhere.
    for pair in 0..=demo.pairs {
        let first = plan.first.get(pair as usize).copied().unwrap_or(Side::Now);
        for (place, side) in [first, first.other()].into_iter().enumerate() {
            let number = 2 * pair + place as u32;
            let began = started + SignedDuration::from_secs(6 * i64::from(number));
            let ratio = match side {
                Side::Now => 1.0,
                Side::Changed => demo.ratio,
            };
            let operations =
                fill_operations(MEAN * ratio * (random.bell() * 0.015).exp(), 16.0, random);
            slots.push(Slot {
                pair,
                side,
                read_back: match side {
                    Side::Now => "default".to_owned(),
                    Side::Changed => demo.value.to_owned(),
                },
                sample: build_sample(
                    ["randread-4k-qd16", demo.target],
                    [pair + 1, number],
                    began,
                    operations,
                ),
                doubts: Vec::new(),
            });
        }
    }
    let ended = started + SignedDuration::from_secs(6 * slots.len() as i64);
    let trial = Trial {
        id: TrialId(0),
        uid: random.uid(),
        assay_version: env!("CARGO_PKG_VERSION").to_owned(),
        started,
        ended: (demo.state != TrialState::Running).then_some(ended),
        state: demo.state,
        target: Some(describe_target(demo.target)),
        plan,
        facts: describe_facts("Intel Xeon E-2388G", kernel),
        durability: Vec::new(),
        kept: demo.kept,
        kept_in: None,
        remarks: vec![REMARK.to_owned()],
        campaign: Vec::new(),
    };
    (trial, slots)
}

fn build_plan(demo: &DemoTrial, random: &mut Random) -> TrialPlan {
    let mut workload = Workload {
        name: String::new(),
        pattern: Pattern::RandRead,
        block_size: Bytes(4096),
        queue_depth: 16,
        jobs: 1,
        read_percent: None,
        engine: Engine::IoUring,
        direct: true,
        durability: Durability::None,
        runtime: Some(Nanos(2_000_000_000)),
        ramp: Some(Nanos(500_000_000)),
    };
    workload.name = workload.default_name();
    TrialPlan {
        advice: demo.advice.to_owned(),
        title: demo.title.to_owned(),
        predicts: "More reads per second.".to_owned(),
        parameters: BTreeMap::new(),
        target: demo.target.to_owned(),
        change: Change::Set {
            setting: demo.setting.clone(),
            value: Some(demo.value.to_owned()),
        },
        aa: false,
        load: Load::Fio {
            workload,
            size: Some(Bytes(1 << 30)),
        },
        metric: Metric::all(Quantity::Iops),
        guards: vec![Guard {
            metric: Metric::all(Quantity::P99),
            margin: 0.10,
        }],
        margin: 0.03,
        slot: Nanos(2_000_000_000),
        slot_min: None,
        washout: Nanos(500_000_000),
        cached: false,
        safety: None,
        keep: None,
        risk: RiskLevel::None,
        max_pairs: MAX_PAIRS,
        budget: None,
        alpha: 0.05,
        seed: random.next(),
        first: (0..MAX_PAIRS)
            .map(|_| match random.next() % 2 {
                0 => Side::Now,
                _ => Side::Changed,
            })
            .collect(),
    }
}
