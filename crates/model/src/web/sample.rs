//! Converts a step of an HTTP load to a sample.

use super::{Measured, Step};
use crate::histogram::Histogram;
use crate::sample::{Latency, Operation, Operations, Outcome, Rate, RatePoint, Worker};
use crate::units::{Bytes, Nanos};

impl Measured {
    /// Returns how the load ended. A load in which single requests failed counts as completed; the failures are counted
    /// and raise doubts.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        if self.interrupted {
            return Outcome::Interrupted;
        }
        if self.answers > 0 {
            return Outcome::Completed;
        }
        let most = self.failures.iter().max_by_key(|failures| failures.count);
        let error = match most {
            Some(most) => format!(
                "not one good answer: {} ({})",
                most.kind.describe(),
                most.first
            ),
            None => "no request ended in the time that was counted".to_owned(),
        };
        Outcome::Failed { error }
    }

    /// Returns the rates over time, with one point per second.
    #[must_use]
    pub fn series(&self) -> Vec<RatePoint> {
        let each = if self.answers == 0 {
            0.0
        } else {
            self.bytes as f64 / self.answers as f64
        };
        // An incomplete last second would look like a drop.
        let whole = self.window.0 / 1_000_000_000;
        let seconds = (1u64..=whole).zip(&self.seconds);
        seconds
            .map(|(at, second)| RatePoint {
                at_ms: at * 1000,
                rates: [(
                    Operation::Request,
                    Rate {
                        per_s: second.answers as f64,
                        bytes_per_s: second.answers as f64 * each,
                    },
                )]
                .into(),
            })
            .collect()
    }
}

impl Step {
    /// Converts the step to the worker of a sample, with all observations.
    #[must_use]
    pub fn into_worker(self) -> Worker {
        let measured = &self.measured;
        let seconds = measured.window.as_secs_f64();
        let operations = Operations {
            count: measured.answers,
            bytes: Bytes(measured.bytes),
            errors: measured.failed(),
            runtime: measured.window,
            per_s: measured.rate(),
            bytes_per_s: match seconds > 0.0 {
                true => measured.bytes as f64 / seconds,
                false => 0.0,
            },
            lat: summarize_latency(&measured.latency),
            ..Operations::default()
        };
        let none = measured.due == 0 && measured.answers == 0;
        Worker {
            name: "http".to_owned(),
            runtime: measured.window,
            operations: (!none)
                .then_some((Operation::Request, operations))
                .into_iter()
                .collect(),
            http: Some(Box::new(self)),
            ..Worker::default()
        }
    }

    /// Returns the length of the measured window.
    #[must_use]
    pub fn window(&self) -> Nanos {
        self.measured.window
    }
}

fn summarize_latency(histogram: &Histogram) -> Latency {
    let n = histogram.count();
    let mean = histogram.mean().unwrap_or(0.0);
    let squares: f64 = histogram
        .bins()
        .map(|(nanos, count)| (nanos as f64 - mean).powi(2) * count as f64)
        .sum();
    Latency {
        n,
        min: histogram.at_rank(1).unwrap_or(0),
        max: histogram.at_rank(n).unwrap_or(0),
        mean,
        stddev: match n {
            0 | 1 => 0.0,
            n => (squares / (n - 1) as f64).sqrt(),
        },
        percentiles: Vec::new(),
        histogram: histogram.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::{FailureKind, Failures, Second};

    #[test]
    fn failures_are_counted_and_the_load_fails_only_when_nothing_succeeds() {
        let mut measured = Measured {
            window: Nanos(2_500_000_000),
            answers: 10,
            bytes: 1000,
            latency: [(1_000, 5), (3_000, 5)].into_iter().collect(),
            due: 12,
            unsent: 1,
            failures: vec![Failures {
                kind: FailureKind::Reset,
                count: 1,
                first: "x".to_owned(),
            }],
            seconds: vec![
                Second {
                    answers: 4,
                    ..Second::default()
                };
                3
            ],
            ..Measured::default()
        };
        assert_eq!(measured.outcome(), Outcome::Completed);
        // The half second at the end gives no point.
        assert_eq!(measured.series().len(), 2);
        assert!((measured.series()[0].bytes_per_s() - 400.0).abs() < 1e-9);
        let lat = summarize_latency(&measured.latency);
        assert_eq!((lat.n, lat.min, lat.max), (10, 1_000, 3_000));
        assert!((lat.mean - 2_000.0).abs() < 1e-9);
        measured.answers = 0;
        assert!(matches!(measured.outcome(), Outcome::Failed { error } if error.contains("reset")));
    }
}
