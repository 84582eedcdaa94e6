//! Judges every figure in the same way. A judgement is the centre of the pairs' ratios, with the interval of the test
//! that decides the verdict. A ratio of medians, or another interval, would make the rows of one table contradict each
//! other.

use super::interval;
use super::robust_statistics::compute_centre;
use super::trial_rule::TrialRule;
use super::verdict;
use assay_model::criterion::{Metric, Quantity};
use assay_model::result::{Figures, Interval};
use assay_model::trial::{FigureJudgement, Judgement, PairOutcome, TrialPlan};

/// Quantities that are shown in every trial.
const USUAL: [Quantity; 4] = [Quantity::Iops, Quantity::P50, Quantity::P99, Quantity::P999];

/// Lists the metrics of a plan, the deciding one first.
fn list_metrics(plan: &TrialPlan) -> Vec<Metric> {
    let mut metrics = vec![plan.metric];
    let others = plan.guards.iter().map(|guard| guard.metric);
    for metric in others.chain(USUAL.map(Metric::all)) {
        if !metrics.contains(&metric) {
            metrics.push(metric);
        }
    }
    metrics
}

/// Computes the judgement of each figure over all pairs that count. `figures` contains the values of A and of B for
/// each of these pairs.
pub(super) fn judge_figures(
    plan: &TrialPlan,
    rule: &TrialRule,
    pairs: &[PairOutcome],
    figures: &[[Figures; 2]],
    judgement: &Judgement,
) -> Vec<FigureJudgement> {
    let row = |metric: Metric| {
        let (ratio, interval) = match metric == plan.metric {
            // The deciding figure has the interval of all looks.
            true => (judgement.ratio, judgement.interval),
            false => judge_other_figure(metric, rule, pairs, figures),
        };
        let lower_is_better = metric.quantity.is_lower_better();
        let turned = |interval: Interval| match lower_is_better {
            true => flip_interval(interval),
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
    list_metrics(plan).into_iter().map(row).collect()
}

/// Computes centre and interval of the improvement of a figure other than the deciding one.
fn judge_other_figure(
    metric: Metric,
    rule: &TrialRule,
    pairs: &[PairOutcome],
    figures: &[[Figures; 2]],
) -> (Option<f64>, Option<Interval>) {
    let effects: Vec<f64> = figures
        .iter()
        .filter_map(|[now, changed]| {
            let ratio = (changed.get(&metric)? / now.get(&metric)?).ln();
            let better = if metric.quantity.is_lower_better() {
                -ratio
            } else {
                ratio
            };
            better.is_finite().then_some(better)
        })
        .collect();
    let test = verdict::build_test(rule, effects.len(), verdict::is_over(rule, pairs));
    let interval = match test.looks.is_empty() {
        true => None,
        false => verdict::to_interval(interval::compute_last_interval(&test, &effects), rule),
    };
    (compute_centre(&effects).map(f64::exp), interval)
}

fn flip_interval(interval: Interval) -> Interval {
    Interval {
        low: interval.high.recip(),
        high: interval.low.recip(),
        ..interval
    }
}
