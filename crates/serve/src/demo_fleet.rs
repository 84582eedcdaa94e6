//! A small invented fleet for a demonstration of every page. It has five machines whose configuration files are checked
//! by the real catalogue, two months of nightly runs, and a few trials that are judged by the real rules.

use crate::demo_bundle::{Files, add_mirror, add_nginx, base_files, pack_bundle};
use crate::demo_observations::{watch_network, watch_web_server};
use crate::demo_records::{Random, Speed, build_run, describe_facts, nightly_plan};
use crate::demo_trials::{build_trial, list_trials};
use crate::demo_tuning::tune_mail;
use assay_advice::{Catalogue, accept, findings};
use assay_facts::CollectOptions;
use assay_fleet::{History, collect_seen};
use assay_host::Bundle;
use assay_model::run::RunState;
use assay_model::{Machine, Run, Sample};
use assay_store::{SpanSurvey, Store};
use jiff::{SignedDuration, Timestamp};
use std::path::Path;

/// Ages in days of the checks of each machine, the oldest check first.
const CHECKS: [i64; 6] = [60, 30, 12, 5, 2, 0];

/// How much data the demonstration fleet has.
#[derive(Clone, Copy, Debug)]
pub struct DemoSize {
    /// Number of nights with a run of each machine.
    pub nights: i64,
    /// Number of checks of each machine, at most six.
    pub checks: usize,
}

impl DemoSize {
    /// Size that `assay lab demo --serve` uses.
    pub const WHOLE: Self = Self {
        nights: 45,
        checks: CHECKS.len(),
    };
}

/// Error that occurred while the fleet was created.
type Fault = Box<dyn std::error::Error + Send + Sync>;

/// Notice on every page of a store that contains this fleet.
pub const NOTICE: &str =
    "This is a demonstration: the machines are made up, and their figures come from a formula.";

/// Name of the file with accepted findings, in the directory of the store.
pub const ACCEPT: &str = "accept.toml";

const ACCEPTED: &str = r#"[[accept]]
rule = "sshd-root-password"
machine = "backup1"
reason = "the backup network has no other way in until the console server is installed"
owner = "ops"
expires = "2099-12-31"
"#;

/// A machine of the demonstration fleet.
struct DemoMachine {
    name: &'static str,
    cpu: &'static str,
    threads: u32,
    memory_gib: u64,
    target: &'static str,
    speed: Speed,
}

const KERNEL: &str = "6.1.0-28-amd64";
const NEW_KERNEL: &str = "6.1.0-31-amd64";

const MACHINES: [DemoMachine; 5] = [
    DemoMachine {
        name: "backup1",
        cpu: "Intel Xeon E3-1230 v6",
        threads: 8,
        memory_gib: 32,
        target: "/srv/backup",
        speed: Speed {
            alone_ns: 310e3,
            crowded_ns: 2.4e6,
        },
    },
    DemoMachine {
        name: "db1",
        cpu: "AMD EPYC 7313P 16-Core Processor",
        threads: 32,
        memory_gib: 128,
        target: "/var/lib/postgresql",
        speed: Speed {
            alone_ns: 82e3,
            crowded_ns: 210e3,
        },
    },
    DemoMachine {
        name: "mail1",
        cpu: "Intel Xeon E-2388G",
        threads: 16,
        memory_gib: 64,
        target: "/var/mail",
        speed: Speed {
            alone_ns: 96e3,
            crowded_ns: 260e3,
        },
    },
    DemoMachine {
        name: "web1",
        cpu: "AMD EPYC 7443P 24-Core Processor",
        threads: 8,
        memory_gib: 16,
        target: "/srv",
        speed: Speed {
            alone_ns: 120e3,
            crowded_ns: 330e3,
        },
    },
    DemoMachine {
        name: "web2",
        cpu: "AMD EPYC 7443P 24-Core Processor",
        threads: 8,
        memory_gib: 16,
        target: "/srv",
        speed: Speed {
            alone_ns: 122e3,
            crowded_ns: 335e3,
        },
    },
];

/// Fills a store and a directory of bundles with the fleet. The newest data is from `now`.
///
/// # Errors
/// The store or the directory cannot be written.
pub fn fill(
    store_path: &Path,
    history_dir: &Path,
    catalogue: &Catalogue,
    now: Timestamp,
    size: DemoSize,
) -> Result<(), Fault> {
    let mut store = Store::open(store_path)?;
    let history = History::at(history_dir.to_owned());
    let mut random = Random(21);
    for machine in &MACHINES {
        // A check two months ago, and after each change of its configuration.
        for &days in CHECKS.iter().skip(CHECKS.len().saturating_sub(size.checks)) {
            let at =
                now - SignedDuration::from_secs(days * 86_400 + 600 + (random.next() % 900) as i64);
            check_machine(&mut store, &history, catalogue, machine, days, at)?;
        }
    }
    for night in (0..size.nights).rev() {
        for machine in &MACHINES {
            add_run(&mut store, machine, now, night, &mut random)?;
        }
    }
    if let Some(dir) = store_path.parent() {
        assay_host::write_output(&dir.join(ACCEPT), ACCEPTED.as_bytes())?;
    }
    for (machine, days, demo) in list_trials() {
        let started = now - SignedDuration::from_secs(days * 86_400 + 30_000);
        let (trial, slots) = build_trial(&demo, started, KERNEL, &mut random);
        store.import_trial(&trial, &slots, Some(&describe_machine(&MACHINES[machine])))?;
    }
    let record = tune_mail(now - SignedDuration::from_hours(31), &mut random)?;
    store.import_tune(&record, Some(&describe_machine(&MACHINES[2])))?;
    let evening = now - SignedDuration::from_hours(15);
    if let Some(run) = watch_network(evening, &mut random) {
        store.import_observation(&run, None)?;
    }
    let web = &MACHINES[3];
    let answer = watch_web_server(web.name, now - SignedDuration::from_mins(50), &mut random)?;
    store.import_observation(&answer, Some(&describe_machine(web)))?;
    Ok(())
}

