//! Settings of the running kernel: `assay check --fix` writes the value in the file and in the kernel of a guest.

use super::{STATE, findings};
use crate::common::pools::Lab;
use assay_lab::Zfs;
use serde_json::Value;

/// File of the guest with all faults.
const FILE: &str = "/etc/sysctl.d/90-own.conf";

/// Rules, each with a setting and its faulty value; those of a network namespace are tried without a guest.
const SETTINGS: [(&str, &str, &str); 10] = [
    ("sysctl-links-unprotected", "fs.protected_symlinks", "0"),
    (
        "sysctl-hardlinks-unprotected",
        "fs.protected_hardlinks",
        "0",
    ),
    ("sysctl-suid-dumpable", "fs.suid_dumpable", "1"),
    ("sysctl-panic-on-oom", "vm.panic_on_oom", "1"),
    ("sysctl-file-max-small", "fs.file-max", "65535"),
    ("sysctl-max-map-count-small", "vm.max_map_count", "32768"),
    ("sysctl-mmap-min-addr", "vm.mmap_min_addr", "0"),
    (
        "sysctl-unprivileged-bpf",
        "kernel.unprivileged_bpf_disabled",
        "0",
    ),
    (
        "sysctl-vfs-cache-pressure-zero",
        "vm.vfs_cache_pressure",
        "0",
    ),
    ("sysctl-zone-reclaim", "vm.zone_reclaim_mode", "1"),
];

/// Value that the kernel keeps until it starts again, once it is set (Documentation/admin-guide/sysctl/kernel.rst).
const LOCKED: &str = "kernel.unprivileged_bpf_disabled";

#[test]
fn fixes_of_the_running_kernel_are_applied_and_undone() {
    let Some(lab) = Lab::new(Zfs::Stable) else {
        return;
    };
    let guest = lab.boot("settings", Vec::new());
    let lines = SETTINGS.map(|(_, name, value)| format!("{name} = {value}\n"));
    let planted = format!("# own\n{}", lines.concat());
    guest.push(&planted, FILE);
    guest.sh(&format!("sysctl --quiet --load {FILE}"));
    let running = |name: &str| {
        guest
            .sh(&format!("sysctl --values {name}"))
            .trim()
            .to_owned()
    };
    let violated = || -> Vec<String> {
        let all = findings(&guest).into_iter();
        all.filter_map(|finding| finding["rule"].as_str().map(str::to_owned))
            .collect()
    };
    let found = violated();
    let mut wrong: Vec<String> = SETTINGS
        .iter()
        .filter(|(rule, ..)| !found.iter().any(|found| found == rule))
        .map(|(rule, ..)| format!("{rule}: does not fire"))
        .collect();
    for (rule, name, value) in SETTINGS {
        let ran = guest.assay(STATE, &format!("check --fix {rule} --yes --json"));
        let document: Value = serde_json::from_str(&ran.out).unwrap_or_default();
        if ran.status != 0 || document["became"] != "kept" {
            wrong.push(format!("{rule}: {}{}", ran.out, ran.err));
        }
        if running(name) == value {
            wrong.push(format!("{rule}: the kernel keeps {value}"));
        }
    }
    let left = violated();
    for (rule, ..) in SETTINGS {
        if left.iter().any(|left| left == rule) {
            wrong.push(format!("{rule}: is not cleared"));
        }
    }
    for (rule, name, value) in SETTINGS.iter().rev() {
        let ran = guest.assay(STATE, &format!("check --undo {rule} --yes --json"));
        if *name != LOCKED && (ran.status != 0 || running(name) != *value) {
            wrong.push(format!("{rule}: undo: {}{}", ran.out, ran.err));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert_eq!(guest.sh(&format!("cat {FILE}")), planted);
}
