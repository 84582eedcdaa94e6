//! Every figure by one rule: the centre of the pairs' own ratios, with the interval of the test that
//! decides. A ratio of medians, or another interval, would make the rows of one table contradict
//! each other.

use super::centre::centre;
use super::interval;
use super::rule::Rule;
use super::verdict;
use assay_model::criterion::{Metric, Quantity};
use assay_model::result::{Figures, Interval};
use assay_model::trial::{FigureJudgement, Judgement, PairOutcome, TrialPlan};

/// Shown whatever decides.
const USUAL: [Quantity; 4] = [Quantity::Iops, Quantity::P50, Quantity::P99, Quantity::P999];

/// The figures of a plan: what decides first.
fn metrics(plan: &TrialPlan) -> Vec<Metric> {
    let mut metrics = vec![plan.metric];
    let others = plan.guards.iter().map(|guard| guard.metric);
    for metric in others.chain(USUAL.map(Metric::all)) {
        if !metrics.contains(&metric) {
            metrics.push(metric);
        }
    }
    metrics
}

/// What the pairs say of each figure; `figures` are those of A and B of every pair that counts.
pub(super) fn figures(
    plan: &TrialPlan,
    rule: &Rule,
    pairs: &[PairOutcome],
    figures: &[[Figures; 2]],
    judgement: &Judgement,
) -> Vec<FigureJudgement> {
    let row = |metric: Metric| {
        let (ratio, interval) = match metric == plan.metric {
            // Of what decides, the interval is that of all looks.
            true => (judgement.ratio, judgement.interval),
            false => others(metric, rule, pairs, figures),
        };
        let lower_is_better = metric.quantity.is_latency();
        let turned = |interval: Interval| match lower_is_better {
            true => flipped(interval),
            false => interval,
        };
        FigureJudgement {
            metric,
            ratio: ratio.map(|ratio| {
                if lower_is_better {
                    ratio.recip()
                } else {
                    ratio
                }
            }),
            interval: interval.map(turned),
            worse: interval.is_some_and(|interval| interval.high < 1.0),
        }
    };
    metrics(plan).into_iter().map(row).collect()
}

/// Centre and interval of the improvement of a figure that does not decide.
fn others(
    metric: Metric,
    rule: &Rule,
    pairs: &[PairOutcome],
    figures: &[[Figures; 2]],
) -> (Option<f64>, Option<Interval>) {
    let effects: Vec<f64> = figures
        .iter()
        .filter_map(|[now, changed]| {
            let ratio = (changed.get(&metric)? / now.get(&metric)?).ln();
            let better = if metric.quantity.is_latency() {
                -ratio
            } else {
                ratio
            };
            better.is_finite().then_some(better)
        })
        .collect();
    let test = verdict::test(rule, effects.len(), verdict::over(rule, pairs));
    let interval = match test.looks.is_empty() {
        true => None,
        false => verdict::interval(interval::at_last_look(&test, &effects), rule),
    };
    (centre(&effects).map(f64::exp), interval)
}

fn flipped(interval: Interval) -> Interval {
    Interval {
        low: interval.high.recip(),
        high: interval.low.recip(),
        ..interval
    }
}