/// Returns the files that a machine had `days` days before the newest data.
fn describe_files(machine: &DemoMachine, days: i64) -> Files {
    let kernel = match (machine.name, days) {
        ("db1" | "web1", ..=12) => NEW_KERNEL,
        _ => KERNEL,
    };
    let mut files = base_files(
        machine.name,
        kernel,
        machine.cpu,
        machine.threads,
        machine.memory_gib,
    );
    let ssh = "etc/ssh/sshd_config";
    match machine.name {
        "backup1" => {
            add_mirror(&mut files, days > 2);
            files.insert(
                ssh,
                "PermitRootLogin yes\nPasswordAuthentication yes\nUsePAM yes\n".to_owned(),
            );
        }
        "db1" => {
            add_mirror(&mut files, true);
            let old = "vm.swappiness = 1\n";
            let text = match days > 12 {
                true => old.to_owned(),
                false => format!("{old}net.ipv4.tcp_syncookies = 0\n"),
            };
            files.insert("etc/sysctl.d/99-tuning.conf", text);
        }
        "mail1" => add_mirror(&mut files, true),
        "web1" => {
            let protocols = if days > 30 {
                "TLSv1 TLSv1.2 TLSv1.3"
            } else {
                "TLSv1.2 TLSv1.3"
            };
            add_nginx(&mut files, protocols, days <= 5);
        }
        _ => {
            add_nginx(&mut files, "TLSv1 TLSv1.1 TLSv1.2", false);
            files.insert(
                ssh,
                "PermitRootLogin yes\nPasswordAuthentication yes\nUsePAM yes\n".to_owned(),
            );
        }
    }
    files
}

fn check_machine(
    store: &mut Store,
    history: &History,
    catalogue: &Catalogue,
    machine: &DemoMachine,
    days: i64,
    at: Timestamp,
) -> Result<(), Fault> {
    let bytes = pack_bundle(&describe_files(machine, days))?;
    let bundle = Bundle::read(&bytes[..], machine.name)?;
    let options = CollectOptions {
        services: true,
        ..CollectOptions::default()
    };
    let facts = assay_facts::collect(&bundle, &options);
    let mut checked = findings(catalogue.all(), &facts);
    let today = at.to_zoned(jiff::tz::TimeZone::UTC).date();
    accept(&mut checked, ACCEPT, ACCEPTED, today, Some(machine.name));
    history.keep(
        machine.name,
        &bytes,
        at,
        env!("CARGO_PKG_VERSION"),
        &checked,
    )?;
    let (seen, lost) = collect_seen(&facts, &checked);
    store.look(&SpanSurvey {
        host: machine.name,
        at,
        scope: "demo",
        seen,
        lost,
    })?;
    Ok(())
}

fn describe_machine(machine: &DemoMachine) -> Machine {
    let hash = blake3::hash(machine.name.as_bytes()).to_hex();
    Machine {
        id: hash[..32].to_owned(),
        name: Some(machine.name.to_owned()),
    }
}

fn add_run(
    store: &mut Store,
    machine: &DemoMachine,
    now: Timestamp,
    night: i64,
    random: &mut Random,
) -> Result<(), Fault> {
    let started =
        now - SignedDuration::from_secs(night * 86_400 + 18_000 + (random.next() % 600) as i64);
    let kernel = if machine.name == "db1" && night < 12 {
        NEW_KERNEL
    } else {
        KERNEL
    };
    let mut speed = machine.speed;
    match machine.name {
        // The new kernel costs a sixth.
        "db1" if night < 12 => speed.crowded_ns *= 1.19,
        // One disk of the mirror failed.
        "backup1" if night < 2 => speed.alone_ns *= 1.45,
        _ => {}
    }
    let plan = nightly_plan(machine.target, random.next())?;
    let facts = describe_facts(machine.cpu, kernel);
    let (mut run, mut samples) = build_run(plan, started, facts, speed, random);
    // Somebody pressed Ctrl-C once.
    if machine.name == "web2" && night == 6 {
        run.state = RunState::Interrupted;
        samples.truncate(3);
    }
    store.import_run(&run, &samples, Some(&describe_machine(machine)))?;
    Ok(())
}

/// Builds one run of the fleet with its samples, for tests.
///
/// # Panics
/// Never, because the plan is part of the program.
#[must_use]
pub fn sample_run(started: Timestamp) -> (Run, Vec<Sample>) {
    let machine = &MACHINES[0];
    let mut random = Random(11);
    match nightly_plan(machine.target, 11) {
        Ok(plan) => {
            let facts = describe_facts(machine.cpu, KERNEL);
            build_run(plan, started, facts, machine.speed, &mut random)
        }
        Err(error) => unreachable!("the plan is part of the program: {error}"),
    }
}
