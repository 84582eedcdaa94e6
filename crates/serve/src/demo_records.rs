//! Runs of invented machines. Their figures come from a formula, and a remark in each run says this.

use assay_model::plan::{Plan, PlanError, PlanSpec, Settings};
use assay_model::run::{Origin, RunState};
use assay_model::sample::Latency;
use assay_model::sample::{Counters, Operation, Operations, Outcome, Worker};
use assay_model::target::TargetKind;
use assay_model::workload::Engine;
use assay_model::{Bytes, FactKind, Facts, Histogram, Nanos, Run, RunId, Sample, TargetInfo};
use jiff::{SignedDuration, Timestamp};

/// Remark that every invented record contains.
pub(crate) const REMARK: &str =
    "made up by `assay lab demo --serve` from a formula; nobody measured it";

/// Duration of each invented sample.
const SAMPLE: Nanos = Nanos(2_000_000_000);

/// Generator of random numbers (splitmix64). Its seed is fixed, so that the fleet is always the same.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number between 0 and 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a random number with an approximately normal distribution, with mean 0 and standard deviation 1.
    pub(crate) fn bell(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    /// Returns a random uid of 32 hexadecimal digits.
    pub(crate) fn uid(&mut self) -> String {
        format!("{:016x}{:016x}", self.next(), self.next())
    }
}

/// Returns the plan that the machines run every night.
pub(crate) fn nightly_plan(target: &str, seed: u64) -> Result<Plan, PlanError> {
    let text = r#"
name = "nightly"
title = "Does the storage still do what it did?"
rounds = 3
runtime = "2s"
file_size = "1G"
want = ["randread-4k-qd1.p99 <= 450us"]

[[workload]]
name = "randread-4k-qd1"
pattern = "randread"
block_size = "4k"
queue_depth = 1

[[workload]]
name = "randread-4k-qd32"
pattern = "randread"
block_size = "4k"
queue_depth = 32
"#;
    let settings = Settings {
        targets: vec![target.to_owned()],
        engine: Engine::IoUring,
        seed,
    };
    PlanSpec::from_toml(text, "nightly.toml")?.resolve(&settings)
}

/// Speed of a machine's storage, from which the figures are computed.
#[derive(Clone, Copy)]
pub(crate) struct Speed {
    /// Mean latency with one read in flight, in nanoseconds.
    pub(crate) alone_ns: f64,
    /// Mean latency with 32 reads in flight, in nanoseconds.
    pub(crate) crowded_ns: f64,
}

/// Fills a histogram with `count` latencies from an approximately log-normal distribution. `mean` is in nanoseconds.
pub(crate) fn fill_histogram(mean: f64, count: u64, random: &mut Random) -> Histogram {
    const DRAWN: u64 = 600;
    let mut histogram = Histogram::default();
    for drawn in 0..DRAWN {
        let tail = if random.unit() > 0.985 {
            1.5 + 2.0 * random.unit()
        } else {
            1.0
        };
        let nanos = mean * (random.bell() * 0.2 - 0.03).exp() * tail;
        // As coarse as fio's: 64 bins for each power of two.
        let step = (nanos / 64.0).log2().floor().exp2().max(1.0);
        histogram.record(
            ((nanos / step).round() * step) as u64,
            count / DRAWN + u64::from(drawn < count % DRAWN),
        );
    }
    histogram
}

/// Builds the operations of one worker from a mean latency in nanoseconds and a queue depth.
pub(crate) fn fill_operations(mean: f64, in_flight: f64, random: &mut Random) -> Operations {
    let rate = in_flight / mean * 1e9;
    let seconds = SAMPLE.0 as f64 / 1e9;
    let count = (rate * seconds) as u64;
    let histogram = fill_histogram(mean, count, random);
    let count = histogram.count();
    let mean = histogram.mean().unwrap_or(mean);
    let per_s = count as f64 / seconds;
    let latency = Latency {
        n: count,
        min: histogram.percentile(0.01).unwrap_or(0),
        max: histogram.percentile(100.0).unwrap_or(0),
        mean,
        stddev: mean * 0.25,
        percentiles: Vec::new(),
        histogram,
    };
    Operations {
        count,
        bytes: Bytes(count * 4096),
        runtime: SAMPLE,
        per_s,
        bytes_per_s: per_s * 4096.0,
        clat: latency.clone(),
        lat: latency,
        ..Operations::default()
    }
}

