use super::*;
use crate::sample_figures::sum_workers;
use assay_model::sample::{Latency, Operation, Operations, Worker};
use assay_model::{Bytes, Histogram, Nanos};
use proptest::prelude::*;

/// Returns a round that read 4 KiB blocks for one second with these latencies, given as (nanoseconds, count).
fn round(latencies: &[(u64, u64)]) -> FiguresByDirection {
    let histogram: Histogram = latencies.iter().copied().collect();
    let ios = histogram.count();
    let read = Operations {
        bytes: Bytes(ios * 4096),
        count: ios,
        runtime: Nanos(1_000_000_000),
        per_s: ios as f64,
        bytes_per_s: ios as f64 * 4096.0,
        clat: Latency {
            n: ios,
            max: histogram.bins().last().unwrap().0,
            mean: histogram.mean().unwrap(),
            histogram,
            ..Latency::default()
        },
        ..Operations::default()
    };
    sum_workers(&[Worker::default().with(Operation::Read, read)])
}

fn of(rounds: &[FiguresByDirection], metric: &str) -> Estimate {
    let rounds: Vec<&FiguresByDirection> = rounds.iter().collect();
    pool_metrics(&rounds)[&metric.parse().unwrap()].to_estimate()
}

#[test]
fn rates_are_averaged_and_latencies_pooled() {
    let rounds = [round(&[(10, 90), (1000, 10)]), round(&[(10, 300)])];
    assert_eq!(of(&rounds, "iops").value, 200.0);
    assert_eq!(of(&rounds, "throughput").value, 200.0 * 4096.0);
    // 390 of 400 operations took 10 ns: the mean of the two p97 would be 505.
    assert_eq!(of(&rounds, "p90").value, 10.0);
    assert_eq!(of(&rounds, "p99").value, 1000.0);
    assert_eq!(of(&rounds, "max").value, 1000.0);
    assert_eq!(of(&rounds, "mean").value, (3900.0 + 10_000.0) / 400.0);
}

#[test]
fn one_round_has_no_interval_and_the_maximum_never_has_one() {
    let one = round(&[(10, 100)]);
    assert_eq!(of(std::slice::from_ref(&one), "iops").interval, None);
    assert_eq!(of(std::slice::from_ref(&one), "iops").rounds, 1);
    assert_eq!(of(&[one.clone(), one.clone(), one], "max").interval, None);
}

#[test]
fn for_a_rate_it_is_the_interval_of_the_mean_up_to_the_logarithm() {
    let counts = [1000u64, 1010, 990, 1005, 995];
    let rounds: Vec<FiguresByDirection> = counts.iter().map(|&n| round(&[(10, n)])).collect();
    let estimate = of(&rounds, "iops");
    let interval = estimate.interval.unwrap();
    // Mean 1000, standard deviation √62.5, t(4) = 2.776: 1000 ± 9.815.
    let half = 2.776_445 * 62.5f64.sqrt() / 5f64.sqrt();
    assert!(
        (interval.high - (1000.0 + half)).abs() < 0.2,
        "{interval:?}"
    );
    assert!((interval.low - (1000.0 - half)).abs() < 0.2, "{interval:?}");
}

#[test]
fn equal_percentiles_keep_the_width_of_the_bins() {
    let rounds: Vec<FiguresByDirection> = (0..5).map(|_| round(&[(1_000_000, 500)])).collect();
    let interval = of(&rounds, "p99").interval.unwrap();
    assert!(
        interval.low < 990_000.0 && interval.high > 1_010_000.0,
        "{interval:?}"
    );
    // A rate has no bins.
    let interval = of(&rounds, "iops").interval.unwrap();
    assert_eq!((interval.low, interval.high), (500.0, 500.0));
}

#[test]
fn rounds_without_a_histogram_have_no_pooled_percentile() {
    let strip = |mut sides: FiguresByDirection| {
        for side in sides.values_mut() {
            side.latency.histogram = Histogram::default();
        }
        sides
    };
    let rounds = [strip(round(&[(10, 10)])), strip(round(&[(10, 10)]))];
    let rounds: Vec<&FiguresByDirection> = rounds.iter().collect();
    let pooled = pool_metrics(&rounds);
    assert!(!pooled.contains_key(&"p99".parse().unwrap()));
    assert!(pooled.contains_key(&"mean".parse().unwrap()));
}

proptest! {
    /// Merging from both ends gives the same result as merging all rounds but one.
    #[test]
    fn leaving_out_is_merging_the_others(
        rounds in prop::collection::vec(prop::collection::vec((1u64..500, 1u64..50), 1..20), 2..7),
    ) {
        let rounds: Vec<FiguresByDirection> = rounds.iter().map(|bins| round(bins)).collect();
        let sides: Vec<&SideFigures> = rounds.iter().map(|s| &s[&Direction::All]).collect();
        for (i, fast) in leave_each_out(&sides).iter().enumerate() {
            let others: Vec<&SideFigures> =
                sides.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, s)| *s).collect();
            let slow = merge_sides(&others);
            prop_assert_eq!(&fast.latency.histogram, &slow.latency.histogram);
            prop_assert_eq!(fast.latency.n, slow.latency.n);
            prop_assert_eq!(fast.latency.max(), slow.latency.max());
            prop_assert!((fast.iops - slow.iops).abs() < 1e-9);
            prop_assert!((fast.latency.mean().unwrap() - slow.latency.mean().unwrap()).abs() < 1e-6);
        }
    }

    #[test]
    fn the_value_lies_in_its_interval_and_the_unit_does_not_matter(
        counts in prop::collection::vec(1u64..10_000, 2..8),
    ) {
        let rounds: Vec<FiguresByDirection> = counts.iter().map(|&n| round(&[(n, n)])).collect();
        let [iops, bytes] = ["iops", "throughput"].map(|metric| of(&rounds, metric));
        if let (Some(a), Some(b)) = (iops.interval, bytes.interval) {
            prop_assert!(a.low <= iops.value && iops.value <= a.high);
            prop_assert!((b.low / 4096.0 / a.low - 1.0).abs() < 1e-6);
        }
    }
}
