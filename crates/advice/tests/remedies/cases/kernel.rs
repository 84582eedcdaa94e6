//! Remedies for kernel settings, in files and at run time.

use super::Act::{Do, Paste, PasteIn};
use super::{Case, REMOVE};

const NO_LINE: &str = "out of /etc/sysctl.conf and /etc/sysctl.d, or write";

/// Cases for a page about one sysctl: its line is removed or rewritten, and its value is set.
macro_rules! sysctl {
    // The remedy removes the line and contains no new line.
    (removed $page:literal, $key:literal) => {
        [
            Case {
                page: $page,
                trees: &["configured"],
                needs: "sysctl",
                furnish: "",
                acts: &[Do("out of /etc/sysctl.conf and /etc/sysctl.d", REMOVE)],
                accepted: "",
            },
            Case {
                page: $page,
                trees: &["in-force"],
                needs: "sysctl",
                furnish: "",
                acts: &[Paste(concat!("sysctl -w ", $key), &[])],
                accepted: concat!("sysctl -n ", $key),
            },
        ]
    };
    ($page:literal, $key:literal) => {
        [
            Case {
                page: $page,
                trees: &["configured"],
                needs: "sysctl",
                furnish: "",
                acts: &[Do(NO_LINE, REMOVE)],
                accepted: "",
            },
            Case {
                page: $page,
                trees: &["configured"],
                needs: "sysctl",
                furnish: "",
                acts: &[PasteIn(
                    concat!($key, " = "),
                    &[],
                    r#"sed -i "${LINE}c $COMMAND" "$FILE""#,
                )],
                accepted: "",
            },
            Case {
                page: $page,
                trees: &["in-force"],
                needs: "sysctl",
                furnish: "",
                acts: &[Paste(concat!("sysctl -w ", $key), &[])],
                accepted: concat!("sysctl -n ", $key),
            },
        ]
    };
}

/// Cases with another form of the number or of the name.
const OTHER_FORMS: [Case; 2] = [
    Case {
        page: "sysctl-suid-dumpable",
        trees: &["hexadecimal"],
        needs: "sysctl",
        furnish: "",
        acts: &[PasteIn(
            "fs.suid_dumpable = ",
            &[],
            r#"sed -i "${LINE}c $COMMAND" "$FILE""#,
        )],
        accepted: "",
    },
    Case {
        page: "sysctl-source-route",
        trees: &["pattern"],
        needs: "sysctl",
        furnish: "",
        acts: &[PasteIn(
            "net.ipv4.conf.all.accept_source_route = ",
            &[],
            r#"sed -i "${LINE}c $COMMAND" "$FILE""#,
        )],
        accepted: "",
    },
];

