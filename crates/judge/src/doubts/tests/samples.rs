//! Tests the doubts about a correct sample of assay, of which each test changes one property.

use super::*;
use assay_model::sample::{
    ArcDelta, Counters, CpuDelta, DeviceDelta, FioJob, Latency, Operation, Operations, Rate,
    RatePoint, Throttle, Worker,
};
use assay_model::target::{FileState, TargetInfo, TargetKind};
use assay_model::{Bytes, FactKind, Facts, Nanos};
use std::collections::BTreeMap;

/// A correct sample of assay; each test changes one property.
struct Case {
    options: BTreeMap<String, String>,
    job: Worker,
    counters: Counters,
    target: TargetInfo,
    file: FileState,
    facts: Facts,
    series: Vec<RatePoint>,
}

fn case(rw: &str) -> Case {
    let options = [
        ("rw", rw),
        ("ioengine", "io_uring"),
        ("iodepth", "16"),
        ("direct", "1"),
        ("bs", "4096"),
        ("size", "1073741824"),
        ("numjobs", "1"),
        ("time_based", "1"),
        ("runtime", "1500ms"),
        ("ramp_time", "250ms"),
        ("randrepeat", "0"),
        ("randseed", "7"),
        ("refill_buffers", "1"),
        ("allow_file_create", "0"),
        ("fallocate", "none"),
        ("filename", "/srv/.assay-scratch"),
    ];
    let io = Operations {
        bytes: Bytes(60_000 * 4096),
        count: 60_000,
        runtime: Nanos(1_501_000_000),
        per_s: 40_000.0,
        bytes_per_s: 163_840_000.0,
        slat: Latency {
            n: 60_000,
            mean: 5_000.0,
            max: 90_000,
            ..Latency::default()
        },
        clat: Latency {
            n: 60_000,
            mean: 395_000.0,
            max: 9_000_000,
            ..Latency::default()
        },
        lat: Latency {
            n: 60_000,
            mean: 400_000.0,
            max: 9_000_000,
            ..Latency::default()
        },
        ..Operations::default()
    };
    let reads = rw.contains("read");
    let kind = match reads {
        true => Operation::Read,
        false => Operation::Write,
    };
    Case {
        options: options.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        job: Worker {
            name: "w".to_owned(),
            runtime: Nanos(1_500_000_000),
            operations: [(kind, io)].into(),
            usr_cpu: 8.0,
            sys_cpu: 40.0,
            fio: FioJob {
                iodepth_level: [("1".to_owned(), 0.1), ("16".to_owned(), 99.9)].into(),
                ..FioJob::default()
            },
            http: None,
        },
        counters: Counters {
            devices: vec![DeviceDelta {
                name: "vda".to_owned(),
                read_bytes: Bytes(if reads { 70_000 * 4096 } else { 0 }),
                write_bytes: Bytes(if reads { 0 } else { 70_000 * 4096 }),
                ..DeviceDelta::default()
            }],
            ..Counters::default()
        },
        target: TargetInfo {
            name: "/srv".to_owned(),
            kind: TargetKind::Directory,
            fs_type: Some("ext4".to_owned()),
            mount_point: Some("/".to_owned()),
            mount_options: None,
            mount_source: Some("/dev/vda".to_owned()),
            devices: vec!["vda".to_owned()],
            disks: vec!["vda".to_owned()],
            size: Bytes(1 << 30),
            free: None,
        },
        file: FileState {
            size: Bytes(1 << 30),
            allocated: Bytes(1 << 30),
            written: Some(Bytes(1 << 30)),
            unwritten: Some(Bytes(0)),
            compress_ratio: Some(1.0),
        },
        facts: Facts::default(),
        series: Vec::new(),
    }
}

