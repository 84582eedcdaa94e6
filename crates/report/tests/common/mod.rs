//! Synthetic runs for tests of layout. Their figures come from a formula and not from a measurement. They contain the
//! word SYNTHETIC wherever a reader could take them for real.
#![allow(
    dead_code,
    unused_imports,
    reason = "each test file uses what it needs"
)]

pub mod page;
pub mod trials;

use assay_model::criterion::{Metric, Quantity};
use assay_model::doubt::{Severity, Validity};
use assay_model::plan::{Plan, PlanSpec, Settings, builtin_plan};
use assay_model::result::*;
use assay_model::run::{Origin, RunState};
use assay_model::sample::{Operation, Outcome, Rate, RatePoint, Sample};
use assay_model::target::TargetKind;
use assay_model::workload::{Durability, Engine};
use assay_model::{
    Bytes, Doubt, FactKind, Facts, Histogram, Nanos, Run, RunId, TargetInfo, Workload,
};
use std::collections::BTreeMap;

/// A run with everything that a report needs.
pub struct Case {
    pub run: Run,
    pub judged: Judged,
    pub samples: Vec<Sample>,
    pub jobs: Vec<(String, String)>,
}

/// The random number generator splitmix64, which returns the same numbers on every machine.
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a uniform number, 0–1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns an approximately normal number with deviation 1.
    pub fn bell(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}

pub fn target(name: &str) -> TargetInfo {
    TargetInfo {
        name: name.to_owned(),
        kind: TargetKind::Directory,
        fs_type: Some("ext4".to_owned()),
        mount_point: Some("/".to_owned()),
        mount_options: Some("rw,relatime".to_owned()),
        mount_source: Some("/dev/vda1".to_owned()),
        devices: vec!["vda1".to_owned()],
        disks: vec!["vda".to_owned()],
        size: Bytes(2 << 30),
        free: Some(Bytes(40 << 30)),
    }
}

pub fn facts() -> Facts {
    let mut facts = Facts::default();
    facts.known(
        "cpu.model",
        "SYNTHETIC CPU 3000",
        FactKind::Runtime,
        "/proc/cpuinfo:5",
    );
    facts.known(
        "cpu.threads",
        4,
        FactKind::Runtime,
        "/sys/devices/system/cpu/online",
    );
    facts.unknown(
        "cpu.governor",
        "no such file: the driver has none",
        FactKind::Runtime,
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    );
    facts.known(
        "disk.vda.model",
        "SYNTHETIC DISK",
        FactKind::Runtime,
        "/sys/block/vda/device/model",
    );
    facts.known(
        "disk.vda.size",
        107_374_182_400u64,
        FactKind::Runtime,
        "/sys/block/vda/size",
    );
    facts.known(
        "disk.vda.rotational",
        true,
        FactKind::Runtime,
        "/sys/block/vda/queue/rotational",
    );
    facts.known(
        "disk.vda.scheduler",
        "none",
        FactKind::Runtime,
        "/sys/block/vda/queue/scheduler",
    );
    facts.known(
        "kernel.release",
        "6.1.0-synthetic",
        FactKind::Runtime,
        "/proc/sys/kernel/osrelease",
    );
    facts.known(
        "memory.total",
        8_320_000_000u64,
        FactKind::Runtime,
        "/proc/meminfo:1",
    );
    facts.known("tool.fio", "fio-3.33", FactKind::Default, "fio --version");
    facts.known(
        "virtualisation.vm",
        "kvm",
        FactKind::Runtime,
        "systemd-detect-virt --vm",
    );
    facts
}

/// Returns the mean latency and rate of a workload by the formula.
fn formula(workload: &Workload) -> (f64, f64) {
    let depth = f64::from(workload.in_flight());
    let base = match (workload.pattern.random(), workload.pattern.writes()) {
        (true, false) => 95e3,
        (true, true) => 40e3,
        (false, false) => 60e3,
        (false, true) => 45e3,
    };
    let flush = if workload.durability == Durability::None {
        0.0
    } else {
        2.6e6
    };
    let alone = base + flush + workload.block_size.0 as f64 / 2.2;
    let rate = (depth / alone * 1e9)
        .min(120_000.0)
        .min(2.1e9 / workload.block_size.0 as f64);
    (depth / rate * 1e9, rate)
}

