//! Evaluates all rules on machines of published reports, which are reduced to the relevant files. The rules must find
//! exactly what the administrator of the machine needs to know.
#![allow(clippy::disallowed_methods, reason = "reads its own fixtures")]

use assay_advice::{Catalogue, findings};
use assay_facts::{CollectOptions, collect};
use assay_host::Root;
use assay_model::finding::{Certainty, Finding, Fix};
use std::path::Path;

/// Machines, each with the rules that have findings of medium or higher severity, sorted by name.
const MACHINES: [(&str, &[&str]); 17] = [
    ("btrfs-barrier-remedy", &["barriers-off"]),
    (
        "btrfs-missing-device",
        &["btrfs-device-errors", "btrfs-device-missing"],
    ),
    (
        "fstab-xfs-nobarrier",
        &[
            "cifs-1-mounted",
            "fstab-barriers-off",
            "fstab-option-refused",
            "fstab-password",
        ],
    ),
    ("libvirt-transient", &[]),
    ("md-degraded", &["md-degraded"]),
    ("pve-args-host", &[]),
    ("pve-arm", &[]),
    ("smart-mx500-bogus-pending", &[]),
    (
        "sysctl-nothing",
        &[
            "sysctl-aslr-off",
            "sysctl-source-route",
            "sysctl-suid-dumpable",
            "sysctl-tcp-syncookies-off",
            "sysctl-tcp-timestamps-off",
            "sysctl-unprivileged-bpf",
        ],
    ),
    ("trim-stopped-by-dm-crypt", &[]),
    ("zfs-arc-hex", &[]),
    ("zfs-arc-ignored", &["zfs-arc-max-below-min"]),
    ("zfs-arc-suffix", &["module-parameter-refused"]),
    (
        "zfs-data-errors-pool-online",
        &["zfs-data-errors", "zfs-no-scrub"],
    ),
    (
        "zfs-leaf-faulted-pool-online",
        &["zfs-no-scrub", "zfs-pool-not-whole"],
    ),
    (
        "zfs-leaf-faulted-pool-online-cksum",
        &["zfs-device-errors", "zfs-no-scrub", "zfs-spare-lost"],
    ),
    ("zfs-nocacheflush", &["zfs-nocacheflush"]),
];

fn found(machine: &str) -> Vec<Finding> {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/published")
        .join(machine);
    let origin = std::fs::read_to_string(tree.join("ORIGIN")).unwrap();
    assert!(origin.starts_with("made: "), "{origin}");
    let root = Root::open(&tree).unwrap();
    let options = CollectOptions {
        services: true,
        accounts: true,
        ..CollectOptions::default()
    };
    let catalogue = Catalogue::builtin().unwrap();
    findings(catalogue.all(), &collect(&root, &options)).findings
}

fn of<'a>(found: &'a [Finding], rule: &str) -> &'a Finding {
    let all = found.iter();
    all.clone()
        .find(|finding| finding.rule == rule)
        .unwrap_or_else(|| panic!("{rule} is not among {found:#?}"))
}

#[test]
fn machines_have_the_findings_that_their_reports_name() {
    let mut wrong: Vec<String> = Vec::new();
    for (machine, expected) in MACHINES {
        let found = found(machine);
        let mut rules: Vec<&str> = found
            .iter()
            .filter(|finding| finding.certainty == Certainty::Violated)
            .filter(|finding| finding.severity >= assay_model::finding::Severity::Medium)
            .map(|finding| finding.rule.as_str())
            .collect();
        rules.sort_unstable();
        rules.dedup();
        if rules != expected {
            wrong.push(format!("{machine}: {rules:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Titles contain the words for which users search, such as the value and its line, the disk, or the guest.
#[test]
fn titles_name_the_fault() {
    let title = |machine: &str, rule: &str| of(&found(machine), rule).title.clone();
    for (machine, rule, named) in [
        (
            "zfs-arc-suffix",
            "module-parameter-refused",
            &["zfs", "zfs_arc_max=8G", "/etc/modprobe.d/zfs.conf:1"][..],
        ),
        (
            "zfs-leaf-faulted-pool-online",
            "zfs-pool-not-whole",
            &["tank", "/dev/sdc1", "FAULTED"],
        ),
        ("md-degraded", "md-degraded", &["md0", "raid5", "2 of 3"]),
        (
            "fstab-xfs-nobarrier",
            "fstab-option-refused",
            &["nobarrier", "4.19"],
        ),
        (
            "trim-stopped-by-dm-crypt",
            "trim-swallowed",
            &["dm_crypt-0", "nvme0n1"],
        ),
    ] {
        let title = title(machine, rule);
        for word in named {
            assert!(title.contains(word), "{word} is not in: {title}");
        }
    }
}

/// A limit that the module rejects must not get into the initramfs. The steps therefore fix the number first.
#[test]
fn the_number_is_mended_before_the_initramfs() {
    let found = found("zfs-arc-suffix");
    let Fix::Steps(remedy) = &of(&found, "module-parameter-refused").fix else {
        panic!("no remedy");
    };
    assert!(remedy.steps[0].contains("`zfs_arc_max=8589934592`"));
    assert!(
        !found
            .iter()
            .any(|finding| finding.rule == "zfs-arc-max-not-in-force")
    );
}
