//! Tests the user's success criteria against the estimates. The estimates are computed in
//! `estimate`.

use assay_model::criterion::{Comparison, Criterion};
use assay_model::result::{CriterionResult, Estimate, WorkloadResult};
use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// Tests each criterion on each of its targets. A criterion whose workload or target was never measured appears once in
/// the result, as not met.
pub(crate) fn judge_criteria(
    criteria: &[Criterion],
    results: &[WorkloadResult],
) -> Vec<CriterionResult> {
    criteria
        .iter()
        .flat_map(|criterion| judge_criterion(criterion, results))
        .collect()
}

fn judge_criterion(criterion: &Criterion, results: &[WorkloadResult]) -> Vec<CriterionResult> {
    let fits = |result: &&WorkloadResult| {
        let named = criterion.target.as_ref();
        result.workload == criterion.workload && named.is_none_or(|name| *name == result.target)
    };
    let held: Vec<CriterionResult> = results
        .iter()
        .filter(fits)
        .map(|result| {
            let value = result.estimates.get(&criterion.metric).copied();
            test_estimate(criterion, &result.target, value)
        })
        .collect();
    if held.is_empty() {
        let target = criterion.target.clone().unwrap_or_default();
        return vec![test_estimate(criterion, &target, None)];
    }
    held
}

fn test_estimate(criterion: &Criterion, target: &str, value: Option<Estimate>) -> CriterionResult {
    let holds = |value: f64| criterion.comparison.holds(value, criterion.threshold);
    let met = value.is_some_and(|estimate| holds(estimate.value));
    // A single round does not show how far the figure varies.
    let clear = value
        .and_then(|estimate| estimate.interval)
        .is_some_and(|interval| holds(interval.low) == met && holds(interval.high) == met);
    CriterionResult {
        criterion: criterion.clone(),
        target: target.to_owned(),
        value,
        met,
        clear,
    }
}

/// Returns the probability (0 to 1) that the true figure meets the criterion, from Student's t distribution of the
/// logarithms of `values`. `values` contains independent observations in base units. Returns `None` for fewer than two
/// observations, or if an observation is not above 0.
#[must_use]
pub fn probability_met(criterion: &Criterion, values: &[f64]) -> Option<f64> {
    let sound = |value: &f64| *value > 0.0 && value.is_finite();
    if !values.iter().all(sound) || criterion.threshold <= 0.0 {
        return None;
    }
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let (mean, error) = crate::estimate::compute_mean_and_error(&logs)?;
    let distance = mean - criterion.threshold.ln();
    // Equal values: as sure as the step of the figure lets one be.
    let t = distance / error?.max(1e-9);
    let above = StudentsT::new(0.0, 1.0, logs.len() as f64 - 1.0)
        .ok()?
        .cdf(t);
    Some(match criterion.comparison {
        Comparison::Greater | Comparison::AtLeast => above,
        Comparison::Less | Comparison::AtMost => 1.0 - above,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_model::doubt::Validity;
    use assay_model::result::{Interval, Limit, LimitKind, Steadiness};
    use std::collections::BTreeMap;

    fn result(target: &str, p99: f64, interval: Option<(f64, f64)>) -> WorkloadResult {
        let estimate = Estimate {
            value: p99,
            interval: interval.map(|(low, high)| Interval {
                low,
                high,
                confidence: 0.95,
            }),
            rounds: 5,
        };
        WorkloadResult {
            workload: "w".to_owned(),
            target: target.to_owned(),
            description: String::new(),
            rounds: 5,
            rounds_void: 0,
            validity: Validity::Valid,
            doubts: vec![],
            estimates: BTreeMap::from([("p99".parse().unwrap(), estimate)]),
            steadiness: Steadiness {
                steady: true,
                range: None,
                slope: None,
                reason: String::new(),
            },
            limit: Limit {
                what: LimitKind::Unknown,
                evidence: String::new(),
            },
            latency: Default::default(),
            series: vec![],
        }
    }

    fn verdicts(criterion: &str, results: &[WorkloadResult]) -> Vec<(String, bool, bool)> {
        let criteria = [criterion.parse().unwrap()];
        let held = judge_criteria(&criteria, results).into_iter();
        held.map(|held| (held.target, held.met, held.clear))
            .collect()
    }

    #[test]
    fn clear_when_the_interval_excludes_the_threshold() {
        let results = [
            result("/a", 18e6, Some((17e6, 19e6))),
            result("/b", 18e6, Some((15e6, 21e6))),
        ];
        assert_eq!(
            verdicts("w.p99 <= 20ms", &results),
            [("/a".into(), true, true), ("/b".into(), true, false)]
        );
        assert_eq!(
            verdicts("w.p99 < 16ms", &results),
            [("/a".into(), false, true), ("/b".into(), false, false)]
        );
    }

    #[test]
    fn one_round_is_never_clear() {
        assert_eq!(
            verdicts("w.p99 <= 20ms", &[result("/a", 1e6, None)]),
            [("/a".into(), true, false)]
        );
    }

    #[test]
    fn what_was_not_measured_is_not_met() {
        let results = [result("/a", 1e6, None)];
        assert_eq!(
            verdicts("w.read.p99 <= 20ms", &results),
            [("/a".into(), false, false)]
        );
        assert_eq!(
            verdicts("v.p99 <= 20ms", &results),
            [(String::new(), false, false)]
        );
        assert_eq!(
            verdicts("w.p99 <= 20ms on /c", &results),
            [("/c".into(), false, false)]
        );
    }

    #[test]
    fn a_named_target_is_the_only_one() {
        let results = [result("/a", 1e6, None), result("/b", 1e6, None)];
        assert_eq!(
            verdicts("w.p99 <= 20ms on /b", &results),
            [("/b".into(), true, false)]
        );
    }

    #[test]
    fn a_figure_far_from_its_threshold_is_almost_sure() {
        let p = |want: &str, values: &[f64]| probability_met(&want.parse().unwrap(), values);
        let values = [10e6, 11e6, 9e6, 10.5e6, 9.5e6];
        assert!(p("w.p99 <= 20ms", &values).unwrap() > 0.99);
        assert!(p("w.p99 <= 5ms", &values).unwrap() < 0.01);
        assert!((p("w.p99 <= 10ms", &values).unwrap() - 0.5).abs() < 0.2);
        assert!(p("w.iops >= 5k", &[6e3, 6e3]).unwrap() > 0.99);
        assert_eq!(p("w.p99 <= 20ms", &[1e6]), None);
        assert_eq!(p("w.p99 <= 20ms", &[1e6, 0.0]), None);
    }
}
