//! Estimates over rounds: the pooled value of a figure, and its interval. Estimates of a few plain
//! numbers are in `study` and `waterfall`.
//!
//! All metrics use one method: the value of all rounds pooled, and a delete-one-round jackknife on
//! the log scale with Student's t (Efron and Tibshirani, *An Introduction to the Bootstrap*,
//! chapter 11). For a rate this is the usual interval of a mean, up to the logarithm; for a
//! percentile of the pooled histogram it needs no model of the latencies. The jackknife leaves out
//! whole rounds, because operations within a round are not independent.

use crate::sample_figures::{FiguresByDirection, LatencyDistribution, SideFigures};
use assay_model::criterion::{Direction, Metric, Quantity};
use assay_model::result::{Estimate, Interval};
use statrs::distribution::{ContinuousCDF as _, StudentsT};
use std::collections::{BTreeMap, BTreeSet};

/// Confidence level of all intervals of estimates.
pub(crate) const CONFIDENCE: f64 = 0.95;
/// Standard uncertainty that a histogram bin adds to the log of a percentile: fio's bins are up to
/// 1/64 wide (`FIO_IO_U_PLAT_BITS` = 6, fio 3.33 stat.h), and the value is uniformly distributed
/// within a bin (GUM 4.3.7).
const BIN: f64 = 1.0 / 64.0 / 3.464_101_615_137_754_6;

/// A pooled value, its standard error on the log scale, and the number of rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PooledValue {
    /// Value in base units; above 0.
    pub value: f64,
    /// Standard error of the logarithm; `None` if it cannot be computed.
    pub error: Option<f64>,
    /// Number of rounds that were pooled.
    pub rounds: u32,
}

impl PooledValue {
    /// Converts the pooled value into an estimate with its interval.
    pub(crate) fn to_estimate(self) -> Estimate {
        let freedom = f64::from(self.rounds) - 1.0;
        Estimate {
            value: self.value,
            interval: self
                .error
                .and_then(|error| interval_on_log_scale(self.value, error, freedom)),
            rounds: self.rounds,
        }
    }
}