pub fn histogram(mean: f64, count: u64, random: &mut Random) -> Histogram {
    let mut histogram = Histogram::default();
    for _ in 0..1500 {
        let tail = if random.unit() > 0.985 {
            1.0 + 9.0 * random.unit()
        } else {
            1.0
        };
        let nanos = mean * (random.bell() * 0.22 - 0.03).exp() * tail;
        // As coarse as fio's: 64 bins for each power of two.
        let step = (nanos / 64.0).log2().floor().exp2().max(1.0);
        histogram.record(((nanos / step).round() * step) as u64, count / 1500 + 1);
    }
    histogram
}

fn estimates(
    rate: f64,
    block: f64,
    histogram: &Histogram,
    rounds: u32,
    spread: f64,
) -> BTreeMap<Metric, Estimate> {
    let estimate = |value: f64, spread: f64| Estimate {
        value,
        interval: (rounds > 1).then_some(Interval {
            low: value * (1.0 - spread),
            high: value * (1.0 + spread),
            confidence: 0.95,
        }),
        rounds,
    };
    let mut all = BTreeMap::new();
    all.insert(Metric::all(Quantity::Iops), estimate(rate, spread));
    all.insert(
        Metric::all(Quantity::Throughput),
        estimate(rate * block, spread),
    );
    for quantity in Quantity::ALL.into_iter().filter(|q| q.percent().is_some()) {
        let nanos = quantity
            .percent()
            .and_then(|p| histogram.percentile(p))
            .unwrap_or(0);
        all.insert(Metric::all(quantity), estimate(nanos as f64, spread * 1.6));
    }
    all.insert(
        Metric::all(Quantity::Mean),
        estimate(histogram.mean().unwrap_or(0.0), spread),
    );
    all.insert(
        Metric::all(Quantity::Max),
        estimate(histogram.percentile(100.0).unwrap_or(0) as f64, spread),
    );
    all
}

fn series(rate: f64, random: &mut Random) -> Vec<RatePoint> {
    (1..=16u64)
        .map(|i| {
            let stall = if random.unit() > 0.97 { 0.4 } else { 1.0 };
            RatePoint {
                at_ms: i * 125,
                rates: [(
                    Operation::Read,
                    Rate {
                        per_s: 0.0,
                        bytes_per_s: rate * (1.0 + random.bell() * 0.05) * stall,
                    },
                )]
                .into(),
            }
        })
        .collect()
}

fn limit(workload: &Workload) -> Limit {
    match (workload.durability, workload.in_flight()) {
        (Durability::None, 1) => Limit {
            what: LimitKind::OneAtATime,
            evidence: "one request is in flight; 1 ÷ mean latency gives the rate".to_owned(),
        },
        (Durability::None, _) => Limit {
            what: LimitKind::Device,
            evidence:
                "vda was busy 99 % of the time with 15.8 requests in flight, and depth 8 gave \
                97 % of this rate"
                    .to_owned(),
        },
        _ => Limit {
            what: LimitKind::Flush,
            evidence: "2.6 ms of 2.7 ms of each write are its flush".to_owned(),
        },
    }
}

/// Returns a built-in plan, resolved.
pub fn plan(name: &str) -> Plan {
    let settings = Settings {
        targets: vec!["/srv/synthetic".to_owned()],
        engine: Engine::IoUring,
        seed: 4711,
    };
    builtin_plan(name).unwrap().resolve(&settings).unwrap()
}

/// Parses a plan that is written as TOML.
pub fn plan_toml(text: &str, targets: &[&str]) -> Plan {
    let settings = Settings {
        targets: targets.iter().map(|t| (*t).to_owned()).collect(),
        engine: Engine::IoUring,
        seed: 4711,
    };
    PlanSpec::from_toml(text, "test.toml")
        .unwrap()
        .resolve(&settings)
        .unwrap()
}