impl Case {
    fn set(mut self, key: &str, value: &str) -> Self {
        self.options.insert(key.to_owned(), value.to_owned());
        self
    }
    fn with(mut self, spoil: impl FnOnce(&mut Self)) -> Self {
        spoil(&mut self);
        self
    }
    fn doubts(&self) -> Vec<String> {
        let all = self.whole();
        all.iter()
            .map(|d| format!("{}:{:?}", d.code, d.severity).to_lowercase())
            .collect()
    }
    fn whole(&self) -> Vec<Doubt> {
        let mut job = self.job.clone();
        job.fio.options = self.options.clone();
        let options = JobOptions::from_result(&job);
        apply_rules(&DoubtEvidence {
            options: Some(&options),
            results: std::slice::from_ref(&job),
            series: &self.series,
            counters: Some(&self.counters),
            target: Some(&self.target),
            file: Some(&self.file),
            facts: Some(&self.facts),
            source: EvidenceOrigin::Measured,
            ..DoubtEvidence::default()
        })
    }
    fn io(&mut self) -> &mut Operations {
        self.job.operations.values_mut().next().unwrap()
    }
}

#[test]
fn a_correct_sample_has_no_doubt() {
    for rw in ["randread", "randwrite", "read", "write"] {
        assert_eq!(case(rw).doubts(), [""; 0], "{rw}");
    }
    let durable = case("randwrite")
        .set("sync", "dsync")
        .set("ioengine", "psync")
        .set("iodepth", "1");
    assert_eq!(durable.doubts(), [""; 0]);
    let flushed = case("write").set("direct", "0").set("fsync", "1");
    assert_eq!(flushed.doubts(), [""; 0]);
    let unknown = case("randread").with(|c| {
        c.counters = Counters::default();
        c.target.devices.clear();
        c.file = FileState::default();
    });
    assert_eq!(unknown.doubts(), [""; 0]);
}

#[test]
fn the_device_tells_what_a_cache_did() {
    let device = |c: &mut Case, bytes| {
        c.counters.devices[0].read_bytes = Bytes(bytes);
        c.counters.devices[0].write_bytes = Bytes(bytes);
    };
    assert_eq!(
        case("randread").with(|c| device(c, 0)).doubts(),
        ["cache-hit-read:void"]
    );
    let most = 60_000 * 4096 / 4 * 3;
    assert_eq!(
        case("randread").with(|c| device(c, most)).doubts(),
        ["cache-hit-read:suspect"]
    );
    assert_eq!(
        case("randwrite").with(|c| device(c, 0)).doubts(),
        ["page-cache-write:void"]
    );
    let buffered = case("read").set("direct", "0");
    assert_eq!(buffered.doubts(), [""; 0], "the device delivered all of it");
    assert_eq!(
        buffered.with(|c| device(c, 4096)).doubts(),
        ["page-cache-read:void"]
    );
    let arc = case("randread").with(|c| {
        c.target.fs_type = Some("zfs".to_owned());
        c.counters.devices.clear();
        c.facts
            .known("zfs.version", "2.3.1", FactKind::Runtime, "test");
        c.counters.arc = Some(ArcDelta {
            demand_data_hits: 59_000,
            demand_data_misses: 1_000,
            ..ArcDelta::default()
        });
    });
    assert_eq!(arc.doubts(), ["cache-hit-read:void"]);
}

#[test]
fn the_file_and_the_place() {
    let sparse = |c: &mut Case| c.file.written = Some(Bytes(0));
    assert_eq!(case("randread").with(sparse).doubts(), ["sparse-file:void"]);
    assert_eq!(
        case("randwrite").with(sparse).doubts(),
        ["sparse-file:suspect"]
    );
    let zeroes = |c: &mut Case| c.file.compress_ratio = Some(40.0);
    assert_eq!(
        case("randread").with(zeroes).doubts(),
        ["compressible-data:suspect"]
    );
    let ram = |c: &mut Case| {
        c.target.fs_type = Some("tmpfs".to_owned());
        c.counters.devices.clear();
    };
    assert_eq!(case("randread").with(ram).doubts(), ["tmpfs:void"]);
    let unmounted = |c: &mut Case| c.target.name = "/mnt/tank".to_owned();
    assert_eq!(
        case("randread").with(unmounted).doubts(),
        ["wrong-mount:suspect"]
    );
}

