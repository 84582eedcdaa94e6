//! Metrics by name, and success criteria of users.
//!
//! Examples of criteria: `randwrite-4k-qd1.p99 <= 20ms`, `randrw75-4k-qd16.read.iops >= 10k`, `read-1m-qd4.throughput
//! >= 118MB/s on /srv`.

use crate::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Operations to which a metric refers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Reads and writes together. The latency of a write includes the flush after it if the
    /// workload requires one (`fdatasync`, `fsync`).
    All,
    /// Only reads.
    Read,
    /// Only writes, including the flush after each write.
    Write,
    /// Only fsync and fdatasync calls.
    Flush,
}

/// Quantity that a metric measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quantity {
    /// I/Os per second.
    Iops,
    /// Bytes per second.
    Throughput,
    /// Mean latency in nanoseconds.
    Mean,
    /// Median latency in nanoseconds.
    P50,
    /// 90th percentile of the latency in nanoseconds.
    P90,
    /// 95th percentile of the latency in nanoseconds.
    P95,
    /// 99th percentile of the latency in nanoseconds.
    P99,
    /// 99.9th percentile of the latency in nanoseconds.
    P999,
    /// 99.99th percentile of the latency in nanoseconds.
    P9999,
    /// Largest latency in nanoseconds.
    Max,
    /// CPU time of the server per response in nanoseconds. Only loads on web servers have this quantity. The figures of
    /// a single run do not contain it ([`Quantity::ALL`]).
    Cpu,
    /// Figure in the output of a command of which higher values are better. Not in [`Quantity::ALL`].
    Printed,
    /// Figure in the output of a command of which lower values are better. Not in [`Quantity::ALL`].
    PrintedLess,
}

impl Quantity {
    /// All quantities, in the order in which reports show them.
    pub const ALL: [Self; 10] = [
        Self::Iops,
        Self::Throughput,
        Self::Mean,
        Self::P50,
        Self::P90,
        Self::P95,
        Self::P99,
        Self::P999,
        Self::P9999,
        Self::Max,
    ];

    /// Returns the name that criteria and JSON use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Iops => "iops",
            Self::Throughput => "throughput",
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::P9999 => "p99.99",
            Self::Max => "max",
            Self::Cpu => "cpu",
            Self::Printed => "printed",
            Self::PrintedLess => "printed-less",
        }
    }

    /// Returns whether the quantity is a time. Times are in nanoseconds, and lower values are better.
    #[must_use]
    pub fn is_latency(self) -> bool {
        !matches!(
            self,
            Self::Iops | Self::Throughput | Self::Printed | Self::PrintedLess
        )
    }

    /// Returns whether a lower value is better.
    #[must_use]
    pub fn is_lower_better(self) -> bool {
        self.is_latency() || self == Self::PrintedLess
    }

    /// Returns the percentage of a percentile, such as 99.9. `None` for other quantities.
    #[must_use]
    pub fn percent(self) -> Option<f64> {
        match self {
            Self::P50 => Some(50.0),
            Self::P90 => Some(90.0),
            Self::P95 => Some(95.0),
            Self::P99 => Some(99.0),
            Self::P999 => Some(99.9),
            Self::P9999 => Some(99.99),
            _ => None,
        }
    }
}

/// A metric: a quantity of certain operations, such as `iops`, `p99`, `read.p99.9`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Metric {
    /// Operations to which the metric refers.
    pub direction: Direction,
    /// Quantity that the metric measures.
    pub quantity: Quantity,
}

impl Metric {
    /// Returns the metric for a quantity over all operations.
    #[must_use]
    pub fn all(quantity: Quantity) -> Self {
        Self {
            direction: Direction::All,
            quantity,
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.direction {
            Direction::All => "",
            Direction::Read => "read.",
            Direction::Write => "write.",
            Direction::Flush => "flush.",
        })?;
        f.write_str(self.quantity.name())
    }
}

impl FromStr for Metric {
    type Err = CriterionError;
    fn from_str(text: &str) -> Result<Self, CriterionError> {
        let (direction, name) = match text.split_once('.') {
            Some(("read", rest)) => (Direction::Read, rest),
            Some(("write", rest)) => (Direction::Write, rest),
            Some(("flush", rest)) => (Direction::Flush, rest),
            _ => (Direction::All, text),
        };
        let quantity = match name {
            "bw" | "mbps" => Some(Quantity::Throughput),
            "p999" => Some(Quantity::P999),
            "p9999" => Some(Quantity::P9999),
            _ => Quantity::ALL.into_iter().find(|q| q.name() == name),
        };
        quantity
            .map(|quantity| Self {
                direction,
                quantity,
            })
            .ok_or_else(|| CriterionError::Metric(text.to_owned()))
    }
}

