//! Tests that figures that are printed together agree. Every sentence about a recorded result is compared with the
//! figures of its table. The same is tested with five rounds, one of which is fifty times slower.
#![allow(clippy::disallowed_methods, reason = "reads the fixtures beside it")]

use assay_fio::import::{self, Context};
use assay_model::criterion::{Metric, Quantity};
use assay_model::doubt::Validity;
use assay_model::result::{Judged, LimitKind, WorkloadResult};
use assay_model::sample::{Latency, Operations};
use assay_model::{Histogram, Planned, Run, Sample};
use std::path::Path;

/// Reads every recorded result of fio, with its name.
fn recorded() -> Vec<(String, Run, Vec<Sample>)> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut found = Vec::new();
    for folder in ["fio-3.33", "sections"] {
        for entry in std::fs::read_dir(fixtures.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|ext| ext != "json") {
                continue;
            }
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let documents = assay_fio::json::parse(std::fs::read(&path).unwrap()).unwrap();
            let context = Context {
                file: format!("{name}.json"),
                uid: name.clone(),
                version: "0".to_owned(),
                now: jiff::Timestamp::UNIX_EPOCH,
            };
            let (run, samples) = import::run(documents.last().unwrap(), &context);
            found.push((name, run, samples));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

fn slow_down(latency: &mut Latency, factor: f64) {
    latency.mean *= factor;
    latency.max = (latency.max as f64 * factor) as u64;
    for (_, nanos) in &mut latency.percentiles {
        *nanos = (*nanos as f64 * factor) as u64;
    }
    let bins = latency.histogram.bins();
    latency.histogram = bins
        .map(|(nanos, count)| ((nanos as f64 * factor) as u64, count))
        .collect::<Histogram>();
}

/// Whether a sample has enough operations that rounding of their number does not matter.
fn has_many_operations(sample: &Sample) -> bool {
    let done = sample
        .workers
        .iter()
        .flat_map(|worker| worker.operations.values());
    done.map(|done| done.count).sum::<u64>() >= 100
}

/// Makes operations slower: `factor` times the latency, and as many times fewer of them in the same time.
fn slow_down_operations(done: &mut Operations, factor: f64) {
    let fewer = |count: u64| (count as f64 / factor).ceil() as u64;
    done.count = fewer(done.count);
    done.bytes.0 = fewer(done.bytes.0);
    done.per_s /= factor;
    done.bytes_per_s /= factor;
    for latency in [&mut done.slat, &mut done.clat, &mut done.lat] {
        slow_down(latency, factor);
        latency.n = fewer(latency.n);
        let bins = latency.histogram.bins();
        latency.histogram = bins
            .map(|(nanos, count)| (nanos, fewer(count)))
            .collect::<Histogram>();
    }
}

/// Returns five rounds of the samples, the third of which is fifty times slower.
fn with_slow_round(run: &mut Run, samples: &[Sample]) -> Vec<Sample> {
    let template = run.plan.order.clone();
    run.plan.rounds = 5;
    run.plan.order.clear();
    let mut out = Vec::new();
    for round in 1..=5 {
        for (sample, slot) in samples.iter().zip(&template) {
            let mut sample = sample.clone();
            (sample.round, sample.slot) = (round, out.len() as u32);
            if round == 3 {
                for worker in &mut sample.workers {
                    let each = worker.operations.values_mut();
                    each.for_each(|done| slow_down_operations(done, 50.0));
                }
            }
            run.plan
                .order
                .push(assay_model::plan::Slot { round, ..*slot });
            out.push(sample);
        }
    }
    out
}

fn value(result: &WorkloadResult, quantity: Quantity) -> Option<f64> {
    Some(result.estimates.get(&Metric::all(quantity))?.value)
}

fn number(text: &str) -> f64 {
    let digits = text.trim().replace([',', '\u{202f}'], "");
    digits.parse().unwrap_or_else(|_| panic!("{text}"))
}

/// Converts a text such as `54.6 µs` to seconds.
fn seconds(text: &str) -> f64 {
    let (digits, unit) = text.trim().split_once(' ').unwrap();
    let unit = match unit {
        "ns" => 1e-9,
        "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        other => panic!("{other}"),
    };
    number(digits) * unit
}

/// Asserts that two figures differ by rounding at most.
fn assert_same(what: &str, a: f64, b: f64) {
    assert!(
        (a - b).abs() <= 0.02 * a.abs().max(b.abs()) + 0.005,
        "{what}: {a} and {b}"
    );
}

/// Checks the sentence about the limit against the figures of the table; returns whether it contains any.
fn check_limit(name: &str, result: &WorkloadResult, judged: &Judged) -> bool {
    let text = &result.limit.evidence;
    let what = format!("{name}: {text}");
    let rate = value(result, Quantity::Iops).unwrap();
    match result.limit.what {
        LimitKind::OneAtATime => {
            let (time, rest) = text.split_once(" each make ").unwrap();
            let printed = number(rest.split(" per second").next().unwrap());
            assert_same(&what, printed, rate);
            let in_flight = seconds(time) * printed;
            assert!((0.85..1.1).contains(&in_flight), "{what}: {in_flight}");
        }
        LimitKind::Flush => {
            let (flush, rest) = text
                .split_once(" takes ")
                .map(|(_, rest)| rest)
                .unwrap()
                .split_once(" of its ")
                .unwrap();
            let (whole, share) = rest.split_once(" (").unwrap();
            let share = number(share.trim_end_matches(" %)")) / 100.0;
            assert!(
                (seconds(flush) / seconds(whole) - share).abs() < 0.02,
                "{what}"
            );
            // One job writes: the time of a write with its flush is the time between two of them.
            assert_same(
                &what,
                seconds(whole) * 1e6,
                value(result, Quantity::Mean).unwrap() / 1e3,
            );
        }
        LimitKind::ToolCpu => {
            let percent: Vec<f64> = text
                .split(" %")
                .filter_map(|part| part.rsplit([' ', '(']).next()?.parse().ok())
                .collect();
            assert_eq!(percent.len(), 3, "{what}");
            assert!((percent[1] + percent[2] - percent[0]).abs() < 0.5, "{what}");
        }
        _ => {
            let Some((_, rest)) = text.split_once(" in flight gave ") else {
                return false;
            };
            let (other, rest) = rest.split_once(" per second (").unwrap();
            let sibling = rest.split(')').next().unwrap();
            let sibling = judged.results.iter().find(|one| one.workload == sibling);
            assert_same(
                &what,
                number(other),
                value(sibling.unwrap(), Quantity::Iops).unwrap(),
            );
        }
    }
    true
}

#[test]
fn every_printed_figure_agrees_with_those_beside_it() {
    let (mut pairs, mut sentences) = (0, 0);
    for (name, run, samples) in recorded() {
        let mut slow = run.clone();
        let slow_samples = with_slow_round(&mut slow, &samples);
        for (name, run, samples) in [
            (name.clone(), &run, &samples),
            (format!("{name} with a slow round"), &slow, &slow_samples),
        ] {
            if samples.len() > 1 && !samples.iter().all(has_many_operations) {
                continue;
            }
            let judged = assay_judge::judge_run(run, samples);
            let counted = judged
                .results
                .iter()
                .filter(|result| result.validity != Validity::Void);
            for result in counted {
                let plan = run.plan.workloads.iter();
                let fio = plan
                    .filter(|one| one.name == result.workload)
                    .find_map(Planned::fio);
                let (Some(rate), Some(mean)) =
                    (value(result, Quantity::Iops), value(result, Quantity::Mean))
                else {
                    continue;
                };
                // The load of several sections of a job file is described by the first.
                let several = result
                    .doubts
                    .iter()
                    .any(|one| one.doubt.code.contains("jobs"));
                if let Some(fio) = fio.filter(|_| !several) {
                    // Between two requests and while it submits one, a job has fewer in flight.
                    let (in_flight, most) = (rate * mean / 1e9, f64::from(fio.in_flight()));
                    assert!(
                        in_flight <= most * 1.05,
                        "{name}: {in_flight} of {most} in flight"
                    );
                    pairs += 1;
                }
                sentences += u32::from(check_limit(&name, result, &judged));
            }
        }
    }
    assert!(
        pairs >= 20 && sentences >= 4,
        "{pairs} pairs, {sentences} sentences"
    );
}
