use super::*;
use assay_model::FactKind;
use assay_model::Facts;
use assay_model::sample::{Operation, Rate, RatePoint};

/// Returns the evidence of a normal workload at depth 16, to which no rule applies.
fn plain() -> LimitEvidence<'static> {
    LimitEvidence {
        rounds: 5,
        in_flight: 16,
        block_size: 4096,
        iops: 71_234.0,
        bytes_per_s: 71_234.0 * 4096.0,
        read_per_s: 71_234.0 * 4096.0,
        read_iops: 71_234.0,
        latency: Some(220_000.0),
        job_cpu: Some((0.2, 0.3)),
        machine_busy: Some(0.4),
        busiest_cpu: Some(0.6),
        steal: Some(0.01),
        device_busy: Some(0.7),
        device_queue: Some(9.0),
        device_share: Some(1.1),
        disks: vec!["sda".to_owned()],
        ..LimitEvidence::default()
    }
}

fn sibling(in_flight: u32, block_size: u64, iops: f64, variation: Option<f64>) -> SiblingResult {
    SiblingResult {
        workload: format!("randread-{block_size}-qd{in_flight}"),
        in_flight,
        block_size,
        iops,
        variation,
    }
}

fn series(rates: &[f64]) -> &'static [RatePoint] {
    let point = |(i, &per_s): (usize, &f64)| RatePoint {
        at_ms: i as u64 * 300,
        rates: [(
            Operation::Read,
            Rate {
                per_s,
                bytes_per_s: 0.0,
            },
        )]
        .into(),
    };
    Vec::leak(rates.iter().enumerate().map(point).collect())
}

fn facts(entries: &[(&str, serde_json::Value)]) -> &'static Facts {
    let mut facts = Facts::default();
    for (key, value) in entries {
        facts.known(*key, value.clone(), FactKind::Runtime, "test");
    }
    Box::leak(Box::new(facts))
}