impl Serialize for Metric {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Metric {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        // Stored results have them, but criteria cannot use them.
        let internal = [Quantity::Cpu, Quantity::Printed, Quantity::PrintedLess];
        if let Some(quantity) = internal.into_iter().find(|one| one.name() == text) {
            return Ok(Self::all(quantity));
        }
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Operator that compares a figure with a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `<`: less than the threshold.
    Less,
    /// `<=`: at most the threshold.
    AtMost,
    /// `>`: greater than the threshold.
    Greater,
    /// `>=`: at least the threshold.
    AtLeast,
}

impl Comparison {
    /// Returns whether `value` satisfies the comparison with `threshold`.
    #[must_use]
    pub fn holds(self, value: f64, threshold: f64) -> bool {
        match self {
            Self::Less => value < threshold,
            Self::AtMost => value <= threshold,
            Self::Greater => value > threshold,
            Self::AtLeast => value >= threshold,
        }
    }

    fn symbol(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Greater => ">",
            Self::AtLeast => ">=",
        }
    }
}

/// A success criterion of the user, such as `randwrite-4k-qd1.p99 <= 20ms`.
#[derive(Clone, Debug, PartialEq)]
pub struct Criterion {
    /// Name of the workload whose figure is compared.
    pub workload: String,
    /// Name of the target. If absent, the criterion is for every target.
    pub target: Option<String>,
    /// Metric whose value is compared with the threshold.
    pub metric: Metric,
    /// Operator of the comparison.
    pub comparison: Comparison,
    /// Threshold in base units: ns, bytes per second, I/Os per second.
    pub threshold: f64,
    /// The threshold as the user wrote it.
    written: String,
}

/// Reason why a text is not a valid criterion.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CriterionError {
    /// The metric is unknown; contains its text.
    #[error(
        "`{0}` is not a metric: use iops, throughput, mean, p50, p90, p95, p99, p99.9, p99.99 or max, alone or after `read.`, `write.` or `flush.`"
    )]
    Metric(String),
    /// The text does not have the form of a criterion; contains the text.
    #[error(
        "`{0}` is not a criterion: write WORKLOAD.METRIC COMPARISON VALUE, such as `randwrite-4k-qd1.p99 <= 20ms` or `read-1m-qd4.throughput >= 118MB/s on /srv`"
    )]
    Form(String),
    /// The unit of the threshold does not fit the metric.
    #[error("`{value}` does not fit `{metric}`: {expected}")]
    Threshold {
        /// Text of the threshold that was not understood.
        value: String,
        /// Name of the metric of the criterion.
        metric: String,
        /// Units that fit the metric.
        expected: &'static str,
    },
}

impl Criterion {
    /// Returns the criterion for a figure that a command prints. `written` is the threshold as the user wrote it.
    #[must_use]
    pub fn of_printed(comparison: Comparison, threshold: f64, written: &str) -> Self {
        let quantity = match comparison {
            Comparison::Less | Comparison::AtMost => Quantity::PrintedLess,
            Comparison::Greater | Comparison::AtLeast => Quantity::Printed,
        };
        Self {
            workload: "load".to_owned(),
            target: None,
            metric: Metric::all(quantity),
            comparison,
            threshold,
            written: written.to_owned(),
        }
    }

    /// Returns operator and threshold as text: `>= 900`.
    #[must_use]
    pub fn bound(&self) -> String {
        format!("{} {}", self.comparison.symbol(), self.written)
    }
}

fn parse_threshold(metric: Metric, text: &str) -> Result<f64, CriterionError> {
    let misfit = |expected| CriterionError::Threshold {
        value: text.to_owned(),
        metric: metric.to_string(),
        expected,
    };
    let value = match metric.quantity {
        Quantity::Iops => {
            let (number, factor) = match text.strip_suffix(['k', 'K']) {
                Some(number) => (number, 1e3),
                None => match text.strip_suffix('M') {
                    Some(number) => (number, 1e6),
                    None => (text, 1.0),
                },
            };
            let number: Option<f64> = number.trim().parse().ok();
            number
                .map(|n| n * factor)
                .ok_or_else(|| misfit("a number such as 500, 10k or 1.5M"))?
        }
        Quantity::Throughput => {
            const EXPECTED: &str = "a rate such as 118MB/s, 100MiB/s or 1Gbit/s";
            let size = text.strip_suffix("/s").ok_or_else(|| misfit(EXPECTED))?;
            let bits =
                [("Gbit", 1.25e8), ("Mbit", 1.25e5)]
                    .into_iter()
                    .find_map(|(unit, bytes)| {
                        Some(size.strip_suffix(unit)?.trim().parse::<f64>().ok()? * bytes)
                    });
            match bits {
                Some(rate) => rate,
                None => size.parse::<Bytes>().map_err(|_| misfit(EXPECTED))?.0 as f64,
            }
        }
        _ => {
            const EXPECTED: &str = "a duration with its unit, such as 500us, 20ms or 1s";
            if text.ends_with(|c: char| c.is_ascii_digit()) {
                return Err(misfit(EXPECTED));
            }
            text.parse::<Nanos>().map_err(|_| misfit(EXPECTED))?.0 as f64
        }
    };
    (value.is_finite() && value >= 0.0)
        .then_some(value)
        .ok_or_else(|| misfit("a finite number of at least 0"))
}

