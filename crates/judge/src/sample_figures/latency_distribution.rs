//! Latency distribution of one direction: merged over jobs and rounds, and with the flush time added to writes. Rates
//! are in the parent module.

use assay_model::Histogram;
use assay_model::sample::{Latency, Operations};

/// Latencies of one direction, as histogram or percentiles, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct LatencyDistribution {
    /// Number of operations in the distribution.
    pub n: u64,
    /// Number of failed operations, each of which counts as slower than any other.
    failed: u64,
    /// Sum of all latencies in nanoseconds, computed from the exact mean of the load generator.
    sum: f64,
    /// Largest latency in nanoseconds, which is exact.
    largest: u64,
    /// Histogram of all latencies; empty if at least one merged part has no histogram.
    pub histogram: Histogram,
    /// Percentiles as printed, if there is no histogram. They cannot be merged.
    printed: Vec<(f64, u64)>,
}

impl LatencyDistribution {
    /// Reads the latency of a direction of a job. Prefers the time from submission to completion (`lat`). If `lat` has
    /// no distribution, uses the time from acceptance by the kernel to completion (`clat`). `clat` omits the time of
    /// submission, except for engines that do one I/O at a time.
    pub(crate) fn of_operations(io: &Operations) -> Self {
        let known =
            |latency: &&Latency| !latency.histogram.is_empty() || !latency.percentiles.is_empty();
        let best = [&io.lat, &io.clat].into_iter().find(known);
        let latency = match best {
            Some(latency) => latency,
            None if io.lat.mean > 0.0 => &io.lat,
            None => &io.clat,
        };
        // Without a count, the rate is the weight of this direction.
        let count = match io.count {
            0 => io.per_s.round() as u64,
            count => count,
        };
        Self {
            failed: io.errors,
            ..Self::of_latency(latency, count)
        }
    }

    /// Reads the latency of flushes (`fsync`, `fdatasync`).
    pub(crate) fn of_calls(flushes: &Operations) -> Self {
        Self::of_latency(&flushes.lat, flushes.count)
    }

    /// Reads a latency. `n` is used if fio did not print the count (before 3.18).
    fn of_latency(latency: &Latency, n: u64) -> Self {
        let n = if latency.n > 0 { latency.n } else { n };
        let mean = Some(latency.mean).filter(|mean| mean.is_finite() && *mean > 0.0);
        if n == 0 || (mean.is_none() && latency.max == 0 && latency.histogram.is_empty()) {
            return Self::default();
        }
        let mean = mean.or_else(|| latency.histogram.mean()).unwrap_or(0.0);
        let bins = latency.histogram.bins().last().map_or(0, |(ns, _)| ns);
        Self {
            n,
            failed: 0,
            sum: mean * n as f64,
            largest: if latency.max > 0 { latency.max } else { bins },
            histogram: latency.histogram.clone(),
            printed: if latency.histogram.is_empty() {
                latency.percentiles.clone()
            } else {
                Vec::new()
            },
        }
    }

    /// Merges distributions. If a part has no histogram, the result has no percentiles, unless that
    /// part is the only one.
    pub(crate) fn merge<'a>(parts: impl Iterator<Item = &'a Self>) -> Self {
        let parts: Vec<&Self> = parts.filter(|part| part.n > 0).collect();
        if let [only] = parts[..] {
            return only.clone();
        }
        let mut whole = Self::default();
        let known = parts.iter().all(|part| !part.histogram.is_empty());
        for part in parts {
            whole.n = whole.n.saturating_add(part.n);
            whole.failed = whole.failed.saturating_add(part.failed);
            whole.sum += part.sum;
            whole.largest = whole.largest.max(part.largest);
            if known {
                whole.histogram.merge(&part.histogram);
            }
        }
        whole
    }

    /// Adds to each operation the time of one operation of `next`, as a flush after a write.
    ///
    /// The mean is exact. The distribution assumes that slow operations are followed by slow ones
    /// (comonotone: quantiles add up), because the load generator does not report which flush
    /// followed which write. If `next` has fewer operations, the remaining ones get no addition.
    pub(crate) fn followed_by(&self, next: &Self) -> Self {
        if next.n == 0 || self.n == 0 {
            return self.clone();
        }
        let share = (next.n as f64 / self.n as f64).min(1.0);
        let per_call = next.sum / next.n as f64;
        let known = !self.histogram.is_empty() && !next.histogram.is_empty();
        Self {
            n: self.n,
            failed: self.failed,
            sum: self.sum + per_call * share * self.n as f64,
            largest: self.largest.saturating_add(next.largest),
            histogram: if known {
                let mut padded = next.histogram.clone();
                padded.record(0, self.n.saturating_sub(next.n));
                add_quantiles(&self.histogram, &padded)
            } else {
                Histogram::default()
            },
            printed: Vec::new(),
        }
    }

    /// Returns the mean in nanoseconds.
    pub(crate) fn mean(&self) -> Option<f64> {
        (self.n > 0 && self.sum > 0.0).then(|| self.sum / self.n as f64)
    }

    /// Returns the largest latency in nanoseconds.
    pub(crate) fn max(&self) -> Option<f64> {
        (self.largest > 0).then_some(self.largest as f64)
    }

    /// Returns a percentile in nanoseconds: from the histogram, else as printed. It is capped at
    /// the exact largest value, because the midpoint of the last bin can lie above it.
    pub(crate) fn percentile(&self, percent: f64) -> Option<f64> {
        let printed = || {
            let same = |(p, _): &&(f64, u64)| (p - percent).abs() < 1e-6;
            self.printed.iter().find(same).map(|&(_, ns)| ns)
        };
        let value = match self.failed {
            0 => self.histogram.percentile(percent).or_else(printed)?,
            failed => {
                let all = self.histogram.count().checked_add(failed)?;
                let rank = (percent / 100.0 * all as f64).ceil().max(1.0);
                // A percentile among the failed operations has no value.
                let answered = rank <= self.histogram.count() as f64;
                answered.then(|| self.histogram.at_rank(rank as u64))??
            }
        };
        Some(match self.largest {
            0 => value as f64,
            largest => value.min(largest) as f64,
        })
    }
}

/// Builds a histogram whose every quantile is the sum of the quantiles of `a` and `b`, with as many operations as `a`.
/// Walks both bin by bin along their cumulative fractions, in exact integers.
fn add_quantiles(a: &Histogram, b: &Histogram) -> Histogram {
    let (na, nb) = (u128::from(a.count()), u128::from(b.count()));
    let mut out = Histogram::default();
    let (mut left, mut right) = (a.bins(), b.bins());
    let (mut at_a, mut at_b) = (left.next(), right.next());
    // Cumulative shares are in units of 1 (na · nb); `done` counts operations handed out.
    let (mut upto_a, mut upto_b, mut done) = (0u128, 0u128, 0u128);
    while let (Some((value_a, count_a)), Some((value_b, count_b))) = (at_a, at_b) {
        let end_a = upto_a + u128::from(count_a) * nb;
        let end_b = upto_b + u128::from(count_b) * na;
        let end = end_a.min(end_b);
        let reached = end / nb;
        let count = u64::try_from(reached - done).unwrap_or(u64::MAX);
        out.record(value_a.saturating_add(value_b), count);
        done = reached;
        if end_a == end {
            upto_a = end_a;
            at_a = left.next();
        }
        if end_b == end {
            upto_b = end_b;
            at_b = right.next();
        }
    }
    out
}
