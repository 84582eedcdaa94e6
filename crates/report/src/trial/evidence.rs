//! What lies behind a verdict, put together for every kind of page: the figures of both sides, the
//! doubts, the pairs that were left out.

use super::View;
use super::words::{ends, metric, share, signed, span};
use assay_model::criterion::Metric;
use assay_model::result::{Interval, JudgedSample};
use assay_model::trial::{FigureJudgement, GuardJudgement, PairOutcome, Side, Slot};
use assay_model::{Doubt, Load};
use assay_render::text::clean;
use assay_render::units::{NONE, latency};
use std::collections::BTreeMap;

/// A median over the measured pairs with an interval that assumes nothing of the noise's shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Median {
    pub value: f64,
    /// At least 90 %; none below five values.
    pub interval: Option<Interval>,
}

/// The median, and as its interval the order statistics whose ranks a fair coin brackets with at
/// least 90 % (the interval that belongs to the sign test).
pub(crate) fn median(mut values: Vec<f64>) -> Option<Median> {
    values.retain(|value| value.is_finite());
    values.sort_by(f64::total_cmp);
    let n = values.len();
    let upper = *values.get(n / 2)?;
    let lower = values[(n - 1) / 2];
    // Largest k with P(at most k of n coins show heads) at most 5 %.
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
    Some(Median {
        value: f64::midpoint(lower, upper),
        interval: k.map(|(k, tail)| Interval {
            low: values[k],
            high: values[n - 1 - k],
            confidence: 1.0 - 2.0 * tail,
        }),
    })
}

/// One row of the table of figures.
pub(crate) struct Row {
    pub metric: Metric,
    pub now: Option<Median>,
    pub changed: Option<Median>,
    /// Centre of the pairs' ratios B ÷ A.
    pub ratio: Option<f64>,
    /// Its interval.
    pub interval: Option<Interval>,
    /// Whether it is the figure that decides.
    pub decides: bool,
}

/// A slot and what is known of its sample.
pub(crate) fn slots<'a>(
    view: &View<'a>,
) -> impl Iterator<Item = (&'a Slot, Option<&'a JudgedSample>)> {
    let samples = view.samples;
    view.slots
        .iter()
        .enumerate()
        .map(move |(i, slot)| (slot, samples.get(i)))
}

/// Whether a pair counts, by its 1-based number.
pub(crate) fn measured(view: &View, pair: u32) -> bool {
    let index = (pair as usize).wrapping_sub(1);
    matches!(view.pairs.get(index), Some(PairOutcome::Measured { .. }))
}

/// The figure of each pair on one side, pairs that count only.
pub(crate) fn figures(view: &View, metric: Metric) -> BTreeMap<u32, [Option<f64>; 2]> {
    let mut found: BTreeMap<u32, [Option<f64>; 2]> = BTreeMap::new();
    for (slot, sample) in slots(view).filter(|(slot, _)| measured(view, slot.pair)) {
        let figure = sample.and_then(|sample| sample.figures.get(&metric).copied());
        found.entry(slot.pair).or_default()[slot.side as usize] = figure;
    }
    found
}