#[test]
fn zfs_and_o_direct() {
    let zfs = |version: Option<&'static str>| {
        move |c: &mut Case| {
            c.target.fs_type = Some("zfs".to_owned());
            if let Some(version) = version {
                c.facts
                    .known("zfs.version", version, FactKind::Runtime, "test");
            }
        }
    };
    for (version, expected) in [
        (None, &["direct-ignored-zfs:suspect"][..]),
        (Some("2.1.11-1"), &["direct-ignored-zfs:suspect"]),
        (Some("zfs-2.3.1"), &[]),
    ] {
        assert_eq!(
            case("randread").with(zfs(version)).doubts(),
            expected,
            "{version:?}"
        );
    }
    let off = |c: &mut Case| {
        c.facts
            .known("zfs.param.zfs_dio_enabled", 0, FactKind::Runtime, "test");
    };
    let doubts = case("randread").with(zfs(Some("2.3.1"))).with(off).doubts();
    assert_eq!(doubts, ["direct-ignored-zfs:suspect"]);
    let durable = case("randwrite").set("sync", "dsync").with(zfs(None));
    assert_eq!(durable.doubts(), [""; 0]);
}

#[test]
fn time_heat_and_the_processor() {
    let took = |ms: u64| move |c: &mut Case| c.io().runtime = Nanos(ms * 1_000_000);
    assert_eq!(
        case("randread").with(took(2100)).doubts(),
        ["overrun:suspect"]
    );
    assert_eq!(case("randread").with(took(1700)).doubts(), [""; 0]);
    assert_eq!(
        case("randread").with(took(900)).doubts(),
        ["cut-short:suspect"]
    );
    let hot = |c: &mut Case| {
        c.counters.throttle = Some(Throttle {
            nvme_celsius: Some((85.0, 84.0)),
            ..Throttle::default()
        });
    };
    assert_eq!(case("randread").with(hot).doubts(), ["throttled:suspect"]);
    let others = |user: f64| {
        move |c: &mut Case| {
            c.counters.elapsed = Nanos(2_000_000_000);
            c.counters.tool_cpu = Some(Nanos(200_000_000));
            c.counters.cpu = Some(CpuDelta {
                cpus: 2,
                user,
                ..CpuDelta::default()
            });
        }
    };
    let doubts = case("randread").with(others(0.5)).doubts();
    assert_eq!(doubts, ["foreign-load:suspect"]);
    assert_eq!(case("randread").with(others(0.15)).doubts(), [""; 0]);
    let busy = |c: &mut Case| c.job.sys_cpu = 91.0;
    assert_eq!(case("randread").with(busy).doubts(), ["tool-cpu:suspect"]);
    let refill = |c: &mut Case| c.job.usr_cpu = 52.0;
    assert_eq!(
        case("randwrite").with(refill).doubts(),
        ["tool-cpu:suspect"]
    );
    assert_eq!(case("randread").with(refill).doubts(), [""; 0]);
    let falling = |c: &mut Case| {
        c.series = (0..12)
            .map(|i| RatePoint {
                at_ms: i * 100,
                rates: [(
                    Operation::Write,
                    Rate {
                        per_s: 0.0,
                        bytes_per_s: if i < 6 { 1e9 } else { 1e8 },
                    },
                )]
                .into(),
            })
            .collect();
    };
    assert_eq!(case("randwrite").with(falling).doubts(), ["burst:suspect"]);
}

/// Sets the device counters of a case to the load's bytes plus I/O of other programs. The counters cover 1.75 s.
fn beside(reads: (u64, u64), writes: (u64, u64)) -> impl Fn(&mut Case) {
    move |c: &mut Case| {
        c.counters.elapsed = Nanos(1_750_000_000);
        let device = &mut c.counters.devices[0];
        device.busy_ms = 1_700;
        device.read_bytes.0 += reads.1;
        device.reads = 70_000 * u64::from(device.read_bytes.0 > reads.1) + reads.0;
        device.write_bytes.0 += writes.1;
        device.writes = 70_000 * u64::from(device.write_bytes.0 > writes.1) + writes.0;
    }
}