/// Builds a sample of a workload.
pub(crate) fn build_sample(
    names: [&str; 2],
    [round, slot]: [u32; 2],
    started: Timestamp,
    operations: Operations,
) -> Sample {
    let worker = Worker {
        name: names[0].to_owned(),
        runtime: SAMPLE,
        usr_cpu: 8.0,
        sys_cpu: 14.0,
        ..Worker::default()
    };
    Sample {
        workload: names[0].to_owned(),
        target: names[1].to_owned(),
        round,
        slot,
        started,
        wall: SAMPLE,
        outcome: Outcome::Completed,
        tool: "fio-3.33".to_owned(),
        workers: vec![worker.with(Operation::Read, operations)],
        counters: Counters::default(),
        file: None,
        series: Vec::new(),
    }
}

/// Returns the description of a directory as a target.
pub(crate) fn describe_target(name: &str) -> TargetInfo {
    TargetInfo {
        name: name.to_owned(),
        kind: TargetKind::Directory,
        fs_type: Some("ext4".to_owned()),
        mount_point: Some("/".to_owned()),
        mount_options: Some("rw,relatime".to_owned()),
        mount_source: Some("/dev/md0".to_owned()),
        devices: vec!["md0".to_owned()],
        disks: vec!["sda".to_owned(), "sdb".to_owned()],
        size: Bytes(1 << 30),
        free: Some(Bytes(400 << 30)),
    }
}

/// Returns facts in the form in which a run stores them.
pub(crate) fn describe_facts(cpu: &str, kernel: &str) -> Facts {
    let mut facts = Facts::default();
    facts.known("cpu.model", cpu, FactKind::Runtime, "/proc/cpuinfo:2");
    facts.known(
        "kernel.release",
        kernel,
        FactKind::Runtime,
        "/proc/sys/kernel/osrelease",
    );
    facts
}

/// Builds a run of the nightly plan with its samples.
pub(crate) fn build_run(
    plan: Plan,
    started: Timestamp,
    facts: Facts,
    speed: Speed,
    random: &mut Random,
) -> (Run, Vec<Sample>) {
    // Nights differ more than the rounds of one night.
    let night = (random.bell() * 0.012).exp();
    let mut samples = Vec::new();
    for (slot, planned) in plan.order.iter().enumerate() {
        let workload = &plan.workloads[planned.workload].name;
        let (mean, in_flight) = match workload.contains("qd32") {
            true => (speed.crowded_ns, 32.0),
            false => (speed.alone_ns, 1.0),
        };
        let mean = mean * night * (random.bell() * 0.006).exp();
        let began = started + SignedDuration::from_secs(3 * slot as i64);
        let target = &plan.targets[planned.target];
        let operations = fill_operations(mean, in_flight, random);
        let place = [planned.round, u32::try_from(slot).unwrap_or(0)];
        samples.push(build_sample([workload, target], place, began, operations));
    }
    let run = Run {
        id: RunId(0),
        uid: random.uid(),
        assay_version: env!("CARGO_PKG_VERSION").to_owned(),
        started,
        ended: Some(started + SignedDuration::from_secs(3 * samples.len() as i64)),
        state: RunState::Complete,
        origin: Origin::Measured,
        targets: plan
            .targets
            .iter()
            .map(|name| describe_target(name))
            .collect(),
        plan,
        facts,
        remarks: vec![REMARK.to_owned()],
        ladder: None,
    };
    (run, samples)
}
