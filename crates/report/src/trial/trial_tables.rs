//! The evidence of a verdict, prepared for every kind of report: the figures of both sides, the guardrails, the doubts,
//! and the excluded pairs. Sentences are in `trial_text`.

use super::TrialView;
use super::trial_text::{
    convert_interval, format_share, format_signed_ratio, format_span, metric_name,
};
use assay_model::criterion::Metric;
use assay_model::result::{Interval, JudgedSample};
use assay_model::trial::{FigureJudgement, GuardJudgement, PairOutcome, Side, Slot};
use assay_model::{Doubt, Load};
use assay_render::text::escape_line;
use assay_render::units::{NONE, format_latency};
use std::collections::BTreeMap;

/// A median over the measured pairs, with an interval that assumes no distribution of the noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PairMedian {
    pub value: f64,
    /// Interval with a confidence of at least 90 %; `None` for fewer than five values.
    pub interval: Option<Interval>,
}

/// Computes the median. Its interval consists of the order statistics whose binomial confidence is at least 90 %, which
/// is the interval of the sign test.
pub(crate) fn compute_median(mut values: Vec<f64>) -> Option<PairMedian> {
    values.retain(|value| value.is_finite());
    values.sort_by(f64::total_cmp);
    let n = values.len();
    let upper = *values.get(n / 2)?;
    let lower = values[(n - 1) / 2];
    // Find the largest k with P(at most k of n fair coin tosses show heads) of at most 5 %.
    let mut below = 0.5f64.powi(n as i32);
    let mut term = below;
    let mut k = None;
    for i in 0..n {
        if below > 0.05 {
            break;
        }
        k = Some((i, below));
        term *= (n - i) as f64 / (i + 1) as f64;
        below += term;
    }
    Some(PairMedian {
        value: f64::midpoint(lower, upper),
        interval: k.map(|(k, tail)| Interval {
            low: values[k],
            high: values[n - 1 - k],
            confidence: 1.0 - 2.0 * tail,
        }),
    })
}

/// A figure as a row of the table: both sides and the change.
pub(crate) struct ComparedFigure {
    pub metric: Metric,
    pub now: Option<PairMedian>,
    pub changed: Option<PairMedian>,
    /// Centre of the pairs' ratios B ÷ A.
    pub ratio: Option<f64>,
    /// Interval of the ratio; `None` if it cannot be computed.
    pub interval: Option<Interval>,
    /// Whether the figure decides the verdict.
    pub decides: bool,
}

/// Iterates over the slots, each with its judged sample.
pub(crate) fn zip_slots_with_samples<'a>(
    view: &TrialView<'a>,
) -> impl Iterator<Item = (&'a Slot, Option<&'a JudgedSample>)> {
    let samples = view.samples;
    view.slots
        .iter()
        .enumerate()
        .map(move |(i, slot)| (slot, samples.get(i)))
}

/// Whether a pair counts for the verdict. `pair` is its number, from 1.
pub(crate) fn is_counted(view: &TrialView, pair: u32) -> bool {
    let index = (pair as usize).wrapping_sub(1);
    matches!(view.pairs.get(index), Some(PairOutcome::Measured { .. }))
}

/// Returns the values of a metric on both sides, for each pair that counts for the verdict.
pub(crate) fn pair_figures(view: &TrialView, metric: Metric) -> BTreeMap<u32, [Option<f64>; 2]> {
    let mut found: BTreeMap<u32, [Option<f64>; 2]> = BTreeMap::new();
    for (slot, sample) in
        zip_slots_with_samples(view).filter(|(slot, _)| is_counted(view, slot.pair))
    {
        let figure = sample.and_then(|sample| sample.figures.get(&metric).copied());
        found.entry(slot.pair).or_default()[slot.side as usize] = figure;
    }
    found
}

/// Builds the rows of the figures in the order of the judgement: the deciding figure first, then the guardrails, then
/// the usual figures. The change in every row is the one that was judged.
pub(crate) fn build_figure_rows(view: &TrialView) -> Vec<ComparedFigure> {
    let row = |judged: &FigureJudgement| {
        let figures = pair_figures(view, judged.metric);
        let side = |side: Side| {
            compute_median(
                figures
                    .values()
                    .filter_map(|pair| pair[side as usize])
                    .collect(),
            )
        };
        ComparedFigure {
            metric: judged.metric,
            now: side(Side::Now),
            changed: side(Side::Changed),
            ratio: judged.ratio,
            interval: judged.interval,
            decides: judged.metric == view.trial.plan.metric,
        }
    };
    let rows = view.judgement.figures.iter().map(row);
    rows.filter(|row| row.decides || row.now.is_some() || row.changed.is_some())
        .collect()
}

/// A guardrail as shown to people.
pub(crate) struct GuardRow {
    pub name: String,
    /// The change B ÷ A.
    pub change: String,
    pub interval: String,
    pub allowed: String,
    /// Description of the guardrail with its limit, change and state.
    pub text: String,
    pub state: GuardState,
}

