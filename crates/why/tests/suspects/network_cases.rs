//! Cases of the network.

use super::made_machine::{Case, Values};
use assay_why::EntityKind::{Connection, Interface, Listener, Process};

const SHAPED: Values = &[
    ("tx.bytes_total", 5e5),
    ("shaper.over_total", 90.0),
    ("shaper.backlog", 30000.0),
    ("shaper.rate", 5e5),
    ("queue.drops_total", 4.0),
];
const NETEM: Values = &[
    ("tx.bytes_total", 5e5),
    ("shaper.packets_total", 90.0),
    ("shaper.delay", 0.1),
    ("shaper.loss", 0.02),
    ("queue.drops_total", 0.4),
];

pub(super) fn cases() -> Vec<Case> {
    vec![
        (
            "listen-overflow",
            &[("tcp.listen_overflows_total", 4.0)],
            &[],
            &[],
        ),
        (
            "accept-queue",
            &[],
            &[],
            &[(Listener, "port 80", &[("queue", 9.0)], &[])],
        ),
        ("retransmits", &[("tcp.retransmitted_total", 6.0)], &[], &[]),
        (
            "conntrack-full",
            &[("conntrack.count", 65536.0), ("conntrack.drop_total", 30.0)],
            &[],
            &[],
        ),
        ("udp-full", &[("udp.full_total", 30.0)], &[], &[]),
        (
            "interface-errors",
            &[],
            &[],
            &[(
                Interface,
                "eth0",
                &[
                    ("rx.packets_total", 9.0),
                    ("tx.packets_total", 9.0),
                    ("rx.errors_total", 5.0),
                    ("tx.errors_total", 0.0),
                    ("rx.drops_total", 0.0),
                    ("tx.drops_total", 0.0),
                ],
                &[],
            )],
        ),
        (
            "link-full",
            &[],
            &[],
            &[(
                Interface,
                "eth0",
                &[
                    ("rx.bytes_total", 1.2e8),
                    ("tx.bytes_total", 1e5),
                    ("speed_mbit", 1000.0),
                ],
                &[("duplex", "full")],
            )],
        ),
        (
            "link-slow",
            &[],
            &[],
            &[(
                Interface,
                "eth0",
                &[
                    ("rx.bytes_total", 5e6),
                    ("tx.bytes_total", 1e5),
                    ("speed_mbit", 100.0),
                ],
                &[("duplex", "full")],
            )],
        ),
        ("name-server", &[("dns.open", 2.0)], &[], &[]),
        (
            "connection-timeouts",
            &[("tcp.connecting", 3.0)],
            &[("connecting_to", "192.0.2.9:5432")],
            &[],
        ),
        ("ports-used-up", &[("tcp.time_wait", 27000.0)], &[], &[]),
        ("tcp-memory", &[("tcp.pruned_total", 30.0)], &[], &[]),
        ("syn-flood", &[("tcp.cookies_total", 90.0)], &[], &[]),
        (
            "packet-backlog",
            &[("softnet.dropped_total", 90.0)],
            &[],
            &[],
        ),
        (
            "packet-shaper",
            &[],
            &[],
            &[(Interface, "eth0", SHAPED, &[("shaper", "tbf")])],
        ),
        (
            "packet-delay",
            &[],
            &[],
            &[(Interface, "eth0", NETEM, &[("shaper", "netem")])],
        ),
        (
            "packet-loss-added",
            &[],
            &[],
            &[(Interface, "eth0", NETEM, &[("shaper", "netem")])],
        ),
        (
            "unread-data",
            &[],
            &[],
            &[
                (
                    Connection,
                    "10.0.0.1:80 to 10.0.0.2:9",
                    &[("unread", 90000.0), ("wait.unread", 1.0)],
                    &[("owner", "web (process 6)"), ("owner_pid", "6")],
                ),
                (Process, "web", &[("cpu_total", 0.0)], &[("pid", "6")]),
            ],
        ),
        (
            "zero-window",
            &[],
            &[],
            &[(
                Connection,
                "10.0.0.1:80 to 10.0.0.2:9",
                &[("unsent", 90000.0), ("wait.peer-closed", 1.0)],
                &[("owner", "web (process 6)")],
            )],
        ),
        (
            "unanswered-data",
            &[],
            &[],
            &[(
                Connection,
                "10.0.0.1:80 to 10.0.0.2:9",
                &[("unsent", 900.0), ("tries", 5.0), ("wait.unanswered", 1.0)],
                &[("remote_address", "10.0.0.2")],
            )],
        ),
    ]
}
