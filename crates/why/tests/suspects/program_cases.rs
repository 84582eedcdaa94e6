//! Cases of programs: their limits, locks and pipes.

use super::made_machine::{BUSY_DISK, Case, Part, waiter};
use assay_why::EntityKind::{Disk, Group, Listener, Process};

pub(super) fn cases() -> Vec<Case> {
    let leak = |parts: Vec<Part>| -> &'static [Part] { Vec::leak(parts) };
    vec![
        (
            "files-exhausted",
            &[],
            &[],
            &[(
                Process,
                "web",
                &[
                    ("files.open", 1024.0),
                    ("files.limit", 1024.0),
                    ("cpu_total", 0.1),
                ],
                &[("pid", "6")],
            )],
        ),
        (
            "lock-polled",
            &[],
            &[],
            &[(
                Process,
                "app",
                &[
                    ("polls_lock", 1.0),
                    ("asleep.timer", 0.2),
                    ("switches_total", 10.0),
                ],
                &[
                    ("pid", "6"),
                    ("polled_file", "/srv/db"),
                    ("lock_holder", "job (process 9)"),
                    ("lock_holder_pid", "9"),
                ],
            )],
        ),
        (
            "fifo-reader",
            &[],
            &[],
            &[(
                Process,
                "report",
                &[("wait.fifo-reader", 1.0)],
                &[("pid", "6")],
            )],
        ),
        (
            "traced",
            &[],
            &[],
            &[(
                Process,
                "web",
                &[("traced", 0.4), ("stopped", 0.5), ("cpu_total", 0.2)],
                &[
                    ("pid", "6"),
                    ("tracer", "strace (process 9)"),
                    ("tracer_pid", "9"),
                ],
            )],
        ),
        (
            "user-processes",
            &[],
            &[],
            &[(
                Process,
                "worker",
                &[("user.tasks", 40.0), ("user.tasks_limit", 40.0)],
                &[("pid", "6"), ("uid", "1000")],
            )],
        ),
        (
            "processes-pile-up",
            &[],
            &[],
            &[(Process, "cron", &[("children+", 5.0)], &[("pid", "6")])],
        ),
        (
            "log-flood",
            &[],
            &[],
            &[(
                Process,
                "daemon",
                &[
                    ("cpu_total", 0.9),
                    ("queue_total", 0.0),
                    ("io.writes_total", 1e5),
                    ("io.write_total", 9e6),
                ],
                &[("pid", "6")],
            )],
        ),
        (
            "database-lock",
            &[],
            &[],
            &[(
                Process,
                "postgres",
                &[("wait.database-lock", 1.0)],
                &[
                    ("pid", "6"),
                    ("title", "postgres: me shop [local] UPDATE waiting"),
                ],
            )],
        ),
        (
            "inotify-limit",
            &[
                ("inotify.share", 1.0),
                ("inotify.instances", 128.0),
                ("inotify.most_instances", 128.0),
                ("inotify.watches", 5.0),
                ("inotify.most_watches", 65536.0),
            ],
            &[
                ("inotify.user", "1000"),
                ("inotify.process", "x (process 6)"),
            ],
            &[],
        ),
        ("files-of-all", &[("files.open", 1e6)], &[], &[]),
        (
            "tasks-limit",
            &[],
            &[],
            &[(
                Group,
                "/web",
                &[
                    ("pids.current", 100.0),
                    ("pids.max", 100.0),
                    ("pids.refused_total", 1.0),
                ],
                &[],
            )],
        ),
        (
            "frozen",
            &[],
            &[],
            &[(Group, "/web", &[("frozen", 1.0)], &[])],
        ),
        (
            "lock-contention",
            &[],
            &[],
            leak(vec![waiter("lock"), (Disk, "sda", BUSY_DISK, &[])]),
        ),
        (
            "slow-reader",
            &[],
            &[],
            &[
                (
                    Process,
                    "yes",
                    &[("wait.slow-reader", 0.9)],
                    &[
                        ("pid", "5"),
                        ("waits_in", "anon_pipe_write"),
                        ("blocked_on", "pipe:[9]"),
                        ("peer", "reader (process 6)"),
                        ("peer_pid", "6"),
                    ],
                ),
                (
                    Process,
                    "reader",
                    &[("cpu_total", 0.0), ("asleep.timer", 1.0)],
                    &[("pid", "6")],
                ),
            ],
        ),
        (
            "local-socket",
            &[],
            &[],
            &[(
                Process,
                "client",
                &[("wait.local-socket", 1.0)],
                &[("pid", "5"), ("waits_in", "unix_wait_for_peer")],
            )],
        ),
        (
            "file-lock",
            &[],
            &[],
            &[(
                Process,
                "job",
                &[("wait.file-lock", 1.0)],
                &[
                    ("pid", "5"),
                    ("locked_file", "file 8:1:77"),
                    ("peer", "other (process 6)"),
                    ("peer_pid", "6"),
                ],
            )],
        ),
        (
            "lock-convoy",
            &[],
            &[],
            &[(
                Process,
                "java",
                &[
                    ("wait.user-lock", 6.0),
                    ("cpu_total", 1.0),
                    ("threads", 8.0),
                    ("switches_total", 9000.0),
                ],
                &[("pid", "5")],
            )],
        ),
        (
            "zombies",
            &[("zombies", 900.0)],
            &[("zombies_of", "init (process 1)")],
            &[],
        ),
        (
            "local-queue",
            &[],
            &[],
            &[(
                Listener,
                "local socket /run/php.sock",
                &[("local_queue", 128.0), ("local_most", 128.0)],
                &[],
            )],
        ),
    ]
}
