use super::*;
use assay_model::sample::Latency;
use assay_model::{Bytes, Histogram, Nanos};
use proptest::prelude::*;

fn latency(values: &[u64]) -> Latency {
    let histogram: Histogram = values.iter().map(|&value| (value, 1)).collect();
    Latency {
        n: values.len() as u64,
        max: values.iter().copied().max().unwrap_or(0),
        mean: histogram.mean().unwrap_or(0.0),
        histogram,
        ..Latency::default()
    }
}

fn io(values: &[u64], seconds: u64) -> Operations {
    let ios = values.len() as u64;
    Operations {
        bytes: Bytes(ios * 4096),
        count: ios,
        runtime: Nanos(seconds * 1_000_000_000),
        per_s: ios as f64 / seconds as f64,
        bytes_per_s: (ios * 4096) as f64 / seconds as f64,
        clat: latency(values),
        ..Operations::default()
    }
}

fn reader(values: &[u64], seconds: u64) -> Worker {
    Worker::default().with(Operation::Read, io(values, seconds))
}

fn get(sides: &FiguresByDirection, metric: &str) -> Option<f64> {
    compute_figures(sides)
        .get(&metric.parse().unwrap())
        .copied()
}

#[test]
fn rates_of_jobs_add_up_and_runtimes_do_not() {
    let sides = sum_workers(&[reader(&[10; 100], 2), reader(&[30; 300], 2)]);
    assert_eq!(get(&sides, "iops"), Some(200.0));
    assert_eq!(get(&sides, "throughput"), Some(200.0 * 4096.0));
    assert_eq!(get(&sides, "mean"), Some(25.0));
    assert_eq!(get(&sides, "p50"), Some(30.0));
    assert_eq!(get(&sides, "max"), Some(30.0));
    assert_eq!(get(&sides, "write.iops"), None);
    assert_eq!(get(&sides, "flush.mean"), None);
}

#[test]
fn a_write_waits_for_its_flush() {
    let job = Worker::default()
        .with(Operation::Write, io(&[5, 5, 5, 9], 1))
        .with(
            Operation::Flush,
            Operations::flushes(latency(&[400, 500, 600, 4000])),
        );
    let sides = sum_workers(&[job]);
    assert_eq!(get(&sides, "write.mean"), Some(6.0 + 1375.0));
    assert_eq!(get(&sides, "p50"), Some(505.0));
    assert_eq!(get(&sides, "max"), Some(4009.0));
    assert_eq!(get(&sides, "flush.p50"), Some(500.0));
    assert_eq!(get(&sides, "flush.iops"), Some(4.0));
    assert_eq!(get(&sides, "flush.throughput"), None);
}

#[test]
fn a_flush_after_every_fourth_write_delays_a_quarter_of_them() {
    let job = Worker::default()
        .with(Operation::Write, io(&[10; 8], 1))
        .with(Operation::Flush, Operations::flushes(latency(&[100, 100])));
    let sides = sum_workers(&[job]);
    assert_eq!(get(&sides, "mean"), Some(35.0));
    assert_eq!(get(&sides, "p50"), Some(10.0));
    assert_eq!(get(&sides, "p90"), Some(110.0));
}

#[test]
fn a_mix_is_told_apart() {
    let job = Worker::default()
        .with(Operation::Read, io(&[10; 3], 1))
        .with(Operation::Write, io(&[50; 1], 1));
    let sides = sum_workers(&[job]);
    assert_eq!(get(&sides, "read.iops"), Some(3.0));
    assert_eq!(get(&sides, "write.iops"), Some(1.0));
    assert_eq!(get(&sides, "iops"), Some(4.0));
    assert_eq!(get(&sides, "mean"), Some(20.0));
}

#[test]
fn printed_percentiles_serve_alone_and_are_never_merged() {
    let mut job = reader(&[7; 10], 1);
    let clat = &mut job.operations.get_mut(&Operation::Read).unwrap().clat;
    clat.histogram = Histogram::default();
    clat.percentiles = vec![(99.0, 7)];
    assert_eq!(get(&sum_workers(&[job.clone()]), "p99"), Some(7.0));
    assert_eq!(get(&sum_workers(&[job.clone(), job]), "p99"), None);
}

#[test]
fn nothing_measured_has_no_figures() {
    assert!(compute_figures(&sum_workers(&[])).is_empty());
    assert!(compute_figures(&sum_workers(&[Worker::default()])).is_empty());
}

#[test]
fn a_percentile_does_not_exceed_the_exact_maximum() {
    let mut job = reader(&[1008], 1);
    job.operations.get_mut(&Operation::Read).unwrap().clat.max = 1005;
    assert_eq!(get(&sum_workers(&[job]), "p99.9"), Some(1005.0));
}

proptest! {
    /// Quantiles of the sum are sums of the quantiles, and no operation is lost. The expected values come from sorted
    /// lists, repeated to a common length.
    #[test]
    fn flushes_add_quantile_by_quantile(
        mut writes in prop::collection::vec(1u64..1000, 1..40),
        mut flushes in prop::collection::vec(1u64..100_000, 1..40),
    ) {
        let write = LatencyDistribution::of_operations(&io(&writes, 1));
        let flush = LatencyDistribution::of_calls(&Operations::flushes(latency(&flushes)));
        let both = write.followed_by(&flush);
        prop_assert_eq!(both.histogram.count(), writes.len() as u64);
        while flushes.len() < writes.len() {
            flushes.push(0);
        }
        writes.sort_unstable();
        flushes.sort_unstable();
        let mut slow: Vec<u64> = Vec::new();
        for w in 0..writes.len() * flushes.len() {
            slow.push(writes[w / flushes.len()] + flushes[w / writes.len()]);
        }
        // The last operation is always the slowest write with the slowest flush.
        prop_assert_eq!(both.histogram.bins().last().map(|b| b.0), slow.last().copied());
        for percent in [50.0, 90.0, 99.0] {
            let got = both.histogram.percentile(percent).unwrap_or(0);
            // Whole operations: a quantile may move by one operation.
            let rank = |shift: f64| {
                let p = percent / 100.0 + shift / writes.len() as f64;
                let at = (p * slow.len() as f64).ceil() as isize - 1;
                slow[at.clamp(0, slow.len() as isize - 1) as usize]
            };
            prop_assert!(rank(-1.0) <= got && got <= rank(1.0), "{} not in {}..{}", got, rank(-1.0), rank(1.0));
        }
    }

    #[test]
    fn as_many_flushes_as_writes_give_the_sums_in_order(
        pairs in prop::collection::vec((1u64..1000, 1u64..100_000), 1..60),
    ) {
        let (mut writes, mut flushes): (Vec<u64>, Vec<u64>) = pairs.into_iter().unzip();
        let both = LatencyDistribution::of_operations(&io(&writes, 1))
            .followed_by(&LatencyDistribution::of_calls(&Operations::flushes(latency(&flushes))));
        writes.sort_unstable();
        flushes.sort_unstable();
        let expected: Histogram = writes.iter().zip(&flushes).map(|(w, f)| (w + f, 1)).collect();
        prop_assert_eq!(both.histogram, expected);
    }
}
