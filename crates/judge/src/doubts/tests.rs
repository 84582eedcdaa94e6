use super::*;
use assay_fio::options::command_line;
use assay_model::doubt::Severity;
use std::collections::BTreeSet;

fn lint(text: &str) -> Vec<Doubt> {
    let calls = command_line(text).unwrap();
    calls
        .iter()
        .flat_map(|call| judge_options(&call.jobs))
        .flatten()
        .collect()
}

fn codes_of(doubts: &[Doubt]) -> Vec<&str> {
    doubts.iter().map(|doubt| doubt.code.as_str()).collect()
}

/// Judges a correct command line with one change.
fn lint_with(change: &str) -> Vec<Doubt> {
    lint(&format!(
        "fio --name=t --filename=/srv/t --size=4G --direct=1 --ioengine=libaio --iodepth=16 \
         --rw=randwrite --bs=4k --time_based --runtime=60 --ramp_time=5 --refill_buffers \
         --randrepeat=0 {change}"
    ))
}

#[test]
fn published_commands_are_doubted_for_the_right_reasons() {
    let text = include_str!("../../fixtures/commands/seeds.txt");
    let mut lines = text.lines();
    let mut seen = 0;
    while let (Some(command), Some(expected)) = (lines.next(), lines.next()) {
        let doubts = lint(command);
        let expected: Vec<&str> = expected.split_whitespace().collect();
        assert_eq!(codes_of(&doubts), expected, "{command}");
        seen += 1;
    }
    assert_eq!(seen, 10);
}

#[test]
fn correct_commands_pass_without_a_word() {
    for command in include_str!("../../fixtures/commands/correct.txt").lines() {
        assert_eq!(lint(command), [], "{command}");
    }
}

#[test]
fn each_option_that_spoils_a_command_is_found() {
    for (change, expected) in [
        ("", &[][..]),
        ("--ioengine=psync", &["depth-not-reached"]),
        ("--ioengine=null", &["null-engine"]),
        ("--filename=/dev/shm/x", &["tmpfs"]),
        ("--allow_mounted_write=1", &["device-in-use"]),
        ("--ioengine=nbd --sync=1", &["engine-dependent"]),
        (
            "--direct=0",
            &["depth-not-reached", "page-cache-write", "unflushed-write"],
        ),
        (
            "--direct=0 --ioengine=io_uring",
            &["page-cache-write", "unflushed-write"],
        ),
        (
            "--direct=0 --ioengine=io_uring --end_fsync=1",
            &["page-cache-write"],
        ),
        (
            "--direct=0 --ioengine=io_uring --fsync=1",
            &["flush-hidden"],
        ),
        (
            "--rw=write --bs=1m --direct=0 --ioengine=io_uring --end_fsync=1",
            &[],
        ),
        ("--ioengine=posixaio", &["depth-not-reached"]),
        ("--ioengine=posixaio --nrfiles=16", &[]),
        ("--ioengine=libpmem", &["depth-not-reached"]),
        (
            "--ioengine=http",
            &["engine-dependent", "depth-not-reached"],
        ),
        (
            "--ioengine=dev-dax --direct=0 --iodepth=1 --rw=randread",
            &[],
        ),
        ("--ioengine=io_urnig", &["unknown-option"]),
        ("--refill_buffers=0 --verify=crc32c", &[]),
        ("--rate_process=poisson", &[]),
        ("--thinktime=1000", &["rate-capped"]),
        ("--runtime=0", &["no-time-based"]),
        (
            "--rw=randread --direct=0 --ioengine=io_uring",
            &["page-cache-read"],
        ),
        (
            "--rw=randread --direct=0 --ioengine=io_uring --pre_read=1",
            &["page-cache-read"],
        ),
        ("--rw=randread --sync=1", &["sync-on-read"]),
        ("--refill_buffers=0", &["compressible-data"]),
        ("--refill_buffers=0 --bs=1m", &[]),
        ("--zero_buffers", &["compressible-data"]),
        ("--buffer_compress_percentage=50", &["compressible-data"]),
        (
            "--refill_buffers=0 --scramble_buffers=0 --bs=1m",
            &["compressible-data"],
        ),
        ("--time_based=0", &["no-time-based"]),
        ("--runtime=5", &["too-short"]),
        ("--randrepeat=1", &["repeated-offsets"]),
        ("--randrepeat=1 --randseed=9", &[]),
        ("--norandommap", &[]),
        (
            "--norandommap --runtime=0",
            &["no-time-based", "no-random-map"],
        ),
        ("--rw=write --numjobs=4", &["jobs-overlap"]),
        ("--rw=write --numjobs=4 --offset_increment=1g", &[]),
        (
            "--numjobs=4 --direct=0 --ioengine=io_uring --end_fsync=1",
            &["page-cache-write", "many-jobs-one-file"],
        ),
        ("--numjobs=4 --group_reporting", &["grouped-jobs"]),
        ("--size=64m", &["small-target"]),
        ("--size=64m --sync=dsync", &[]),
        ("--size=64m --rw=randread", &["small-target"]),
        ("--size=64m --numjobs=16", &["small-target"]),
        ("--rwmixread=70", &["mix-ignored"]),
        ("--rw=randrw --rwmixread=70", &[]),
        ("--bs=4kib", &["unit-trap"]),
        ("--bs=4kib --kb_base=1000", &[]),
        ("--rate_iops=500", &["coordinated-omission"]),
        ("--iodetph=32", &["unknown-option"]),
        ("--io_submit_mode=offload", &["offload-hang"]),
    ] {
        let doubts = lint_with(change);
        assert_eq!(codes_of(&doubts), expected, "{change}");
    }
    let severity = |change| lint_with(change)[0].severity;
    assert_eq!(severity("--ioengine=psync"), Severity::Void);
    assert_eq!(severity("--randrepeat=1"), Severity::Suspect);
}