/// Computes the mean and its standard error; the error is `None` for fewer than two values.
pub(crate) fn compute_mean_and_error(values: &[f64]) -> Option<(f64, Option<f64>)> {
    if values.is_empty() {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let error = (values.len() > 1).then(|| {
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        (squares / (n - 1.0) / n).sqrt()
    });
    Some((mean, error))
}

/// Computes the quantile of Student's t distribution that bounds a two-sided interval at a confidence level; `freedom`
/// is the degrees of freedom.
fn compute_student_quantile(confidence: f64, freedom: f64) -> Option<f64> {
    let t = StudentsT::new(0.0, 1.0, freedom).ok()?;
    Some(t.inverse_cdf(0.5 + confidence / 2.0))
}

/// Computes the standard error on the log scale from an interval that [`interval_on_log_scale`] returned.
pub(crate) fn error_of(value: f64, interval: Interval, freedom: f64) -> Option<f64> {
    let error =
        (interval.high / value).ln() / compute_student_quantile(interval.confidence, freedom)?;
    error.is_finite().then_some(error)
}

/// Computes the interval around a mean from the mean's standard error.
pub(crate) fn interval_around_mean(mean: f64, error: f64, freedom: f64) -> Option<Interval> {
    let reach = compute_student_quantile(CONFIDENCE, freedom)? * error;
    reach.is_finite().then_some(Interval {
        low: mean - reach,
        high: mean + reach,
        confidence: CONFIDENCE,
    })
}

/// Computes the interval around a value from a standard error on the log scale.
pub(crate) fn interval_on_log_scale(value: f64, error: f64, freedom: f64) -> Option<Interval> {
    around_at(CONFIDENCE, value, error, freedom)
}

/// Computes the interval around a value like [`interval_on_log_scale`], but at the given confidence level.
pub(crate) fn around_at(confidence: f64, value: f64, error: f64, freedom: f64) -> Option<Interval> {
    let reach = (compute_student_quantile(confidence, freedom)? * error).exp();
    // If two rounds differ extremely, the bounds are not finite and there is no interval.
    (reach.is_finite() && reach > 0.0).then(|| Interval {
        low: value / reach,
        high: value * reach,
        confidence,
    })
}

/// Pools every metric over the rounds of one workload on one target.
pub(crate) fn pool_metrics(rounds: &[&FiguresByDirection]) -> BTreeMap<Metric, PooledValue> {
    let directions: BTreeSet<Direction> = rounds.iter().flat_map(|s| s.keys().copied()).collect();
    let mut out = BTreeMap::new();
    for direction in directions {
        // A round without this direction is left out.
        let sides: Vec<&SideFigures> = rounds.iter().filter_map(|s| s.get(&direction)).collect();
        let all = merge_sides(&sides);
        let without = leave_each_out(&sides);
        for quantity in Quantity::ALL {
            if let Some(value) = all.get(quantity).filter(|value| *value > 0.0) {
                let metric = Metric {
                    direction,
                    quantity,
                };
                let pooled = PooledValue {
                    value,
                    error: compute_jackknife_error(quantity, &without),
                    rounds: sides.len() as u32,
                };
                out.insert(metric, pooled);
            }
        }
    }
    out
}

/// Merges the latencies of all operations of all rounds.
pub(crate) fn merge_latencies(rounds: &[&FiguresByDirection]) -> LatencyDistribution {
    let all = rounds.iter().filter_map(|sides| sides.get(&Direction::All));
    LatencyDistribution::merge(all.map(|side| &side.latency))
}

/// Merges all rounds into one side: rates are averaged over rounds, latencies are merged.
fn merge_sides(sides: &[&SideFigures]) -> SideFigures {
    let n = sides.len().max(1) as f64;
    SideFigures {
        iops: sides.iter().map(|side| side.iops).sum::<f64>() / n,
        bytes_per_s: sides
            .iter()
            .map(|side| side.bytes_per_s)
            .sum::<Option<f64>>()
            .map(|sum| sum / n),
        latency: LatencyDistribution::merge(sides.iter().map(|side| &side.latency)),
        // Estimates over rounds have no printed figures.
        printed: None,
    }
}

/// Merges all rounds but one, for each round in turn. Latencies are merged from both ends, so that
/// the number of merges grows linearly with the number of rounds.
fn leave_each_out(sides: &[&SideFigures]) -> Vec<SideFigures> {
    let n = sides.len();
    if n < 2 {
        return Vec::new();
    }
    let mut before = vec![LatencyDistribution::default()];
    for side in &sides[..n - 1] {
        let so_far = before.last().into_iter().chain([&side.latency]);
        before.push(LatencyDistribution::merge(so_far));
    }
    let mut after = LatencyDistribution::default();
    let mut out: Vec<SideFigures> = Vec::with_capacity(n);
    for (i, side) in sides.iter().enumerate().rev() {
        let others: Vec<&SideFigures> = sides[..i].iter().chain(&sides[i + 1..]).copied().collect();
        let rates = others.len() as f64;
        out.push(SideFigures {
            iops: others.iter().map(|side| side.iops).sum::<f64>() / rates,
            bytes_per_s: others
                .iter()
                .map(|side| side.bytes_per_s)
                .sum::<Option<f64>>()
                .map(|sum| sum / rates),
            latency: LatencyDistribution::merge([&before[i], &after].into_iter()),
            printed: None,
        });
        after = LatencyDistribution::merge([&side.latency, &after].into_iter());
    }
    out.reverse();
    out
}

/// Computes the standard error of the logarithm by the jackknife.
fn compute_jackknife_error(quantity: Quantity, without: &[SideFigures]) -> Option<f64> {
    // The largest value of a few rounds does not predict the largest value of more rounds.
    if quantity == Quantity::Max || without.len() < 2 {
        return None;
    }
    let logs: Vec<f64> = without
        .iter()
        .map(|side| {
            side.get(quantity)
                .map(f64::ln)
                .filter(|log| log.is_finite())
        })
        .collect::<Option<_>>()?;
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let spread: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
    let variance = (n - 1.0) / n * spread;
    let bin = match quantity.percent() {
        Some(_) => BIN,
        None => 0.0,
    };
    Some((variance + bin * bin).sqrt())
}

#[cfg(test)]
mod interval_coverage;
#[cfg(test)]
mod tests;
