//! Tests the bench `zfs` with a real guest, a real pool and a real QEMU in the guest. Skipped if no guest image is
//! cached (`assay lab build` creates an image).
#![allow(clippy::disallowed_methods, reason = "tests make directories")]

use assay_changes::Journal;
use assay_host::LiveHost;
use assay_lab::{Cache, GuestRegistry, Image};
use assay_loads::{Cancel, scratch};
use assay_model::study::Observation;
use assay_studies::{
    BenchContext, Carried, Environment, MeasureEvent, Task, catalogue, execute, find_bench,
};
use std::collections::BTreeMap;

/// A study with one configuration of each kind and as little work as possible, for a single boot.
const STUDY: &str = r#"name = "tiny"
title = "t"
question = "q"
bench = "zfs"

[source]
title = "s"
machine = "m"

[forms.quick]
rounds = 1
memory = "1g"
disk = "384m"
size = "256k"
left = "1m"
pool = { layout = "mirror", disks = 2, size = "1g", ashift = 12, properties = { compression = "lz4" } }

[forms.full]
rounds = 1
memory = "1g"
disk = "384m"
size = "256k"
pool = { disks = 1, size = "1g", ashift = 12 }

[[configuration]]
name = "zvol"
figures = ["flushes", "commits", "disk-flushes", "lazy-flushes", "volblocksize", "space"]
on = "zvol"
properties = { volblocksize = "8k" }
image = "raw"
cache = "none"
fs = "ext4"

[[configuration]]
name = "qcow2"
figures = ["flushes", "commits", "disk-flushes", "lazy-flushes"]
on = "dataset"
image = "qcow2"
cluster = "8k"
fs = "ext4"
fresh = true

[[configuration]]
name = "dataset"
figures = ["atime", "commits"]
on = "dataset"

[[configuration]]
name = "disk"
figures = ["flushes", "disk-flushes"]
on = "disk"
device = "bus=virtio-scsi,cache=none"
lvm = true
luks = true
fs = "xfs"

[[configuration]]
name = "full-none"
figures = ["paused", "errors", "lost", "kept"]
on = "zvol"
properties = { compression = "off" }
image = "raw"
cache = "none"
full = "pool"
fresh = true

[[configuration]]
name = "full-writeback"
figures = ["paused", "errors", "lost", "kept"]
on = "zvol"
properties = { compression = "off" }
image = "raw"
full = "pool"
fresh = true

[[figure]]
name = "flushes"
better = "neither"
together = "durable"
of = "flushes"
job = { fdatasync = 1, rw = "randwrite", bs = "4k", number_ios = 10 }

[[figure]]
name = "commits"
better = "neither"
together = "durable"
of = "commits"
job = { fdatasync = 1, rw = "randwrite", bs = "4k", number_ios = 10 }

[[figure]]
name = "disk-flushes"
better = "neither"
together = "durable"
of = "host-flushes"
job = { fdatasync = 1, rw = "randwrite", bs = "4k", number_ios = 10 }

[[figure]]
name = "lazy-flushes"
better = "neither"
of = "flushes"
job = { ioengine = "sync", rw = "randwrite", bs = "4k", end_fsync = 1 }

[[figure]]
name = "space"
better = "lower"
exact = true
of = "space"

[[figure]]
name = "volblocksize"
better = "neither"
exact = true
of = "accepted"
set = "volblocksize=4K"

[[figure]]
name = "atime"
better = "neither"
exact = true
of = "accepted"
set = "atime=off"

[[figure]]
name = "paused"
better = "neither"
exact = true
together = "full"
of = "paused"

[[figure]]
name = "errors"
better = "lower"
exact = true
together = "full"
of = "errors"

[[figure]]
name = "lost"
better = "lower"
exact = true
together = "full"
of = "lost"

[[figure]]
name = "kept"
better = "higher"
exact = true
together = "full"
of = "kept"

[[conclusion]]
says = "it is paused"
claim = [{ kind = "value", figure = "paused", of = "full-none", at_least = 1 }]
"#;