/// Two sections for one file, intended as two separate measurements.
#[test]
fn sections_that_run_at_once_on_one_file_are_found() {
    let base = "fio --filename=/srv/t --size=4G --direct=1 --ioengine=libaio --iodepth=16 --rw=randread --bs=4k \
                --time_based --runtime=60 --ramp_time=5 --randrepeat=0 --name=a";
    let second = "--size=4G --direct=1 --ioengine=libaio --iodepth=16 --rw=randread --bs=4k --time_based \
                  --runtime=60 --ramp_time=5 --randrepeat=0";
    let with = |rest: &str| {
        let doubts = lint(&format!(
            "{base} --name=b --filename=/srv/t {second} {rest}"
        ));
        codes_of(&doubts)
            .iter()
            .filter(|code| **code == "jobs-together")
            .count()
    };
    assert_eq!(with(""), 2);
    assert_eq!(with("--stonewall"), 0);
    assert_eq!(with("--wait_for=a"), 0);
    let apart = lint(&format!("{base} --name=b --filename=/srv/u {second}"));
    assert_eq!(codes_of(&apart), [""; 0]);
}

#[test]
fn codes_are_unique_and_have_a_page() {
    let page = include_str!("../../../../docs/src/doubts.md");
    let mut seen = BTreeSet::new();
    for code in list_rule_codes() {
        assert!(seen.insert(code), "{code} twice");
        assert!(
            page.contains(&format!("\n### `{code}`\n")),
            "{code} has no section"
        );
    }
    for section in page.lines().filter_map(|line| line.strip_prefix("### `")) {
        let code = section.trim_end_matches('`');
        assert!(seen.contains(code), "{code} is no rule");
    }
}

#[test]
fn hostile_values_cannot_break_a_line() {
    let text = clean_text("a\u{1b}[2J\nb");
    assert_eq!(text, "a\\u{1b}[2J\\nb");
    assert_eq!(clean_text(&"x".repeat(500)).chars().count(), 81);
}

mod measured {
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
}

