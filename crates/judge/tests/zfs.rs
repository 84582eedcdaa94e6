//! Tests the rules about ZFS with data of a real pool: kernel statistics, disk statistics and fio's result with OpenZFS
//! 2.1.11 on Linux 6.1 (Debian 12). The pool is a mirror of two virtio disks with a log device, in one case with a
//! cache device. The data was recorded in November 2026. Of /proc/diskstats only the lines of these disks are stored.

use assay_fio::options::JobOptions;
use assay_host::Recorded;
use assay_judge::doubts::{DoubtEvidence, EvidenceOrigin, apply_rules};
use assay_loads::counters::{CounterSnapshot, Sources};
use assay_model::sample::Counters;
use assay_model::target::{TargetInfo, TargetKind};
use assay_model::{Bytes, FactKind, Facts};

const KSTAT: &str = "/proc/spl/kstat/zfs";

struct Case {
    name: &'static str,
    facts: Facts,
}

fn case(name: &'static str) -> Case {
    let mut facts = Facts::default();
    facts.known("zfs.version", "2.1.11-1+deb12u1", FactKind::Runtime, "test");
    facts.known(
        "zfs.dataset.tank/data.recordsize",
        131_072,
        FactKind::Default,
        "test",
    );
    Case { name, facts }
}

impl Case {
    fn fact(mut self, key: &str, value: impl Into<serde_json::Value>) -> Self {
        self.facts.known(key, value, FactKind::Runtime, "test");
        self
    }

