//! Checks whether a rate limit of a control group, a hypervisor or a cloud volume limited the rate. Limits of hardware
//! connections are in `link_bandwidth`.

use super::{FULL, LimitEvidence, limit_evidence::compute_mean};
use assay_model::result::{Limit, LimitKind};
use assay_model::sample::RatePoint;
use assay_model::units::format_significant;

/// Maximum coefficient of variation over the points of a sample for the rate to count as flat, as under a limiter.
/// Consecutive rounds on a virtual disk without a limiter vary by 0.17 (fixtures/noise).
const FLAT: f64 = 0.02;
/// Maximum relative difference between two rates that count as equal.
const SAME: f64 = 0.03;
/// Maximum relative distance from a round number. There are ten round numbers per decade, so 4 of 100 unrelated rates
/// are as near to one of them.
const ROUND: f64 = 0.005;
const ROUND_NUMBERS: [f64; 10] = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.5, 8.0];
/// Minimum number of I/Os in flight for this rule. With fewer, latency limits the rate, which can be flat without a
/// limiter.
const DEPTH: u32 = 4;
/// Fraction of the plateau below which a later rate means that a burst credit ran out.
const DROP: f64 = 0.7;
/// Minimum number of points of a plateau.
const POINTS: usize = 4;

pub(super) fn check_rate_limit(e: &LimitEvidence) -> Option<Limit> {
    let sentence = find_cgroup_limit(e)
        .or_else(|| find_same_rate_at_other_sizes(e))
        .or_else(|| find_exhausted_credit(e))
        .or_else(|| find_round_flat_rate(e))?;
    Some(Limit {
        what: LimitKind::RateLimit,
        evidence: sentence,
    })
}

/// Finds a limit of the control group that the load generator reached. The facts contain lines such
/// as `io.max 8:0 rbps=1048576 riops=max` (Documentation/admin-guide/cgroup-v2.rst).
fn find_cgroup_limit(e: &LimitEvidence) -> Option<String> {
    let lines = e.facts?.get("cgroup.io")?.as_array()?;
    let words = lines
        .iter()
        .filter_map(|line| line.as_str())
        .flat_map(str::split_whitespace);
    words
        .filter_map(|word| word.split_once('='))
        .find_map(|(name, value)| {
            let cap: f64 = value.parse().ok().filter(|cap| *cap > 0.0)?;
            let (got, unit) = match name {
                "rbps" => (e.read_per_s, "bytes read per second"),
                "wbps" => (e.write_per_s, "bytes written per second"),
                "riops" => (e.read_iops, "reads per second"),
                "wiops" => (e.write_iops, "writes per second"),
                _ => return None,
            };
            (got >= cap * FULL).then(|| {
                format!(
                    "{} {unit} is the limit that the control group sets ({name}={value})",
                    format_significant(got)
                )
            })
        })
}

/// Finds equal IOPS at several block sizes. They indicate a limit on IOPS, because no device with a deep queue is
/// equally fast at all sizes.
fn find_same_rate_at_other_sizes(e: &LimitEvidence) -> Option<String> {
    if e.in_flight < DEPTH || find_largest_variation(&e.series)? > FLAT {
        return None;
    }
    let other = e.sizes.iter().find(|other| {
        let (small, large) = (
            e.block_size.min(other.block_size),
            e.block_size.max(other.block_size),
        );
        large >= small.saturating_mul(4)
            && other.variation.is_some_and(|variation| variation <= FLAT)
            && (other.iops / e.iops - 1.0).abs() <= SAME
    })?;
    Some(format!(
        "{} per second, flat over time, and {} with another block size ({}): a limit on IOPS",
        format_significant(e.iops),
        format_significant(other.iops),
        other.workload
    ))
}

/// Finds reads that run at one flat rate and then at a lower flat rate, because a burst credit ran out. Writes slow
/// down in the same way if the cache of a drive is full, so they prove nothing.
fn find_exhausted_credit(e: &LimitEvidence) -> Option<String> {
    if e.writes {
        return None;
    }
    let (before, after) = e.series.iter().find_map(|points| find_rate_drop(points))?;
    Some(format!(
        "the rate fell from a flat {} to a flat {} per second within a sample: a burst credit ran out",
        format_significant(before),
        format_significant(after)
    ))
}

fn find_rate_drop(points: &[RatePoint]) -> Option<(f64, f64)> {
    let rates: Vec<f64> = points.iter().map(RatePoint::per_s).collect();
    (POINTS..=rates.len().checked_sub(POINTS)?).find_map(|at| {
        // The point of the fall belongs to neither part.
        let (first, second) = (&rates[..at], rates.get(at + 1..)?);
        let flat = |part: &[f64]| {
            part.len() >= POINTS && compute_relative_deviation(part).is_some_and(|v| v <= FLAT)
        };
        let (before, after) = (compute_mean(first)?, compute_mean(second)?);
        (flat(first) && flat(second) && after <= before * DROP).then_some((before, after))
    })
}

fn find_round_flat_rate(e: &LimitEvidence) -> Option<String> {
    let variation = find_largest_variation(&e.series)?;
    if e.in_flight < DEPTH || variation > FLAT {
        return None;
    }
    let decade = 10f64.powf(e.iops.log10().floor());
    let near = |number: &&f64| (e.iops / decade / **number - 1.0).abs() <= ROUND;
    let number = ROUND_NUMBERS.iter().find(near)? * decade;
    Some(format!(
        "{} per second is flat to {:.1} % over time and a round number ({}), as a limiter makes it",
        format_significant(e.iops),
        variation * 100.0,
        format_significant(number)
    ))
}

/// Returns the largest coefficient of variation over the points of any sample; `None` if a sample has too few points.
pub(crate) fn find_largest_variation(series: &[&[RatePoint]]) -> Option<f64> {
    let each = series.iter().map(|points| {
        let rates: Vec<f64> = points.iter().map(RatePoint::per_s).collect();
        (rates.len() >= POINTS)
            .then(|| compute_relative_deviation(&rates))
            .flatten()
    });
    let all: Vec<f64> = each.collect::<Option<_>>()?;
    all.into_iter().reduce(f64::max)
}

/// Computes standard deviation ÷ mean.
fn compute_relative_deviation(rates: &[f64]) -> Option<f64> {
    let mean = compute_mean(rates).filter(|mean| *mean > 0.0)?;
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    Some((squares / (rates.len() as f64 - 1.0).max(1.0)).sqrt() / mean)
}