impl FromStr for Criterion {
    type Err = CriterionError;
    fn from_str(text: &str) -> Result<Self, CriterionError> {
        let form = || CriterionError::Form(text.to_owned());
        let at = text.find(['<', '>']).ok_or_else(form)?;
        let (left, right) = text.split_at(at);
        let (comparison, right) = if let Some(rest) = right.strip_prefix("<=") {
            (Comparison::AtMost, rest)
        } else if let Some(rest) = right.strip_prefix(">=") {
            (Comparison::AtLeast, rest)
        } else if let Some(rest) = right.strip_prefix('<') {
            (Comparison::Less, rest)
        } else {
            (Comparison::Greater, &right[1..])
        };
        let (value, target) = match right.split_once(" on ") {
            Some((value, target)) => (value.trim(), Some(target.trim().to_owned())),
            None => (right.trim(), None),
        };
        let (workload, metric) = left.trim().split_once('.').ok_or_else(form)?;
        if workload.is_empty() || value.is_empty() {
            return Err(form());
        }
        let metric: Metric = metric.parse()?;
        Ok(Self {
            workload: workload.to_owned(),
            target,
            metric,
            comparison,
            threshold: parse_threshold(metric, value)?,
            written: value.to_owned(),
        })
    }
}

impl fmt::Display for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}.{} {} {}",
            self.workload,
            self.metric,
            self.comparison.symbol(),
            self.written
        )?;
        match &self.target {
            Some(target) => write!(f, " on {target}"),
            None => Ok(()),
        }
    }
}

impl Serialize for Criterion {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Criterion {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_reads_back_and_no_criterion_asks_for_cpu() {
        let cpu = [Metric::all(Quantity::Cpu)];
        let metrics = Quantity::ALL.map(Metric::all);
        for metric in metrics.iter().chain(&cpu) {
            let text = serde_json::to_string(metric).unwrap();
            assert_eq!(serde_json::from_str::<Metric>(&text).unwrap(), *metric);
        }
        assert!("w.cpu <= 1ms".parse::<Criterion>().is_err());
    }

    #[test]
    fn reads_what_people_write() {
        let c: Criterion = "randwrite-4k-qd1.p99 <= 20ms".parse().unwrap();
        assert_eq!(c.threshold, 20e6);
        assert!(c.comparison.holds(20e6, c.threshold));
        let c: Criterion = "mix.read.p99.9<1s on /srv/a b".parse().unwrap();
        assert_eq!(c.target.as_deref(), Some("/srv/a b"));
        assert_eq!(c.metric.to_string(), "read.p99.9");
        let c: Criterion = "r.throughput >= 1Gbit/s".parse().unwrap();
        assert_eq!(c.threshold, 125e6);
        let c: Criterion = "r.iops > 1.5k".parse().unwrap();
        assert_eq!(c.threshold, 1500.0);
    }

    #[test]
    fn prints_what_it_read() {
        for text in [
            "a.p99 <= 20ms",
            "a.read.iops > 10k",
            "a.throughput >= 1Gbit/s on /srv",
        ] {
            assert_eq!(text.parse::<Criterion>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn says_what_would_fit() {
        for (bad, hint) in [
            ("a.p99 = 3", "COMPARISON"),
            ("a.p98 <= 3ms", "p99.9"),
            ("a.p99 <= 20", "duration"),
            ("a.throughput >= 100", "MB/s"),
            ("a.iops >= many", "number"),
            ("p99 <= 3ms", "WORKLOAD"),
            ("a.iops >= NaN", "finite"),
            ("", "criterion"),
        ] {
            let error = bad.parse::<Criterion>().unwrap_err().to_string();
            assert!(error.contains(hint), "{bad}: {error}");
        }
    }
}