/// Simulates the execution of a plan by the formula.
pub fn case(plan: Plan) -> Case {
    let mut random = Random(plan.seed);
    let started: jiff::Timestamp = "2026-11-21T09:30:00Z".parse().unwrap();
    let mut judged = Judged {
        samples: vec![],
        results: vec![],
        criteria: vec![],
    };
    let mut samples = Vec::new();
    let rounds = plan.rounds;
    for target in &plan.targets {
        for workload in plan.workloads.iter().filter_map(|one| one.fio()) {
            let (mean, rate) = formula(workload);
            let rate = rate * (1.0 + 0.02 * random.bell());
            let count = (rate * 2.0) as u64;
            let histogram = histogram(mean, count * u64::from(rounds), &mut random);
            let spread = 0.004 + 0.02 * random.unit();
            judged.results.push(WorkloadResult {
                workload: workload.name.clone(),
                target: target.clone(),
                description: workload.describe(),
                rounds,
                rounds_void: 0,
                validity: Validity::Valid,
                doubts: vec![],
                estimates: estimates(
                    rate,
                    workload.block_size.0 as f64,
                    &histogram,
                    rounds,
                    spread,
                ),
                steadiness: Steadiness {
                    steady: rounds >= 5,
                    range: Some(0.04),
                    slope: Some(0.01),
                    reason: match rounds {
                        0..5 => format!("{rounds} of the 5 rounds that steadiness needs"),
                        _ => "range 4 % of the mean, slope 1 %".to_owned(),
                    },
                },
                limit: limit(workload),
                series: (1..=rounds)
                    .map(|round| {
                        (
                            round,
                            series(rate * workload.block_size.0 as f64, &mut random),
                        )
                    })
                    .collect(),
                latency: histogram,
            });
        }
    }
    for (slot, planned) in plan.order.iter().enumerate() {
        let workload = &plan.workloads[planned.workload].name;
        let target = &plan.targets[planned.target];
        let result = judged
            .results
            .iter()
            .find(|r| r.workload == *workload && r.target == *target)
            .unwrap();
        let wobble = 1.0 + 0.012 * random.bell();
        judged.samples.push(JudgedSample {
            workload: workload.clone(),
            target: target.clone(),
            round: planned.round,
            slot: slot as u32,
            validity: Validity::Valid,
            doubts: vec![],
            figures: result
                .estimates
                .iter()
                .map(|(metric, e)| (*metric, e.value * wobble))
                .collect(),
        });
        samples.push(Sample {
            workload: workload.clone(),
            target: target.clone(),
            round: planned.round,
            slot: slot as u32,
            started,
            wall: Nanos(2_300_000_000),
            outcome: Outcome::Completed,
            tool: "fio-3.33".to_owned(),
            workers: vec![],
            counters: Default::default(),
            file: None,
            series: vec![],
        });
    }
    let jobs = plan
        .workloads
        .iter()
        .filter_map(|one| one.fio())
        .map(|w| {
            (
                w.name.clone(),
                format!(
                    "; SYNTHETIC\n[{}]\nrw={}\nbs={}\niodepth={}\ndirect=1\n",
                    w.name,
                    w.pattern.fio(),
                    w.block_size.0,
                    w.queue_depth
                ),
            )
        })
        .collect();
    let run = Run {
        id: RunId(3),
        uid: "000102030405060708090a0b0c0d0e0f".to_owned(),
        assay_version: "0.1.0".to_owned(),
        started,
        ended: Some("2026-11-21T09:41:07Z".parse().unwrap()),
        state: RunState::Complete,
        origin: Origin::Measured,
        targets: plan.targets.iter().map(|name| target_of(name)).collect(),
        facts: facts(),
        remarks: vec!["SYNTHETIC figures, made from a formula to test the layout".to_owned()],
        ladder: None,
        plan,
    };
    Case {
        run,
        judged,
        samples,
        jobs,
    }
}

fn target_of(name: &str) -> TargetInfo {
    target(name)
}