    fn read(&self, file: &str) -> String {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/zfs-2.1.11");
        let path = format!("{dir}/{}/{file}", self.name);
        #[allow(clippy::disallowed_methods, reason = "a fixture")]
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn host(&self, moment: &str) -> Recorded {
        let mut host = Recorded::new()
            .file(
                &format!("{KSTAT}/arcstats"),
                self.read(&format!("arcstats.{moment}")),
            )
            .file(&format!("{KSTAT}/zil"), self.read(&format!("zil.{moment}")))
            .file("/proc/diskstats", self.read(&format!("diskstats.{moment}")));
        for disk in ["vdb", "vdc", "vdd"] {
            let partition = format!("/sys/devices/virtio/{disk}/{disk}1");
            host = host
                .file(&format!("{partition}/partition"), "1\n")
                .linked(&format!("/sys/class/block/{disk}1"), &partition);
        }
        host
    }

    fn counters(&self) -> Counters {
        let before = self.host("before");
        let devices = ["vdb1", "vdc1", "vdd1"].map(str::to_owned);
        let sources = Sources::find(&before, &devices);
        let before = CounterSnapshot::take(&before, &sources);
        before.until(&CounterSnapshot::take(&self.host("after"), &sources))
    }

    /// Returns codes, severities and evidence of the doubts that come from ZFS's counters.
    fn doubts(&self) -> Vec<(String, String)> {
        let documents = assay_fio::json::parse(self.read("fio.json")).unwrap();
        let jobs = &documents.last().unwrap().jobs;
        let options = JobOptions::from_result(&jobs[0]);
        let disk = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let target = TargetInfo {
            name: "/tank/data".to_owned(),
            kind: TargetKind::Directory,
            fs_type: Some("zfs".to_owned()),
            mount_point: Some("/tank/data".to_owned()),
            mount_options: None,
            mount_source: Some("tank/data".to_owned()),
            devices: disk(&["vdb1", "vdc1", "vdd1"]),
            disks: disk(&["vdb", "vdc", "vdd"]),
            size: Bytes(48 << 20),
            free: None,
        };
        let ours = [
            "cache-hit-read",
            "l2arc-read",
            "prefetched-read",
            "sync-ignored-zfs",
            "flush-dropped-zfs",
        ];
        let counters = self.counters();
        apply_rules(&DoubtEvidence {
            options: Some(&options),
            results: jobs,
            counters: Some(&counters),
            target: Some(&target),
            facts: Some(&self.facts),
            source: EvidenceOrigin::Measured,
            ..DoubtEvidence::default()
        })
        .into_iter()
        .filter(|doubt| ours.contains(&doubt.code.as_str()))
        .map(|doubt| {
            let code = format!("{}:{:?}", doubt.code, doubt.severity).to_lowercase();
            (code, doubt.evidence)
        })
        .collect()
    }
}

fn codes(doubts: &[(String, String)]) -> Vec<&str> {
    doubts.iter().map(|(code, _)| code.as_str()).collect()
}

#[test]
fn reads_from_a_warm_arc_are_void() {
    let doubts = case("warm-randread").doubts();
    assert_eq!(codes(&doubts), ["cache-hit-read:void"]);
}

#[test]
fn a_random_read_meets_records_that_others_fetched() {
    // 1024 reads of 16 KiB in 384 records of 128 KiB: most reads find their record in the ARC.
    let doubts = case("cold-randread").doubts();
    assert_eq!(codes(&doubts), ["cache-hit-read:void"]);
    assert!(doubts[0].1.starts_with("64."), "{doubts:?}");
}

#[test]
fn what_was_read_ahead_came_from_the_disks() {
    // 3066 of 3068 reads hit the ARC, although all 384 records were read from the disks.
    let case = case("cold-read");
    let arc = case.counters().arc.unwrap();
    assert_eq!(
        [
            arc.demand_data_hits,
            arc.demand_data_misses,
            arc.prefetch_data_misses
        ],
        [3066, 2, 382]
    );
    let doubts = case.doubts();
    assert_eq!(codes(&doubts), ["prefetched-read:suspect"]);
    insta::assert_snapshot!(doubts[0].1, @"ZFS fetched 382 of 384 records before they were asked for");
    // Without the size of the records, nothing can be concluded about the ARC.
    let unknown = Case {
        facts: Facts::default(),
        ..case
    };
    assert_eq!(codes(&unknown.doubts()), ["prefetched-read:suspect"]);
}

#[test]
fn durable_writes_commit_the_log_and_flush_the_disks() {
    let case = case("fsync");
    let counters = case.counters();
    let zil = counters.zil.unwrap();
    assert_eq!((zil.commits, zil.itxs), (255, 255));
    assert_eq!(
        (zil.slog_bytes, zil.normal_bytes),
        (Bytes(4_273_800), Bytes(0))
    );
    // Flushes of the whole disk, because the kernel counts none for its partition.
    let flushes: Vec<u64> = counters
        .devices
        .iter()
        .map(|device| device.flushes)
        .collect();
    assert_eq!(flushes[2], 257, "{flushes:?}");
    assert_eq!(case.doubts(), []);
}

#[test]
fn acknowledgements_without_a_commit_are_told() {
    let doubts = case("fsync-disabled")
        .fact("zfs.dataset.tank/data.sync", "disabled")
        .doubts();
    assert_eq!(codes(&doubts), ["sync-ignored-zfs:suspect"]);
    insta::assert_snapshot!(doubts[0].1, @"fio waited for 255 flushes, and ZFS committed its intent log 0 times: the dataset has sync=disabled");
}

#[test]
fn commits_without_a_flush_are_told() {
    let dropped = || {
        case("nocacheflush")
            .fact("zfs.param.zfs_nocacheflush", 1)
            .fact("zfs.param.zil_nocacheflush", 1)
    };
    let doubts = dropped().doubts();
    assert_eq!(codes(&doubts), ["flush-dropped-zfs:suspect"]);
    let through = ["vdb", "vdc", "vdd"].iter().fold(dropped(), |case, disk| {
        case.fact(&format!("disk.{disk}.write_cache"), "write through")
    });
    assert_eq!(through.doubts(), [], "nothing to flush");
}

#[test]
fn reads_from_a_cache_device_are_told() {
    let doubts = case("l2arc").doubts();
    assert!(codes(&doubts).contains(&"l2arc-read:suspect"), "{doubts:?}");
    let told = doubts
        .iter()
        .find(|(code, _)| code.starts_with("l2arc"))
        .unwrap();
    insta::assert_snapshot!(told.1, @"139 of 139 reads that missed the ARC were answered by a cache device");
}