#[test]
fn other_programs_on_the_same_device() {
    let nobody = beside((0, 0), (0, 0));
    let reader = beside((2_000, 200 << 20), (0, 0));
    let writer = beside((0, 0), (2_000, 200 << 20));
    let many_small = beside((0, 0), (20_000, 20_000 * 4096));
    let log = beside((0, 0), (40, 40 * 4096));
    for rw in ["randread", "randwrite"] {
        assert_eq!(case(rw).with(&nobody).doubts(), [""; 0], "{rw}");
        for others in [&reader as &dyn Fn(&mut Case), &writer] {
            assert_eq!(
                case(rw).with(others).doubts(),
                ["foreign-io:suspect"],
                "{rw}"
            );
        }
        assert_eq!(case(rw).with(&log).doubts(), [""; 0], "{rw}");
    }
    // Requests count where the load makes none in this direction.
    let doubts = case("randread").with(&many_small).doubts();
    assert_eq!(doubts, ["foreign-io:suspect"]);
    // An idle device delays nobody, and a file system that copies on write multiplies the load's own bytes.
    let idle = |c: &mut Case| c.counters.devices[0].busy_ms = 100;
    assert_eq!(case("randread").with(&writer).with(idle).doubts(), [""; 0]);
    let copies = |c: &mut Case| c.target.fs_type = Some("btrfs".to_owned());
    assert_eq!(
        case("randwrite").with(&writer).with(copies).doubts(),
        [""; 0]
    );
    // A journal writes as much as the load again.
    let flushed = case("randwrite").set("fsync", "1").with(&writer);
    let flushed = flushed.with(|c: &mut Case| {
        let flushes = Operations {
            count: 60_000,
            ..Operations::default()
        };
        c.job.operations.insert(Operation::Flush, flushes);
    });
    assert!(
        !flushed
            .doubts()
            .iter()
            .any(|doubt| doubt.starts_with("foreign-io"))
    );
    // Of a mirror every byte is written twice.
    let mirror = |c: &mut Case| {
        let twin = c.counters.devices[0].clone();
        c.counters.devices.push(twin);
    };
    let mirrored = case("randwrite").with(&writer).with(mirror).doubts();
    assert!(
        !mirrored.contains(&"foreign-io:suspect".to_owned()),
        "{mirrored:?}"
    );
}

#[test]
fn errors_and_limits_of_the_result() {
    let failed = |c: &mut Case| c.job.fio.error = 5;
    assert_eq!(case("randread").with(failed).doubts(), ["io-error:void"]);
    let short = |c: &mut Case| c.io().short = 3;
    assert_eq!(case("randread").with(short).doubts(), ["short-io:suspect"]);
    // Flushes counted as short I/O.
    let flushed = case("randwrite").set("fdatasync", "1").with(short).doubts();
    assert!(
        !flushed.contains(&"short-io:suspect".to_owned()),
        "{flushed:?}"
    );
    let stall = |c: &mut Case| c.io().clat.max = 20_000_000_000;
    assert_eq!(
        case("randread").with(stall).doubts(),
        ["histogram-capped:suspect"]
    );
    let nothing = |c: &mut Case| c.job.operations.clear();
    assert_eq!(case("randread").with(nothing).doubts(), ["no-io:void"]);
    let alone = |c: &mut Case| c.job.fio.iodepth_level = [("1".to_owned(), 99.0)].into();
    assert_eq!(
        case("randread").with(alone).doubts(),
        ["depth-not-reached:void"]
    );
    let blocking = |c: &mut Case| c.io().slat.mean = 24_000.0;
    assert_eq!(
        case("randwrite").with(blocking).doubts(),
        ["depth-not-reached:suspect"]
    );
    // The remedy for a direct load does not recommend direct=1.
    for (direct, recommended) in [("1", false), ("0", true)] {
        let spoilt = [
            case("randread").set("direct", direct).with(alone),
            case("randread").set("direct", direct).with(blocking),
        ];
        for one in spoilt {
            let doubts = one.whole();
            let depth = doubts
                .iter()
                .find(|doubt| doubt.code == "depth-not-reached");
            let remedy = &depth.unwrap().remedy;
            assert_eq!(remedy.contains("direct=1"), recommended, "{remedy}");
        }
    }
    let grouped = case("randread")
        .set("numjobs", "4")
        .with(|c| c.job.runtime = Nanos(6_000_000_000));
    assert_eq!(grouped.doubts(), ["grouped-jobs:suspect"]);
}
