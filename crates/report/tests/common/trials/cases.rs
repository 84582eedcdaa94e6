//! Synthetic trials: one for each verdict, and difficult cases.

use super::*;

/// Larger clusters give a gain, and the guardrail holds.
pub fn better() -> TrialCase {
    let mut plan = plan(
        "qcow2-cluster-size",
        "SYNTHETIC: larger clusters for qcow2 images",
        Change::SideBySide {
            now: image(&[], CacheMode::None),
            changed: image(&[("cluster_size", "2M")], CacheMode::None),
        },
        fio(Pattern::RandWrite, 16),
        Quantity::Iops,
    );
    plan.parameters
        .insert("cluster_size".to_owned(), "2M".to_owned());
    let formula = Formula {
        rate_ratio: 1.11,
        latency_ratio: 0.9,
        tail_ratio: 0.93,
        noise: 0.10,
        void: &[4],
        ..Formula::default()
    };
    carry_out(
        trial(7, plan),
        &formula,
        ["cluster_size 65536", "cluster_size 2097152"],
        "fio-3.33",
    )
}

/// More requests, but a tail latency beyond the guardrail.
pub fn worse() -> TrialCase {
    let mut plan = plan(
        "nginx-worker-processes",
        "SYNTHETIC: one worker for each CPU",
        Change::Set {
            setting: Setting::Config {
                file: "/etc/nginx/nginx.conf".to_owned(),
                language: ConfigLanguage::Nginx,
                section: vec![],
                key: "worker_processes".to_owned(),
                validate: ["nginx", "-t", "-c", "{file}"].map(str::to_owned).to_vec(),
                reload: ["systemctl", "reload", "nginx"].map(str::to_owned).to_vec(),
            },
            value: Some("auto".to_owned()),
        },
        Load::Http(Box::new(assay_model::load::Http {
            url: "http://127.0.0.1:8080/1k".to_owned(),
            connections: 32,
            ..assay_model::load::Http::default()
        })),
        Quantity::Iops,
    );
    plan.target = "http://127.0.0.1:8080/1k".to_owned();
    plan.risk = RiskLevel::Service;
    plan.guards.push(Guard {
        metric: Metric::all(Quantity::P999),
        margin: 0.25,
    });
    let formula = Formula {
        rate: 21_400.0,
        latency: 1.45e6,
        rate_ratio: 1.06,
        latency_ratio: 0.97,
        tail_ratio: 1.27,
        noise: 0.09,
        bytes: 1024.0,
        ..Formula::default()
    };
    let mut trial = trial(8, plan);
    trial.target = None;
    carry_out(trial, &formula, ["1", "auto"], "assay-http 0.0.0")
}

/// A mount option without a relevant effect.
pub fn no_difference() -> TrialCase {
    let mut plan = plan(
        "noatime",
        "SYNTHETIC: do not write access times",
        Change::Set {
            setting: Setting::MountOption {
                mountpoint: "/srv".to_owned(),
                choices: vec!["relatime".to_owned(), "noatime".to_owned()],
            },
            value: Some("noatime".to_owned()),
        },
        fio(Pattern::RandRead, 4),
        Quantity::Iops,
    );
    plan.risk = RiskLevel::Low;
    let formula = Formula {
        rate_ratio: 1.003,
        noise: 0.022,
        ..Formula::default()
    };
    carry_out(
        trial(9, plan),
        &formula,
        ["relatime", "noatime"],
        "fio-3.33",
    )
}

/// A noisy machine and a small effect.
pub fn undecided() -> TrialCase {
    let mut plan = plan(
        "io-scheduler",
        "SYNTHETIC: another I/O scheduler",
        Change::Set {
            setting: Setting::Queue {
                device: "vda".to_owned(),
                attribute: "scheduler".to_owned(),
            },
            value: Some("mq-deadline".to_owned()),
        },
        fio(Pattern::RandRead, 16),
        Quantity::P99,
    );
    plan.guards = vec![Guard {
        metric: Metric::all(Quantity::Iops),
        margin: 0.05,
    }];
    let formula = Formula {
        tail_ratio: 0.955,
        noise: 0.13,
        void: &[9, 23],
        ..Formula::default()
    };
    carry_out(
        trial(10, plan),
        &formula,
        ["none", "mq-deadline"],
        "fio-3.33",
    )
}

/// Faster, because acknowledged writes are not durable.
pub fn unsafe_() -> TrialCase {
    let mut plan = plan(
        "qemu-cache-unsafe",
        "SYNTHETIC: let QEMU ignore flushes",
        Change::SideBySide {
            now: image(&[], CacheMode::None),
            changed: image(&[], CacheMode::Unsafe),
        },
        fio(Pattern::RandWrite, 1),
        Quantity::Iops,
    );
    plan.safety = Some(SafetyRule::AcknowledgedWrites);
    plan.risk = RiskLevel::DataLoss;
    let mut trial = trial(11, plan);
    let proof = |side, lost| DurabilityProof {
        side,
        method: "QEMU killed after the flush was acknowledged, the image read back".to_owned(),
        acknowledged: 1000,
        lost,
    };
    trial.durability = vec![proof(Side::Now, 0), proof(Side::Changed, 312)];
    let formula = Formula {
        rate: 410.0,
        latency: 2.4e6,
        rate_ratio: 41.0,
        latency_ratio: 0.025,
        tail_ratio: 0.04,
        pairs: 6,
        ..Formula::default()
    };
    carry_out(trial, &formula, ["cache none", "cache unsafe"], "fio-3.33")
}

