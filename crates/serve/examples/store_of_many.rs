//! Fills a store for `bench/serve`. `store_of_many STORE MACHINES RUNS` writes this number of machines, each with
//! findings and with this number of runs, a week apart. Figures come from a formula.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a program that makes a file for a benchmark"
)]

use assay_model::Machine;
use assay_model::run::RunState;
use assay_serve::demo_fleet::sample_run;
use assay_store::{About, SpanSurvey, SpanValue, Store};
use jiff::{SignedDuration, Timestamp};

/// Checks that machines fail, with the severities of their findings.
const RULES: [(&str, &str); 6] = [
    ("sshd-root-password", "high"),
    ("md-degraded", "high"),
    ("tcp-syncookies-off", "medium"),
    ("nginx-old-tls", "medium"),
    ("ssh-usedns", "low"),
    ("kernel-old", "info"),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [path, machines, runs] = words.as_slice() else {
        return Err("usage: store_of_many STORE MACHINES RUNS".into());
    };
    let (machines, runs): (i64, i64) = (machines.parse()?, runs.parse()?);
    let mut store = Store::open(path.as_ref())?;
    let now = Timestamp::now();
    let (pattern, samples) = sample_run(now);
    for number in 0..machines {
        let name = format!("machine-{number:03}");
        let machine = Machine {
            id: format!("{number:032x}"),
            name: Some(name.clone()),
        };
        let seen = |since: usize| {
            let rules = RULES.iter().enumerate();
            let chosen = rules.filter(|(at, _)| {
                (number as usize + at).is_multiple_of(3) && (*at < since || since > 3)
            });
            chosen
                .map(|(_, (rule, severity))| {
                    let key = (About::Finding, (*rule).to_owned());
                    (key, SpanValue::Value(format!("\"{severity}\"")))
                })
                .collect()
        };
        for (days, since) in [(365, 2), (number % 300 + 3, 6), (0, 6)] {
            store.look(&SpanSurvey {
                host: &name,
                at: now - SignedDuration::from_hours(days * 24 + 1),
                scope: "bench",
                seen: seen(since),
                lost: Vec::new(),
            })?;
        }
        for week in (0..runs).rev() {
            let mut run = pattern.clone();
            run.uid = format!("{number:016x}{week:016x}");
            run.started = now - SignedDuration::from_hours(week * 168 + number % 168);
            run.ended = Some(run.started + SignedDuration::from_secs(20));
            store.import_run(&run, &samples, Some(&machine))?;
        }
        if number % 50 == 0 {
            eprintln!("{number} of {machines} machines");
        }
    }
    // One that runs, for live pages.
    let mut run = pattern;
    run.uid = "f".repeat(32);
    run.state = RunState::Running;
    run.ended = None;
    store.create_run(&mut run)?;
    store.add_sample(run.id, &samples[0])?;
    Ok(())
}