impl Case {
    /// Adds a doubt to all samples of some workloads.
    pub fn doubt(mut self, code: &str, severity: Severity, which: impl Fn(&str) -> bool) -> Self {
        let doubt = Doubt {
            code: code.to_owned(),
            severity,
            evidence:
                "SYNTHETIC: of 16 requests asked for, 3.1 were in flight on average, and the \
                device saw 1.2"
                    .to_owned(),
            remedy:
                "Use an engine that submits without waiting (io_uring or libaio with direct=1)."
                    .to_owned(),
        };
        for sample in self
            .judged
            .samples
            .iter_mut()
            .filter(|s| which(&s.workload))
        {
            sample.doubts.push(doubt.clone());
            sample.validity = Validity::of(&sample.doubts);
        }
        for result in self
            .judged
            .results
            .iter_mut()
            .filter(|r| which(&r.workload))
        {
            let samples = result.rounds;
            result.doubts.push(CountedDoubt {
                doubt: doubt.clone(),
                samples,
            });
            result.validity = result
                .validity
                .max(Validity::of(std::slice::from_ref(&doubt)));
            if severity == Severity::Void {
                result.rounds_void = result.rounds;
                result.rounds = 0;
                result.estimates.clear();
                result.latency = Histogram::default();
                result.series.clear();
            }
        }
        self
    }

    /// Evaluates a criterion on the results.
    pub fn want(mut self, text: &str) -> Self {
        let criterion: assay_model::Criterion = text.parse().unwrap();
        for result in self
            .judged
            .results
            .iter()
            .filter(|r| r.workload == criterion.workload)
        {
            let value = result.estimates.get(&criterion.metric).copied();
            let holds = |v: f64| criterion.comparison.holds(v, criterion.threshold);
            let interval = value.and_then(|v| v.interval);
            self.judged.criteria.push(CriterionResult {
                criterion: criterion.clone(),
                target: result.target.clone(),
                value,
                met: value.is_some_and(|v| holds(v.value)),
                clear: interval.is_some_and(|i| holds(i.low) == holds(i.high)),
            });
        }
        self
    }
}

/// Compares this case with a case of the same plan and another seed.
pub fn compared(case: &Case, factor: f64) -> RunComparison {
    let mut random = Random(99);
    let mut rows = Vec::new();
    for result in &case.judged.results {
        for (metric, b) in &result.estimates {
            let ratio = factor * (1.0 + 0.05 * random.bell());
            let a = Estimate {
                value: b.value / ratio,
                interval: None,
                rounds: b.rounds,
            };
            let interval = b.interval.map(|i| Interval {
                low: ratio * 0.96,
                high: ratio * 1.04,
                confidence: i.confidence,
            });
            let good = |better: bool| {
                if better != metric.quantity.is_latency() {
                    Change::Better
                } else {
                    Change::Worse
                }
            };
            let verdict = match interval {
                Some(i) if i.low > 1.0 => good(true),
                Some(i) if i.high < 1.0 => good(false),
                _ => Change::Unclear,
            };
            rows.push(ComparisonRow {
                workload: result.workload.clone(),
                target: result.target.clone(),
                metric: *metric,
                a,
                b: *b,
                ratio,
                interval,
                verdict,
            });
        }
    }
    RunComparison {
        by_shape: false,
        factors: Vec::new(),
        requests: false,
        a: RunId(2),
        b: RunId(3),
        environment: vec![FactDifference {
            key: "disk.vda.scheduler".to_owned(),
            a: Some("mq-deadline".into()),
            b: Some("none".into()),
        }],
        cautions: vec![
            "the runs were made one after the other, not interleaved: what changed in \
            between is part of the ratio"
                .to_owned(),
        ],
        rows,
        only_a: vec![],
        only_b: vec!["read-1m-qd4 on /srv/other".to_owned()],
    }
}

/// Returns the built-in quick plan with a doubt and two criteria.
pub fn quick() -> Case {
    case(plan("quick"))
        .doubt("depth-not-reached", Severity::Suspect, |w| {
            w == "randread-4k-qd16"
        })
        .want("randwrite-4k-qd1-dsync.p99 <= 2ms")
        .want("randread-4k-qd1.iops >= 1k")
}

/// Returns the built-in matrix, with some suspect workloads and a void one.
pub fn matrix() -> Case {
    case(plan("matrix"))
        .doubt("cache-hit-read", Severity::Suspect, |w| {
            w.starts_with("read-64k")
        })
        .doubt("cut-short", Severity::Void, |w| w == "write-1m-qd16")
        .want("randread-4k-qd16.p99 <= 2ms")
}