/// Whether a guardrail holds, as far as it is proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GuardState {
    Held,
    Broken,
    Open,
    /// Within the limit as measured, which is no proof.
    Within,
    /// Beyond the limit as measured, which is no proof.
    Beyond,
}

impl GuardState {
    pub(crate) fn from_judgement(guard: &GuardJudgement) -> Self {
        match (guard.broken, guard.held) {
            (true, _) => Self::Broken,
            (false, true) => Self::Held,
            (false, false) => Self::Open,
        }
    }

    /// Returns the word for the state: `held`, `broken` or `not proved`.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Broken => "broken",
            Self::Open => "not proved",
            Self::Within => "measured",
            Self::Beyond => "beyond",
        }
    }
}

pub(crate) fn build_guard_rows(view: &TrialView) -> Vec<GuardRow> {
    let load = &view.trial.plan.load;
    let row = |guard: &GuardJudgement| {
        let interval = guard
            .interval
            .map(|i| convert_interval(guard.metric, 1.0 / i.high, 1.0 / i.low));
        let change = format_signed_ratio(super::convert_improvement(
            guard.metric,
            1.0 / guard.worsening,
        ));
        let range = interval.map(|(low, high)| format_span(low, high));
        let allowed = format!("{} worse", format_share(guard.margin));
        GuardRow {
            text: match &range {
                Some(range) => format!("{change} ({range}), allowed {allowed}"),
                None => format!("{change} (no interval yet), allowed {allowed}"),
            },
            name: metric_name(load, guard.metric),
            change,
            interval: range.unwrap_or_else(|| NONE.to_owned()),
            allowed,
            state: GuardState::from_judgement(guard),
        }
    };
    view.judgement.guards.iter().map(row).collect()
}

/// Returns all guardrails of a trial: the guardrails of the plan, then the total, which every trial checks.
pub(crate) fn build_guard_and_total_rows(view: &TrialView) -> Vec<GuardRow> {
    let mut rows = build_guard_rows(view);
    rows.extend(build_total_rows(view));
    rows
}

/// Returns the totals over all slots: operations done and time spent, whichever figure decides.
fn build_total_rows(view: &TrialView) -> Vec<GuardRow> {
    let Some(total) = view.judgement.total else {
        return Vec::new();
    };
    let row = |name: String, ratio: f64, worsening: f64, broken: bool| {
        let allowed = format!("{} worse", format_share(total.margin));
        let change = format_signed_ratio(ratio);
        GuardRow {
            name,
            text: format!("{change}, allowed {allowed}"),
            interval: NONE.to_owned(),
            allowed,
            change,
            state: match broken {
                true => GuardState::Broken,
                // The compared bound, with room for rounding.
                false if worsening <= (1.0 + total.margin) * (1.0 + 1e-9) => GuardState::Within,
                false => GuardState::Beyond,
            },
        }
    };
    vec![
        row(
            "total work in the same time".to_owned(),
            total.work,
            total.work.recip(),
            false,
        ),
        row(
            "total time for the same work".to_owned(),
            total.time,
            total.time,
            total.worse,
        ),
    ]
}

/// Describes in one sentence what the verdict proves and does not prove.
pub(crate) fn describe_proof(view: &TrialView) -> Option<String> {
    let judgement = view.judgement;
    let slots = judgement.pairs;
    if view.trial.plan.aa || slots < 6 {
        return None;
    }
    let [now, changed] = judgement.total?.slow;
    let rare = match changed {
        // No event in n: probably fewer than 3 in n (the rule of three).
        0 => format!(
            "none of the {slots} slots with the change was far slower than usual, so one in {} may be",
            (slots / 3).max(1)
        ),
        n => format!(
            "{n} of the {slots} slots with the change were far slower than usual, {now} without"
        ),
    };
    Some(format!(
        "Proved is what a typical pair does; total and rare slow slots are only measured: {rare}."
    ))
}

/// Formats a figure with its change, such as `p99.9 latency +40.1 % (+12.0 to +61.0 %)`.
#[must_use]
pub fn format_figure_line(load: &Load, figure: &FigureJudgement) -> String {
    let change = figure.ratio.map_or(NONE.to_owned(), format_signed_ratio);
    let interval = figure
        .interval
        .map(|i| format!(" ({})", format_span(i.low, i.high)));
    format!(
        "{} {change}{}",
        metric_name(load, figure.metric),
        interval.unwrap_or_default()
    )
}

/// A doubt with the number of slots of each side that have it.
pub(crate) struct SideDoubt<'a> {
    pub doubt: &'a Doubt,
    pub slots: [u32; 2],
}

