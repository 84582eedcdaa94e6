//! Lists pages whose remedies are executed in an emulated guest with real faults, by the test `remedies_in_guest` of
//! the binary.

const MAIN: &str = "crates/assay/tests/remedies_in_guest/main.rs";
const POOLS: &str = "crates/assay/tests/remedies_in_guest/pools.rs";
const VOLUMES: &str = "crates/assay/tests/remedies_in_guest/volumes.rs";
const SYSTEMS: &str = "crates/assay/tests/remedies_in_guest/systems.rs";
const HYPERVISOR: &str = "crates/assay/tests/remedies_in_guest/hypervisor.rs";

/// Remedies, as (page, file of the test, how the test refers to the page).
pub const IN_GUEST: &[(&str, &str, &str)] = &[
    ("zfs-sync-always", POOLS, "page: \"@\""),
    ("zfs-sync-disabled", POOLS, "page: \"@\""),
    ("zfs-compression-off-set", POOLS, "page: \"@\""),
    ("zfs-zero-fill-uncompressed", POOLS, "page: \"@\""),
    ("zfs-thin-promised", POOLS, "page: \"@\""),
    ("zfs-kernel-names", POOLS, "page: \"@\""),
    ("zfs-log-alone", POOLS, "page: \"@\""),
    ("zfs-log-write-cache", POOLS, "page: \"@\""),
    ("zfs-nearly-full", POOLS, "page: \"@\""),
    ("zfs-spare-lost", POOLS, "page: \"@\""),
    ("zfs-data-errors", POOLS, "page: \"@\""),
    ("zfs-parity-small-blocks", POOLS, "page: \"@\""),
    ("zfs-pool-not-whole", POOLS, "page: \"@\""),
    ("zfs-device-errors", POOLS, "page: \"@\""),
    ("zfs-ashift-small", POOLS, "page: \"@\""),
    ("zfs-on-raid", POOLS, "page: \"@\""),
    ("zfs-no-scrub", POOLS, "page: \"@\""),
    ("zfs-arc-max-below-min", POOLS, "page: \"@\""),
    ("md-rebuilding", VOLUMES, "page: \"@\""),
    ("md-degraded", VOLUMES, "page: \"@\""),
    ("md-stopped", VOLUMES, "page: \"@\""),
    ("md-mismatch", VOLUMES, "page: \"@\""),
    ("lvm-not-whole", VOLUMES, "page: \"@\""),
    ("lvm-disk-missing", VOLUMES, "page: \"@\""),
    ("lvm-thin-nearly-full", VOLUMES, "page: \"@\""),
    ("lvm-snapshot-nearly-full", VOLUMES, "page: \"@\""),
    ("trim-swallowed", VOLUMES, "page: \"@\""),
    ("dm-crypt-work-queues", VOLUMES, "page: \"@\""),
    ("partition-misaligned", VOLUMES, "page: \"@\""),
    ("units-failed", SYSTEMS, "page: \"@\""),
    ("library-gone", SYSTEMS, "page: \"@\""),
    ("clock-alone", SYSTEMS, "page: \"@\""),
    ("reboot-pending", MAIN, "page: \"@\""),
    ("guest-disk-emulated", HYPERVISOR, "remedy(\"@\""),
    ("encrypted-disk-without-aes", HYPERVISOR, "remedy(\"@\""),
];
