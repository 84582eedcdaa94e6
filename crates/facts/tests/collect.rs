//! Tests the collection of facts on this machine, on a capture of this machine, and with injected faults.
#![allow(
    clippy::disallowed_methods,
    reason = "makes a directory to capture into"
)]

use assay_facts::{CollectOptions, Redacted, collect};
use assay_host::{Faulty, Host, HostError, LiveHost, Recording, Root};
use assay_model::{FactValue, Facts};
use std::path::{Path, PathBuf};

fn here() -> Vec<PathBuf> {
    vec![PathBuf::from(env!("CARGO_MANIFEST_DIR"))]
}

#[test]
fn this_machine_has_the_facts_that_explain_a_run() {
    let targets = here();
    let facts = collect(
        &LiveHost,
        &CollectOptions {
            with_identity: false,
            services: true,
            accounts: false,
            targets: &targets,
        },
    );
    let page = facts.u64("kernel.page_size").unwrap();
    assert!(page.is_power_of_two());
    assert!(facts.u64("memory.total").unwrap() > 1 << 20);
    let threads = std::fs::read_to_string("/proc/cpuinfo")
        .unwrap()
        .matches("processor\t")
        .count();
    assert_eq!(facts.u64("cpu.threads").unwrap(), threads as u64);
    assert!(facts.str("kernel.release").is_some());
    assert!(facts.u64("sysctl.vm.dirty_ratio").is_some());
    let serials = facts
        .map
        .keys()
        .filter(|key| key.ends_with(".serial") || key.starts_with("host."))
        .count();
    assert_eq!(serials, 0);
}

#[test]
fn a_capture_gives_the_same_facts() {
    let targets = here();
    let options = CollectOptions {
        with_identity: false,
        services: true,
        accounts: false,
        targets: &targets,
    };
    let dir = tempfile::tempdir().unwrap();
    let redacted = Redacted::new(&LiveHost, false);
    let recording = Recording::new(&redacted, dir.path()).unwrap();
    let live = collect(&recording, &options);
    recording.finish(redacted.withheld()).unwrap();
    let root = Root::open(dir.path()).unwrap();
    let captured = collect(&root, &options);
    assert!(live.map.len() > 50);
    let differ = differences(&live, &captured);
    assert!(differ.is_empty(), "{differ:#?}");
    // No serial number was copied; its file may exist and be empty.
    for disk in LiveHost.list(Path::new("/sys/block")).unwrap() {
        let serial = root.read(&Path::new("/sys/block").join(disk).join("serial"));
        assert!(serial.unwrap_or_default().is_empty());
    }
}

/// Returns the keys whose facts differ. Loop devices and processes of other tests may change between two reads and are
/// left out.
fn differences(a: &Facts, b: &Facts) -> Vec<String> {
    let volatile = |key: &&String| {
        let parts = ["disk.loop", "mapped", "mount.", "btrfs.", "vm."];
        parts.iter().any(|part| key.starts_with(part))
    };
    let keys = a
        .map
        .keys()
        .chain(b.map.keys())
        .filter(|key| !volatile(key));
    let differ = keys.filter(|key| a.map.get(*key) != b.map.get(*key));
    differ
        .map(|key| format!("{key}: {:?} / {:?}", a.map.get(key), b.map.get(key)))
        .collect()
}

/// A capture never changes, so the injected fault is the only possible cause of a missing fact.
#[test]
fn faults_make_facts_unknown_and_never_vanish() {
    let targets = here();
    let options = CollectOptions {
        with_identity: false,
        services: true,
        accounts: false,
        targets: &targets,
    };
    let dir = tempfile::tempdir().unwrap();
    let redacted = Redacted::new(&LiveHost, false);
    let recording = Recording::new(&redacted, dir.path()).unwrap();
    let _ = collect(&recording, &options);
    recording.finish(redacted.withheld()).unwrap();
    let root = Root::open(dir.path()).unwrap();
    let whole = collect(&root, &options);
    for n in 1..=40 {
        let faulty = Faulty::new(&root, n);
        let facts = collect(&faulty, &options);
        assert!(faulty.calls() > 0);
        for key in whole.map.keys().filter(|key| !facts.map.contains_key(*key)) {
            assert!(
                excused(key, &facts),
                "call {n}, {}…: {key} vanished without a word",
                2 * n
            );
        }
        if n == 1 {
            let known = facts
                .map
                .iter()
                // A skipped kind is not read.
                .filter(|(key, _)| !key.starts_with("not_asked."))
                .filter(|(_, fact)| matches!(fact.value, FactValue::Known(_)))
                .count();
            assert_eq!(known, 0, "{facts:?}");
        }
    }
}

/// Returns whether a source of the fact is reported as unknown: a prefix of the fact's key is unknown.
fn excused(key: &str, facts: &Facts) -> bool {
    let unknown = |prefix: &str| {
        facts
            .map
            .get(prefix)
            .is_some_and(|fact| matches!(fact.value, FactValue::Unknown(_)))
    };
    let parents = key.match_indices('.').map(|(at, _)| &key[..at]);
    parents.into_iter().any(unknown)
        // File systems are found through their mounts.
        || ["ext4.", "btrfs.property.", "xfs.", "zfs.dataset.", "zfs.pool."].iter().any(|start| key.starts_with(start)) && unknown("mount")
        || key.starts_with("ext4.") && facts.map.keys().any(|key| key.starts_with("target."))
        // A setting is read from several files or directories.
        || key.ends_with(".configured") && {
            let start = format!("{}./", key.split('.').next().unwrap_or_default());
            facts.map.keys().any(|key| key.starts_with(&start))
        }
        // Computed from another value.
        || key.strip_suffix("aligned_4k").is_some_and(|disk| unknown(&format!("{disk}start")))
}

#[test]
fn a_capture_lets_no_link_out() {
    let dir = tempfile::tempdir().unwrap();
    let outside = dir.path().join("outside");
    std::fs::write(&outside, "secret").unwrap();
    let root = dir.path().join("root");
    std::fs::create_dir_all(root.join("proc/sys/kernel")).unwrap();
    let link = root.join("proc/sys/kernel/osrelease");
    for target in [
        outside.as_path(),
        Path::new("../../../../outside"),
        Path::new("/proc/../../outside"),
    ] {
        std::os::unix::fs::symlink(target, &link).unwrap();
        let host = Root::open(&root).unwrap();
        let error = host
            .read(Path::new("/proc/sys/kernel/osrelease"))
            .unwrap_err();
        assert!(matches!(error, HostError::NotFound { .. }), "{error}");
        std::fs::remove_file(&link).unwrap();
    }
    std::os::unix::fs::symlink("osrelease", &link).unwrap();
    let host = Root::open(&root).unwrap();
    let facts = collect(&host, &CollectOptions::default());
    assert_eq!(
        facts.map["kernel.release"].value,
        FactValue::Unknown("too many levels of symbolic links".into())
    );
}

#[test]
fn an_index_that_is_none_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("assay-capture.json"), "{\"schema\": 99}").unwrap();
    let error = Root::open(dir.path()).unwrap_err();
    insta::assert_snapshot!(assay_testing::normalize_output(error, &[(dir.path(), "DIR")]), @"DIR/assay-capture.json: schema 99 is unknown to this version of assay, which reads schema 1");
    assert!(Root::open(&dir.path().join("missing")).is_err());
}