/// Counts the doubts by code. Void doubts come before suspect ones; within each, the most frequent comes first.
pub(crate) fn count_doubts<'a>(view: &TrialView<'a>) -> Vec<SideDoubt<'a>> {
    let mut found: Vec<SideDoubt> = Vec::new();
    for (slot, sample) in zip_slots_with_samples(view) {
        let own = slot.doubts.iter();
        let mut seen: Vec<&str> = Vec::new();
        for doubt in own.chain(sample.into_iter().flat_map(|sample| &sample.doubts)) {
            if seen.contains(&doubt.code.as_str()) {
                continue;
            }
            seen.push(&doubt.code);
            let at = found
                .iter()
                .position(|known| known.doubt.code == doubt.code);
            let at = at.unwrap_or_else(|| {
                found.push(SideDoubt {
                    doubt,
                    slots: [0, 0],
                });
                found.len() - 1
            });
            found[at].slots[slot.side as usize] += 1;
            if doubt.severity > found[at].doubt.severity {
                found[at].doubt = doubt;
            }
        }
    }
    found.sort_by_key(|one| {
        (
            std::cmp::Reverse(one.doubt.severity),
            std::cmp::Reverse(one.slots[0] + one.slots[1]),
        )
    });
    found
}

/// Returns the excluded pairs, grouped by reason, as (kind, reason, numbers of the pairs).
pub(crate) fn list_left_out_pairs(view: &TrialView) -> Vec<(&'static str, String, Vec<u32>)> {
    let mut found: Vec<(&'static str, String, Vec<u32>)> = Vec::new();
    for (pair, outcome) in (1..).zip(view.pairs) {
        let (kind, reason) = match outcome {
            PairOutcome::Measured { .. } => continue,
            PairOutcome::FailedChanged { error } => ("failed only with the change", error),
            PairOutcome::Failed { error } => ("failed, not because of the change alone", error),
            PairOutcome::Void { reason } => ("void", reason),
        };
        let reason = escape_line(reason);
        match found
            .iter_mut()
            .find(|(k, r, _)| *k == kind && *r == reason)
        {
            Some((_, _, pairs)) => pairs.push(pair),
            None => found.push((kind, reason, vec![pair])),
        }
    }
    found
}

/// Formats the numbers of pairs, such as `pair 3` or `pairs 3, 7, 8`.
pub(crate) fn format_pair_numbers(pairs: &[u32]) -> String {
    let names: Vec<String> = pairs.iter().map(u32::to_string).collect();
    match pairs.len() {
        1 => format!("pair {}", names[0]),
        _ => format!("pairs {}", crate::terminal::format_some_names(&names, 8)),
    }
}

/// Formats a row's change with its interval; empty without a ratio.
pub(crate) fn format_row_change(row: &ComparedFigure) -> String {
    let Some(ratio) = row.ratio else {
        return NONE.to_owned();
    };
    let interval = row
        .interval
        .map(|i| format!(" ({})", format_span(i.low, i.high)));
    format!(
        "{}{}",
        format_signed_ratio(ratio),
        interval.unwrap_or_default()
    )
}

/// Formats an interval for a column. If both ends have the same unit, it is printed once.
pub(crate) fn format_range(metric: Metric, interval: Interval) -> String {
    let (low, high) = (
        format_cell(metric, interval.low),
        format_cell(metric, interval.high),
    );
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, a)), Some((_, b))) if a == b => format!("{number}–{high}"),
        _ => format!("{low}–{high}"),
    }
}

/// Formats a figure for a column whose heading contains the metric. Only latencies are printed with a unit.
pub(crate) fn format_cell(metric: Metric, value: f64) -> String {
    match metric.quantity.is_latency() {
        true => format_latency(value),
        false => assay_render::units::format_value(metric.quantity, value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_median_of_few_values_has_no_interval() {
        let four = compute_median(vec![4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((four.value, four.interval), (2.5, None));
        let five = compute_median(vec![5.0, 1.0, 3.0, 2.0, 4.0]).unwrap();
        let interval = five.interval.unwrap();
        assert_eq!((interval.low, interval.high), (1.0, 5.0));
        assert!((interval.confidence - 0.9375).abs() < 1e-12);
        assert_eq!(compute_median(vec![f64::NAN]), None);
    }

    #[test]
    fn ranks_are_those_of_the_sign_test() {
        // n = 20: P(at most 5 heads) = 2.07 %, P(at most 6) = 5.77 %.
        let twenty = compute_median((1..=20).map(f64::from).collect()).unwrap();
        let interval = twenty.interval.unwrap();
        assert_eq!((interval.low, interval.high), (6.0, 15.0));
        assert!((interval.confidence - 0.9586).abs() < 1e-4);
    }

    proptest! {
        #[test]
        fn an_interval_holds_its_median(values in prop::collection::vec(-1e6f64..1e6, 1..200)) {
            let found = compute_median(values).unwrap();
            if let Some(interval) = found.interval {
                prop_assert!(interval.low <= found.value && found.value <= interval.high);
                prop_assert!(interval.confidence >= 0.9 - 1e-9 && interval.confidence <= 1.0);
            }
        }
    }
}