/// One constructed case for every decision, and one just below its threshold.
#[test]
fn decision_table() {
    use LimitKind::*;
    let flat = [
        3000.0, 3010.0, 2995.0, 3002.0, 2998.0, 3001.0, 2999.0, 3000.0,
    ];
    let with = |change: &dyn Fn(&mut LimitEvidence<'static>)| {
        let mut evidence = plain();
        change(&mut evidence);
        evidence
    };
    let full = |e: &mut LimitEvidence| (e.device_busy, e.device_queue) = (Some(0.97), Some(15.2));
    let table: Vec<(&str, LimitEvidence, LimitKind, &str)> = vec![
        ("nothing conspicuous", plain(), Unknown, "device busy 70 %"),
        ("no sample", with(&|e| e.rounds = 0), Unknown, "no sample"),
        (
            "CPU heat",
            with(&|e| e.throttle_events = Some(3)),
            Throttling,
            "3 times",
        ),
        (
            "CPU cool",
            with(&|e| e.throttle_events = Some(0)),
            Unknown,
            "",
        ),
        (
            "hot drive",
            with(&|e| e.celsius = Some((81.0, 80.0))),
            Throttling,
            "81 °C",
        ),
        (
            "warm drive",
            with(&|e| e.celsius = Some((79.0, 80.0))),
            Unknown,
            "",
        ),
        (
            "tmpfs",
            with(&|e| e.memory_file_system = true),
            Memory,
            "memory",
        ),
        (
            "cached",
            with(&|e| e.device_share = Some(0.02)),
            Memory,
            "2 %",
        ),
        (
            "mostly device",
            with(&|e| e.device_share = Some(0.6)),
            Unknown,
            "",
        ),
        ("steal", with(&|e| e.steal = Some(0.25)), Steal, "25 %"),
        ("little steal", with(&|e| e.steal = Some(0.09)), Unknown, ""),
        (
            "flush",
            with(&|e| e.flush = Some((455_000.0, 460_000.0))),
            Flush,
            "99 %",
        ),
        (
            "cheap flush",
            with(&|e| e.flush = Some((100_000.0, 300_000.0))),
            Unknown,
            "",
        ),
        (
            "fio's CPU",
            with(&|e| e.job_cpu = Some((0.3, 0.65))),
            ToolCpu,
            "95 %",
        ),
        (
            "fio not quite",
            with(&|e| e.job_cpu = Some((0.3, 0.55))),
            Unknown,
            "",
        ),
        (
            "all CPUs",
            with(&|e| e.machine_busy = Some(0.97)),
            MachineCpu,
            "all CPUs",
        ),
        (
            "one CPU",
            with(&|e| e.busiest_cpu = Some(0.98)),
            MachineCpu,
            "one CPU",
        ),
        (
            "control group",
            with(&|e| {
                e.facts = Some(facts(&[(
                    "cgroup.io",
                    serde_json::json!(["io.max 8:0 rbps=max wbps=max riops=71500 wiops=10"]),
                )]));
            }),
            RateLimit,
            "riops=71500",
        ),
        (
            "control group far away",
            with(&|e| {
                e.facts = Some(facts(&[(
                    "cgroup.io",
                    serde_json::json!(["io.max 8:0 riops=100000"]),
                )]));
            }),
            Unknown,
            "",
        ),
        (
            "same IOPS at 4k and 64k",
            with(&|e| {
                e.iops = 3140.0;
                e.series = vec![series(&flat)];
                e.sizes = vec![sibling(16, 65_536, 3130.0, Some(0.01))];
            }),
            RateLimit,
            "another block size",
        ),
        (
            "same IOPS, but they jump about",
            with(&|e| {
                e.iops = 3140.0;
                e.series = vec![series(&[2000.0, 4000.0, 3000.0, 3500.0])];
                e.sizes = vec![sibling(16, 65_536, 3130.0, Some(0.01))];
            }),
            Unknown,
            "",
        ),
        (
            "round and flat",
            with(&|e| (e.iops, e.series) = (3000.6, vec![series(&flat)])),
            RateLimit,
            "round number",
        ),
        (
            "flat and not round",
            with(&|e| (e.iops, e.series) = (3140.0, vec![series(&flat)])),
            Unknown,
            "",
        ),
        (
            "burst credit",
            with(&|e| {
                e.series = vec![series(&[
                    9000.0, 9010.0, 8990.0, 9000.0, 9005.0, 5000.0, 3000.0, 3001.0, 2999.0, 3000.0,
                ])];
            }),
            RateLimit,
            "burst credit",
        ),
        (
            "a write cache that fills looks the same",
            with(&|e| {
                e.writes = true;
                e.series = vec![series(&[
                    9000.0, 9010.0, 8990.0, 9000.0, 9005.0, 5000.0, 3000.0, 3001.0, 2999.0, 3000.0,
                ])];
            }),
            Unknown,
            "",
        ),
        (
            "SATA",
            with(&|e| {
                e.read_per_s = 545e6;
                e.facts = Some(facts(&[("disk.sda.sata_speed", "6.0 Gbps".into())]));
            }),
            Link,
            "SATA 6.0 Gbps",
        ),
        (
            "PCIe",
            with(&|e| {
                e.read_per_s = 3.5e9;
                e.facts = Some(facts(&[
                    ("disk.sda.pcie_speed", "8.0 GT/s PCIe".into()),
                    ("disk.sda.pcie_width", 4.into()),
                ]));
            }),
            Link,
            "PCIe 8 GT/s × 4",
        ),
        (
            "two disks have two links",
            with(&|e| {
                e.read_per_s = 545e6;
                e.disks.push("sdb".to_owned());
                e.facts = Some(facts(&[("disk.sda.sata_speed", "6.0 Gbps".into())]));
            }),
            Unknown,
            "",
        ),
        (
            "one at a time",
            with(&|e| (e.in_flight, e.iops, e.latency) = (1, 9_500.0, Some(100_000.0))),
            OneAtATime,
            "100 µs",
        ),
        (
            "one at a time on a busy machine",
            with(&|e| {
                (e.in_flight, e.iops, e.latency) = (1, 9_500.0, Some(100_000.0));
                e.machine_busy = Some(1.0);
            }),
            OneAtATime,
            "makes each slower",
        ),
        (
            "one at a time, but most time is spent elsewhere",
            with(&|e| (e.in_flight, e.iops, e.latency) = (1, 5_000.0, Some(100_000.0))),
            Unknown,
            "",
        ),
        ("full queue", with(&full), Device, "was not measured"),
        (
            "full queue, depth does not help",
            with(&|e| {
                full(e);
                e.depths = vec![
                    sibling(32, 4096, 73_000.0, None),
                    sibling(1, 4096, 9_000.0, None),
                ];
            }),
            Device,
            "does not help",
        ),
        (
            "full queue, depth helps",
            with(&|e| {
                full(e);
                e.depths = vec![sibling(32, 4096, 120_000.0, None)];
            }),
            Depth,
            "120,000",
        ),
        (
            "busy, but requests wait in software",
            with(&|e| (e.device_busy, e.device_queue) = (Some(0.97), Some(3.0))),
            Unknown,
            "3.0 of 16",
        ),
    ];
    for (name, evidence, expected, words) in table {
        let limit = find_limit(&evidence);
        assert_eq!(limit.what, expected, "{name}: {}", limit.evidence);
        assert!(limit.evidence.contains(words), "{name}: {}", limit.evidence);
    }
}