pub const CASES: &[&[Case]] = &[
    &OTHER_FORMS,
    &sysctl!("sysctl-aslr-off", "kernel.randomize_va_space"),
    &sysctl!("sysctl-dirty-ratio", "vm.dirty_ratio"),
    &sysctl!("sysctl-links-unprotected", "fs.protected_symlinks"),
    &sysctl!("sysctl-mmap-min-addr", "vm.mmap_min_addr"),
    &sysctl!(
        "sysctl-source-route",
        "net.ipv4.conf.all.accept_source_route"
    ),
    &sysctl!("sysctl-suid-dumpable", "fs.suid_dumpable"),
    &sysctl!("sysctl-tcp-sack-off", "net.ipv4.tcp_sack"),
    &sysctl!("sysctl-tcp-syncookies-off", "net.ipv4.tcp_syncookies"),
    &sysctl!("sysctl-tcp-timestamps-off", "net.ipv4.tcp_timestamps"),
    &sysctl!(
        "sysctl-unprivileged-bpf",
        "kernel.unprivileged_bpf_disabled"
    ),
    &sysctl!("sysctl-window-scaling-off", "net.ipv4.tcp_window_scaling"),
    &sysctl!(removed "sysctl-abort-on-overflow", "net.ipv4.tcp_abort_on_overflow"),
    &sysctl!(removed "sysctl-echo-broadcasts", "net.ipv4.icmp_echo_ignore_broadcasts"),
    &sysctl!(removed "sysctl-file-max-small", "fs.file-max"),
    &sysctl!(removed "sysctl-hardlinks-unprotected", "fs.protected_hardlinks"),
    &sysctl!(removed "sysctl-max-map-count-small", "vm.max_map_count"),
    &sysctl!(removed "sysctl-no-pmtu-disc", "net.ipv4.ip_no_pmtu_disc"),
    &sysctl!(removed "sysctl-panic-on-oom", "vm.panic_on_oom"),
    &sysctl!(removed "sysctl-rcvbuf-fixed", "net.ipv4.tcp_moderate_rcvbuf"),
    &sysctl!(removed "sysctl-tw-buckets-few", "net.ipv4.tcp_max_tw_buckets"),
    &sysctl!(removed "sysctl-vfs-cache-pressure-zero", "vm.vfs_cache_pressure"),
    &sysctl!(removed "sysctl-zone-reclaim", "vm.zone_reclaim_mode"),
    &[
        Case {
            page: "sysctl-tcp-tw-recycle",
            trees: &["debian-12"],
            needs: "",
            furnish: "",
            acts: &[Paste("sed -i", &[])],
            accepted: "",
        },
        Case {
            page: "sysctl-tcp-tw-recycle",
            trees: &["linux-4.9"],
            needs: "sysctl",
            furnish: "",
            acts: &[Paste("sysctl -w", &[])],
            accepted: "",
        },
        Case {
            page: "module-parameter-refused",
            trees: &["octal-nine", "percent", "suffix"],
            needs: "",
            furnish: "",
            // The page lists the permitted values and the place; the user chooses the number.
            acts: &[Do(
                "In /etc/modprobe.d/zfs.conf",
                r#"sed -i -E "${LINE}s/=(09|50%|8G)$/=10/" "$FILE""#,
            )],
            accepted: "",
        },
        Case {
            page: "module-parameter-refused",
            trees: &["blanks"],
            needs: "",
            furnish: "",
            acts: &[Do(
                "In /etc/modprobe.d/zfs.conf",
                r#"sed -i -E "${LINE}s/ = /=/" "$FILE""#,
            )],
            accepted: "",
        },
        Case {
            page: "module-parameter-refused",
            trees: &["quotes"],
            needs: "",
            furnish: "",
            acts: &[Do(
                "In /etc/modprobe.d/zfs.conf",
                r#"sed -i "${LINE}s/'//g" "$FILE""#,
            )],
            accepted: "",
        },
        Case {
            page: "module-parameter-refused",
            trees: &["first-of-two"],
            needs: "",
            furnish: "",
            acts: &[Do("In /etc/modprobe.d/zfs.conf", REMOVE)],
            accepted: "",
        },
        Case {
            page: "zfs-arc-max-not-in-force",
            trees: &["openzfs-2.1.11"],
            needs: "",
            furnish: "",
            acts: &[Paste("echo ", &[])],
            accepted: "",
        },
        Case {
            page: "zfs-old-default-pinned",
            trees: &[],
            needs: "",
            furnish: "mkdir -p /sys/module/zfs/parameters",
            acts: &[
                Do("Take the line out of the file in /etc/modprobe.d", REMOVE),
                Paste("echo ", &[]),
            ],
            accepted: "",
        },
        Case {
            page: "zfs-nocacheflush",
            trees: &[],
            needs: "",
            furnish: "mkdir -p /sys/module/zfs/parameters",
            acts: &[
                Paste("echo 0 > /sys/module/zfs/parameters/zfs_nocacheflush", &[]),
                Paste("echo 0 > /sys/module/zfs/parameters/zil_nocacheflush", &[]),
                Do(
                    "Take `zfs_nocacheflush` and `zil_nocacheflush` out of /etc/modprobe.d",
                    "sed -i -E '/^options zfs z(fs|il)_nocacheflush=/d' /etc/modprobe.d/*.conf 2>/dev/null || true",
                ),
            ],
            accepted: "",
        },
    ],
];
