//! Checks that figures which are printed together are consistent. In every pair that a stored run prints, rate times
//! latency is the number of requests in flight (Little's law).
#![allow(
    clippy::disallowed_methods,
    reason = "tests work in directories of their own"
)]

use assay_model::Planned;
use assay_model::criterion::{Metric, Quantity};
use assay_model::result::LimitKind;
use assay_store::Store;

/// Converts a text such as `54.6 µs` to seconds.
fn seconds(text: &str) -> f64 {
    let mut words = text.split_whitespace();
    let number: f64 = words.next().unwrap().parse().unwrap();
    let unit = match words.next().unwrap() {
        "ns" => 1e-9,
        "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        other => panic!("{other}"),
    };
    number * unit
}

#[test]
fn rate_times_latency_is_what_is_in_flight() {
    let packed = include_bytes!("fixtures/store-0.1.db.zst");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("assay.db");
    std::fs::write(&path, zstd::decode_all(&packed[..]).unwrap()).unwrap();
    let store = Store::open(&path).unwrap();
    let (mut pairs, mut sentences) = (0, 0);
    for row in store.runs().unwrap() {
        let (run, samples) = (store.run(row.id).unwrap(), store.samples(row.id).unwrap());
        let judged = assay_judge::judge_run(&run, &samples);
        for result in &judged.results {
            let estimate = |quantity| result.estimates.get(&Metric::all(quantity));
            let plan = run.plan.workloads.iter();
            let workload = plan
                .filter(|one| one.name == result.workload)
                .find_map(Planned::fio);
            if let (Some(rate), Some(mean), Some(workload)) =
                (estimate(Quantity::Iops), estimate(Quantity::Mean), workload)
            {
                let in_flight = rate.value * mean.value / 1e9;
                // The latency does not contain the time between two requests and the time of submission.
                let most = f64::from(workload.in_flight());
                assert!(
                    in_flight <= most * 1.05,
                    "{}: {in_flight} of {most}",
                    result.workload
                );
                pairs += 1;
            }
            if result.limit.what == LimitKind::OneAtATime {
                let (time, rest) = result.limit.evidence.split_once(" each make ").unwrap();
                let rate = rest
                    .split(" per second")
                    .next()
                    .unwrap()
                    .replace([',', ' '], "");
                let in_flight = seconds(time) * rate.parse::<f64>().unwrap();
                assert!(
                    (0.85..1.1).contains(&in_flight),
                    "{}",
                    result.limit.evidence
                );
                sentences += 1;
            }
        }
    }
    assert!(
        pairs >= 5 && sentences >= 1,
        "{pairs} pairs, {sentences} sentences"
    );
}