#[test]
fn imported_results_without_counters_still_have_an_answer() {
    let bare = LimitEvidence {
        rounds: 1,
        in_flight: 1,
        iops: 2_000.0,
        latency: Some(480_000.0),
        ..LimitEvidence::default()
    };
    assert_eq!(find_limit(&bare).what, LimitKind::OneAtATime);
    let deep = LimitEvidence {
        in_flight: 8,
        ..bare
    };
    let limit = find_limit(&deep);
    assert_eq!(limit.what, LimitKind::Unknown);
    assert!(limit.evidence.contains("not known"), "{}", limit.evidence);
}

/// Even if one of five rounds is slow, reported rate × reported latency must be one I/O in flight.
#[test]
fn rate_and_latency_of_one_request_at_a_time_make_one_in_flight() {
    use assay_model::sample::{Latency, Operations, Outcome, Worker};
    use assay_model::{Nanos, Sample};
    let sample = |(round, per_s): (usize, &f64)| {
        let mean = 0.97e9 / per_s;
        let done = Operations {
            count: (per_s * 5.0) as u64,
            runtime: Nanos(5_000_000_000),
            per_s: *per_s,
            bytes_per_s: per_s * 4096.0,
            lat: Latency {
                n: 1,
                mean,
                ..Latency::default()
            },
            clat: Latency {
                n: 1,
                mean,
                ..Latency::default()
            },
            ..Operations::default()
        };
        Sample {
            workload: "randread-4k-qd1".to_owned(),
            target: "/srv".to_owned(),
            round: round as u32,
            slot: round as u32,
            started: jiff::Timestamp::UNIX_EPOCH,
            wall: Nanos(5_000_000_000),
            outcome: Outcome::Completed,
            tool: "fio-3.33".to_owned(),
            workers: vec![Worker {
                operations: [(Operation::Read, done)].into(),
                ..Worker::default()
            }],
            counters: Default::default(),
            file: None,
            series: vec![],
        }
    };
    for rates in [
        &[9800.0, 9700.0, 188.0, 9900.0, 9750.0][..],
        &[9800.0, 9800.0],
        &[100.0, 1_000_000.0],
        &[0.5, 9000.0, 9000.0],
    ] {
        let samples: Vec<Sample> = rates.iter().enumerate().map(sample).collect();
        let sides: Vec<_> = samples
            .iter()
            .map(|sample| crate::sample_figures::sum_workers(&sample.workers))
            .collect();
        let both: Vec<_> = samples.iter().zip(&sides).collect();
        let facts = Facts::default();
        let evidence = LimitEvidence {
            in_flight: 1,
            ..LimitEvidence::collect(None, None, &facts, &both)
        };
        let in_flight = evidence.iops * evidence.latency.unwrap() / 1e9;
        assert!((in_flight - 0.97).abs() < 0.001, "{rates:?}: {in_flight}");
        assert_eq!(
            find_limit(&evidence).what,
            LimitKind::OneAtATime,
            "{rates:?}"
        );
    }
}