/// The figures shown to people, in the judge's order: what decides first, then the guardrails, then
/// the usual ones. What changed is the judge's own figure in every row.
pub(crate) fn table(view: &View) -> Vec<Row> {
    let row = |judged: &FigureJudgement| {
        let figures = figures(view, judged.metric);
        let side = |side: Side| {
            median(
                figures
                    .values()
                    .filter_map(|pair| pair[side as usize])
                    .collect(),
            )
        };
        Row {
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

/// A guardrail for people.
pub(crate) struct GuardRow {
    pub name: String,
    /// B ÷ A as a change.
    pub change: String,
    pub interval: String,
    pub allowed: String,
    /// All three in words.
    pub text: String,
    pub state: GuardState,
}

/// What is known of a guardrail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GuardState {
    Held,
    Broken,
    Open,
    /// As measured, which is no proof.
    Within,
    /// As measured, not within what is allowed.
    Beyond,
}

impl GuardState {
    pub(crate) fn of(guard: &GuardJudgement) -> Self {
        match (guard.broken, guard.held) {
            (true, _) => Self::Broken,
            (false, true) => Self::Held,
            (false, false) => Self::Open,
        }
    }

    /// `held`, `broken`, `not proved`.
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

pub(crate) fn guards(view: &View) -> Vec<GuardRow> {
    let load = &view.trial.plan.load;
    let row = |guard: &GuardJudgement| {
        let interval = guard
            .interval
            .map(|i| ends(guard.metric, 1.0 / i.high, 1.0 / i.low));
        let change = signed(super::change_of(guard.metric, 1.0 / guard.worsening));
        let range = interval.map(|(low, high)| span(low, high));
        let allowed = format!("{} worse", share(guard.margin));
        GuardRow {
            text: match &range {
                Some(range) => format!("{change} ({range}), allowed {allowed}"),
                None => format!("{change} (no interval yet), allowed {allowed}"),
            },
            name: metric(load, guard.metric),
            change,
            interval: range.unwrap_or_else(|| NONE.to_owned()),
            allowed,
            state: GuardState::of(guard),
        }
    };
    view.judgement.guards.iter().map(row).collect()
}

/// All guardrails of a trial: the plan's, then the total, which every trial has.
pub(crate) fn bounds(view: &View) -> Vec<GuardRow> {
    let mut rows = guards(view);
    rows.extend(totals(view));
    rows
}

/// What all slots amount to: operations done and time spent, whatever decides.
fn totals(view: &View) -> Vec<GuardRow> {
    let Some(total) = view.judgement.total else {
        return Vec::new();
    };
    let row = |name: String, ratio: f64, worsening: f64, broken: bool| {
        let allowed = format!("{} worse", share(total.margin));
        let change = signed(ratio);
        GuardRow {
            name,
            text: format!("{change}, allowed {allowed}"),
            interval: NONE.to_owned(),
            allowed,
            change,
            state: match broken {
                true => GuardState::Broken,
                // The bound that was compared, with room for rounding.
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

/// What the verdict proves and what it does not, in one sentence.
pub(crate) fn proved(view: &View) -> Option<String> {
    let judgement = view.judgement;
    let slots = judgement.pairs;
    if view.trial.plan.aa || slots < 6 {
        return None;
    }
    let [now, changed] = judgement.total?.slow;
    let rare = match changed {
        // None in n: probably fewer than 3 in n (the rule of three).
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

/// `p99.9 latency +40.1 % (+12.0 to +61.0 %)`.
#[must_use]
pub fn figure_line(load: &Load, figure: &FigureJudgement) -> String {
    let change = figure.ratio.map_or(NONE.to_owned(), signed);
    let interval = figure
        .interval
        .map(|i| format!(" ({})", span(i.low, i.high)));
    format!(
        "{} {change}{}",
        metric(load, figure.metric),
        interval.unwrap_or_default()
    )
}

/// A doubt with how many slots of each side carry it.
pub(crate) struct Carried<'a> {
    pub doubt: &'a Doubt,
    pub slots: [u32; 2],
}

/// Doubts by code, void before suspect, then by how many slots carry them.
pub(crate) fn doubts<'a>(view: &View<'a>) -> Vec<Carried<'a>> {
    let mut found: Vec<Carried> = Vec::new();
    for (slot, sample) in slots(view) {
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
                found.push(Carried {
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

/// Pairs that were left out, by reason: kind, reason and the pairs' numbers.
pub(crate) fn left_out(view: &View) -> Vec<(&'static str, String, Vec<u32>)> {
    let mut found: Vec<(&'static str, String, Vec<u32>)> = Vec::new();
    for (pair, outcome) in (1..).zip(view.pairs) {
        let (kind, reason) = match outcome {
            PairOutcome::Measured { .. } => continue,
            PairOutcome::FailedChanged { error } => ("failed only with the change", error),
            PairOutcome::Failed { error } => ("failed, not because of the change alone", error),
            PairOutcome::Void { reason } => ("void", reason),
        };
        let reason = clean(reason);
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

/// `pair 3`, `pairs 3, 7, 8`.
pub(crate) fn pair_numbers(pairs: &[u32]) -> String {
    let names: Vec<String> = pairs.iter().map(u32::to_string).collect();
    match pairs.len() {
        1 => format!("pair {}", names[0]),
        _ => format!("pairs {}", crate::terminal::some_names(&names, 8)),
    }
}

/// A ratio B ÷ A beside its row: the change with its interval, and nothing where there is none.
pub(crate) fn row_change(row: &Row) -> String {
    let Some(ratio) = row.ratio else {
        return NONE.to_owned();
    };
    let interval = row.interval.map(|i| format!(" ({})", span(i.low, i.high)));
    format!("{}{}", signed(ratio), interval.unwrap_or_default())
}

/// An interval in a column, its unit once where both ends have the same.
pub(crate) fn range(metric: Metric, interval: Interval) -> String {
    let (low, high) = (cell(metric, interval.low), cell(metric, interval.high));
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, a)), Some((_, b))) if a == b => format!("{number}–{high}"),
        _ => format!("{low}–{high}"),
    }
}

/// A figure in a column whose heading says the metric; latencies carry their unit.
pub(crate) fn cell(metric: Metric, value: f64) -> String {
    match metric.quantity.is_latency() {
        true => latency(value),
        false => assay_render::units::value(metric.quantity, value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_median_of_few_values_has_no_interval() {
        let four = median(vec![4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((four.value, four.interval), (2.5, None));
        let five = median(vec![5.0, 1.0, 3.0, 2.0, 4.0]).unwrap();
        let interval = five.interval.unwrap();
        assert_eq!((interval.low, interval.high), (1.0, 5.0));
        assert!((interval.confidence - 0.9375).abs() < 1e-12);
        assert_eq!(median(vec![f64::NAN]), None);
    }

    #[test]
    fn ranks_are_those_of_the_sign_test() {
        // n = 20: P(at most 5 heads) = 2.07 %, P(at most 6) = 5.77 %.
        let twenty = median((1..=20).map(f64::from).collect()).unwrap();
        let interval = twenty.interval.unwrap();
        assert_eq!((interval.low, interval.high), (6.0, 15.0));
        assert!((interval.confidence - 0.9586).abs() < 1e-4);
    }

    proptest! {
        #[test]
        fn an_interval_holds_its_median(values in prop::collection::vec(-1e6f64..1e6, 1..200)) {
            let found = median(values).unwrap();
            if let Some(interval) = found.interval {
                prop_assert!(interval.low <= found.value && found.value <= interval.high);
                prop_assert!(interval.confidence >= 0.9 - 1e-9 && interval.confidence <= 1.0);
            }
        }
    }
}