/// Sections of a job file: which ran at the same time and which are summed, according to recorded results and
/// according to the job file itself.
#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "recorded results are read by name"
)]
fn sections_of_a_job_file() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/sections/");
    let only = ["jobs-together", "grouped-jobs", "depth-not-reached"];
    for (name, of_result, of_file) in [
        ("stonewall-two", &[][..], &[][..]),
        ("stonewall-three", &[], &[]),
        ("stonewall-ramp", &[], &[]),
        (
            "together",
            &["jobs-together", "jobs-together"],
            &["jobs-together", "jobs-together"],
        ),
        (
            "new-group-together",
            &["jobs-together", "jobs-together"],
            &["jobs-together", "jobs-together"],
        ),
        (
            "grouped-three",
            &["grouped-jobs:void"],
            &[
                "jobs-together",
                "grouped-jobs:void",
                "jobs-together",
                "grouped-jobs:void",
                "jobs-together",
                "grouped-jobs:void",
            ],
        ),
        (
            "grouped-copies",
            &["grouped-jobs:void"],
            &[
                "jobs-together",
                "grouped-jobs:void",
                "jobs-together",
                "grouped-jobs:void",
            ],
        ),
        (
            "grouped-depths",
            &["grouped-jobs:void"],
            &[
                "jobs-together",
                "grouped-jobs:void",
                "jobs-together",
                "grouped-jobs:void",
            ],
        ),
        ("grouped-one-section", &["grouped-jobs"], &["grouped-jobs"]),
        ("grouped-stonewall", &[], &[]),
        ("windows", &[], &[]),
    ] {
        let seen = |doubts: Vec<Doubt>| -> Vec<String> {
            let wanted = doubts
                .into_iter()
                .filter(|doubt| only.contains(&doubt.code.as_str()));
            wanted
                .map(|doubt| match doubt.severity {
                    Severity::Void => doubt.code + ":void",
                    _ => doubt.code,
                })
                .collect()
        };
        let read = |end: &str| std::fs::read_to_string(format!("{root}{name}{end}"));
        let document = assay_fio::json::parse(read(".json").unwrap())
            .unwrap()
            .remove(0);
        let found = judge_result(&document)
            .into_iter()
            .flat_map(|jobs| jobs.doubts);
        assert_eq!(seen(found.collect()), of_result, "{name}.json");
        if let Ok(text) = read(".fio") {
            let jobs = assay_fio::options::job_file(&text, name).unwrap();
            let found = judge_options(&jobs).into_iter().flatten();
            assert_eq!(seen(found.collect()), of_file, "{name}.fio");
        }
    }
}

/// A result without the engine's name, from a system with another default engine.
#[test]
fn the_default_engine_of_other_systems() {
    let result = |options: &str, alone: f64| {
        let text = format!(
            r#"{{"fio version": "fio-3.28", "jobs": [{{"jobname": "t", "groupid": 0, "error": 0, "elapsed": 20,
            "job options": {{"rw": "randread", "bs": "4k", "iodepth": "32", "size": "100g", "randrepeat": "0",
            "runtime": "15", "time_based": "1", "direct": "1" {options}}},
            "read": {{"io_bytes": 40960000, "runtime": 15000, "total_ios": 10000, "iops": 666.6, "bw_bytes": 2730666}},
            "iodepth_level": {{"1": {alone}, "32": {}}}}}]}}"#,
            100.0 - alone
        );
        let document = assay_fio::json::parse(text).unwrap().remove(0);
        let doubts = judge_result(&document)
            .into_iter()
            .flat_map(|jobs| jobs.doubts);
        doubts.map(|doubt| doubt.code).collect::<Vec<_>>()
    };
    for (options, alone, wanted) in [
        ("", 100.0, &["depth-not-reached"][..]),
        ("", 0.1, &[]),
        (r#", "filename": "C\\:\\t.dat""#, 0.1, &[]),
        (r#", "filename": ".\\x.dat""#, 100.0, &["depth-not-reached"]),
        (r#", "filename": "\\\\.\\PhysicalDrive1""#, 3.0, &[]),
        (r#", "ioengine": "windowsaio""#, 0.1, &[]),
        (r#", "ioengine": "psync""#, 100.0, &["depth-not-reached"]),
        (r#", "ioengine": "posixaio", "nrfiles": "64""#, 0.5, &[]),
        (r#", "ioengine": "sync""#, 100.0, &["depth-not-reached"]),
    ] {
        let mut found = result(options, alone);
        found.retain(|code| code == "depth-not-reached");
        assert_eq!(found, wanted, "{options} {alone}");
    }
}