fn image() -> Option<Image> {
    let found = Cache::of_user().ok().and_then(|cache| cache.find());
    if found.is_none() {
        assay_testing::skipped("guest-image", "no guest image; `assay lab build` makes one");
    }
    found
}

#[test]
fn flushes_are_counted_down_to_the_disks_and_a_full_pool_is_survived_or_not() {
    let Some(image) = image() else { return };
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("storage");
    std::fs::create_dir(&dir).unwrap();
    let study = catalogue::parse(STUDY, "tiny.toml").unwrap();
    let journal = Journal::open(&home.path().join("journal")).unwrap();
    let session = journal.begin("study", "tiny").unwrap();
    let scratch = scratch::ScratchRegistry::open(&home.path().join("scratch")).unwrap();
    let guests = GuestRegistry::open(&home.path().join("guests")).unwrap();
    let cancel = Cancel::default();
    let place = BenchContext {
        dir: dir.clone(),
        on: None,
        dirs: BTreeMap::new(),
        env: Environment {
            host: &LiveHost,
            fio: None,
            state: &scratch,
            journal: &journal,
            cancel: &cancel,
            now: &jiff::Timestamp::now,
            version: "test",
            command_helper: None,
        },
        session: &session,
        image: Some(image),
        guests: &guests,
        accel: None,
        seed: 1,
        say: &|_| {},
    };
    let mut all: Vec<Observation> = Vec::new();
    {
        let mut bench = find_bench(&study.bench).unwrap().make(&place);
        let task = Task {
            study: &study,
            form: &study.forms.quick,
            seed: 1,
            keep_going: false,
            done: &[],
        };
        let end = execute(&mut *bench, &task, &cancel, &mut |event| match event {
            MeasureEvent::Observed(some) => all.extend_from_slice(some),
            MeasureEvent::Ready { not_tried, .. } => assert_eq!(not_tried, []),
            _ => {}
        });
        assert_eq!(end.unwrap(), Carried::Complete);
    }
    let found: BTreeMap<(&str, &str), f64> = all
        .iter()
        .map(|one| ((one.configuration.as_str(), one.figure.as_str()), one.value))
        .collect();
    assert_eq!(found.len(), 22, "{found:?}");
    for (configuration, figure) in [
        ("zvol", "flushes"),
        ("zvol", "commits"),
        ("zvol", "disk-flushes"),
        ("qcow2", "flushes"),
        ("qcow2", "commits"),
        ("qcow2", "disk-flushes"),
        ("dataset", "commits"),
        ("disk", "flushes"),
        ("disk", "disk-flushes"),
    ] {
        let value = found[&(configuration, figure)];
        // Ten writes, without an fdatasync after the last one.
        assert!(value >= 0.85, "{configuration} {figure}: {value}");
    }
    // 64 writes without a durability request, and one flush at the end.
    for configuration in ["zvol", "qcow2"] {
        let value = found[&(configuration, "lazy-flushes")];
        assert!(value > 0.0 && value < 0.2, "{configuration}: {value}");
    }
    assert_eq!(found[&("zvol", "volblocksize")], 0.0);
    assert_eq!(found[&("dataset", "atime")], 1.0);
    assert!(found[&("zvol", "space")] > 0.0);
    // 2 MiB in requests of 32 KiB.
    let full = |figure| found[&("full-none", figure)];
    let outcome = ["paused", "errors", "lost", "kept"].map(full);
    assert_eq!(outcome, [1.0, 0.0, 0.0, 64.0]);
    let full = |figure| found[&("full-writeback", figure)];
    // The page cache answers for the zvol with EIO, which does not make QEMU pause.
    let [paused, errors, lost, kept] = ["paused", "errors", "lost", "kept"].map(full);
    assert!(paused == 0.0 && lost == 0.0, "{found:?}");
    assert!(errors > 0.0 && errors + kept >= 64.0, "{found:?}");
    // The guest is removed, and with it the virtual disk on this file system.
    assert!(guests.list().is_empty());
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
    assert!(session.close(&LiveHost).unwrap().is_empty());
}