/// A login that no longer waits for a name server: much faster, and lower is better.
pub fn login() -> TrialCase {
    let server = |value: &str| Arm::Sshd {
        config: "/etc/ssh/sshd_config".to_owned(),
        set: [("UseDNS".to_owned(), value.to_owned())]
            .into_iter()
            .collect(),
    };
    let mut plan = plan(
        "ssh-usedns",
        "SYNTHETIC: no reverse look-up at login",
        Change::SideBySide {
            now: server("yes"),
            changed: server("no"),
        },
        Load::Command {
            argv: ["ssh", "-p", "{port}", "{host}", "true"]
                .map(str::to_owned)
                .to_vec(),
            prints: None,
        },
        Quantity::P50,
    );
    plan.guards = vec![];
    plan.keep = Some(Change::Set {
        setting: Setting::Config {
            file: "/etc/ssh/sshd_config".to_owned(),
            language: ConfigLanguage::Ssh,
            section: vec![],
            key: "UseDNS".to_owned(),
            validate: ["sshd", "-t", "-f", "{file}"].map(str::to_owned).to_vec(),
            reload: ["systemctl", "reload", "ssh"].map(str::to_owned).to_vec(),
        },
        value: Some("no".to_owned()),
    });
    plan.risk = RiskLevel::Lockout;
    let formula = Formula {
        rate: 0.19,
        latency: 5.2e9,
        rate_ratio: 28.0,
        latency_ratio: 0.036,
        tail_ratio: 0.05,
        bytes: 0.0,
        ..Formula::default()
    };
    let mut trial = trial(12, plan);
    trial.kept = Some(Kept::Kept);
    carry_out(trial, &formula, ["yes", "no"], "assay-command 0.0.0")
}

/// Both sides are the same.
pub fn aa() -> TrialCase {
    let mut plan = plan(
        "qcow2-cluster-size",
        "SYNTHETIC: larger clusters for qcow2 images",
        Change::SideBySide {
            now: image(&[], CacheMode::None),
            changed: image(&[], CacheMode::None),
        },
        fio(Pattern::RandWrite, 16),
        Quantity::Iops,
    );
    plan.aa = true;
    let formula = Formula {
        noise: 0.07,
        pairs: 30,
        ..Formula::default()
    };
    carry_out(
        trial(13, plan),
        &formula,
        ["cluster_size 65536", "cluster_size 65536"],
        "fio-3.33",
    )
}

/// Both sides are the same, but the trial reports a difference.
pub fn false_alarm() -> TrialCase {
    let mut case = aa();
    case.judgement.verdict = Verdict::Better;
    case
}

/// The load fails without the change and works with it.
pub fn failing() -> TrialCase {
    let mut case = worse();
    case.pairs.truncate(1);
    case.judgement = judge(&case.trial, &case.pairs);
    case.judgement.figures = rows(&case);
    let error = "connection refused by 127.0.0.1:8080";
    case.pairs
        .extend((0..5).map(|_| PairOutcome::FailedChanged {
            error: error.to_owned(),
        }));
    case.judgement.verdict = Verdict::Unsafe;
    case.judgement.left_out = 5;
    case.judgement.done = true;
    case.judgement.reason = format!(
        "the load failed 5 times only with the change and 0 times otherwise, which is no chance; last: {error}"
    );
    case
}

/// Stopped before its first pair was complete.
pub fn empty() -> TrialCase {
    let plan = no_difference().trial.plan;
    let mut trial = trial(14, plan);
    trial.state = TrialState::Stopped;
    trial.kept = None;
    let formula = Formula {
        pairs: 0,
        ..Formula::default()
    };
    carry_out(trial, &formula, ["relatime", "noatime"], "fio-3.33")
}

/// Names, values and messages with markup and deceptive characters.
pub fn hostile() -> TrialCase {
    const EVIL: &str = "</title><script>alert(1)</script>\"'&\u{202e}|`*";
    let mut case = worse();
    let plan = &mut case.trial.plan;
    for text in [
        &mut plan.advice,
        &mut plan.title,
        &mut plan.target,
        &mut plan.predicts,
    ] {
        *text = EVIL.to_owned();
    }
    plan.change = Change::Set {
        setting: Setting::Command {
            read: vec![EVIL.to_owned()],
            apply: vec![EVIL.to_owned()],
            undo: vec![EVIL.to_owned()],
        },
        value: Some(EVIL.to_owned()),
    };
    plan.load = Load::Command {
        argv: vec![EVIL.to_owned()],
        prints: None,
    };
    case.trial.remarks = vec![EVIL.to_owned()];
    case.trial.uid = EVIL.to_owned();
    case.trial.assay_version = EVIL.to_owned();
    case.judgement.reason = EVIL.to_owned();
    case.trial.durability = vec![DurabilityProof {
        side: Side::Changed,
        method: EVIL.to_owned(),
        acknowledged: 10,
        lost: 1,
    }];
    for slot in &mut case.slots {
        slot.read_back = EVIL.to_owned();
        slot.sample.tool = EVIL.to_owned();
        slot.doubts = vec![Doubt {
            code: EVIL.to_owned(),
            severity: Severity::Suspect,
            evidence: EVIL.to_owned(),
            remedy: EVIL.to_owned(),
        }];
    }
    case.pairs.push(PairOutcome::FailedChanged {
        error: EVIL.to_owned(),
    });
    case
}

/// Returns all synthetic trials with their names.
pub fn all() -> Vec<(&'static str, TrialCase)> {
    vec![
        ("better", better()),
        ("worse", worse()),
        ("no_difference", no_difference()),
        ("undecided", undecided()),
        ("unsafe", unsafe_()),
        ("login", login()),
        ("aa", aa()),
        ("false_alarm", false_alarm()),
        ("failing", failing()),
        ("empty", empty()),
    ]
}
