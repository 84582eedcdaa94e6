//! Cases of CPUs, their quotas and those who use them.

use super::made_machine::{Case, Part, Values, waiter};
use assay_why::EntityKind::{Group, Process};

pub(super) fn cases() -> Vec<Case> {
    let leak = |parts: Vec<Part>| -> &'static [Part] { Vec::leak(parts) };
    let busy: Values = &[
        ("cpu.user_total", 3.9),
        ("cpu.idle_total", 0.1),
        ("cpu.running", 9.0),
    ];
    let hog: Part = (
        Process,
        "miner",
        &[("cpu_total", 3.0), ("queue_total", 0.1)],
        &[("pid", "9")],
    );
    vec![
        ("cpu-steal", &[("cpu.steal_total", 1.0)], &[], &[]),
        (
            "softirq-one-cpu",
            &[("percpu.1.soft_total", 0.9), ("cpu.softirq_total", 0.9)],
            &[],
            &[],
        ),
        (
            "interrupts-one-cpu",
            &[
                ("percpu.1.interrupts_total", 5e4),
                ("percpu.1.soft_total", 0.3),
            ],
            &[],
            &[],
        ),
        (
            "cpu-governor",
            &[("cpu.frequency", 0.4), ("cpu.user_total", 3.0)],
            &[
                ("fact.cpu.governor", "powersave"),
                ("fact.cpu.frequency_driver", "acpi-cpufreq"),
            ],
            &[],
        ),
        ("cpu-heat", &[("cpu.thermal_total", 0.3)], &[], &[]),
        (
            "cpu-frequency",
            &[("cpu.frequency_limit", 0.4), ("cpu.user_total", 3.0)],
            &[],
            &[],
        ),
        (
            "clocksource",
            &[("cpu.system_total", 1.0)],
            &[("clocksource", "hpet"), ("clocksources", "tsc hpet")],
            &[],
        ),
        (
            "fork-storm",
            &[("cpu.forks_total", 5000.0), ("cpu.system_total", 2.0)],
            &[],
            &[],
        ),
        ("cpu-saturated", busy, &[], leak(vec![waiter("queue")])),
        ("cpu-hog", busy, &[], leak(vec![waiter("queue"), hog])),
        (
            "guest-cpu",
            busy,
            &[],
            &[(
                Process,
                "qemu-system-x86",
                &[("cpu_total", 0.5), ("queue_total", 0.6)],
                &[("pid", "5"), ("guest", "db")],
            )],
        ),
        (
            "cpu-quota",
            &[],
            &[],
            &[(
                Group,
                "/web",
                &[
                    ("cpu.periods_total", 10.0),
                    ("cpu.throttled_total", 9.0),
                    ("cpu.throttled_s_total", 0.8),
                    ("cpu.usage_total", 0.2),
                    ("cpu.quota", 0.2),
                ],
                &[],
            )],
        ),
        (
            "cpu-affinity",
            &[("percpu.0.idle_total", 0.0), ("percpu.1.idle_total", 1.0)],
            &[],
            &[(
                Process,
                "pinned",
                &[
                    ("cpu_total", 0.3),
                    ("queue_total", 2.0),
                    ("cpus_allowed", 1.0),
                ],
                &[("pid", "9")],
            )],
        ),
        (
            "short-lived-processes",
            &[("cpu.forks_total", 300.0)],
            &[],
            &[(
                Process,
                "sh",
                &[("children_cpu_total", 0.8), ("children.turnover", 1.0)],
                &[("pid", "9")],
            )],
        ),
    ]
}
