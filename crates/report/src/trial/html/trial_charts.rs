//! Charts of a trial, each with the table of its figures. `assay-render` renders the charts.

use crate::html::run_charts::{format_rate_tick, format_tick};
use crate::trial::TrialView;
use crate::trial::trial_lists;
use crate::trial::trial_tables::{self, GuardState, PairMedian};
use crate::trial::trial_text::{
    convert_interval, format_share, format_signed_ratio, format_span, headline_word, metric_name,
    short_metric_name,
};
use assay_model::criterion::{Metric, Quantity};
use assay_model::result::Interval;
use assay_model::trial::{PairOutcome, Side, Verdict};
use assay_render::html::{Chart, ChartTable};
use assay_render::svg::{forest_plot, percentile_curves, sides_over_time, trial_effects};
use assay_render::units::{NONE, format_latency};

fn to_strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Returns the natural logarithm of a margin.
fn compute_log_margin(margin: f64) -> f64 {
    margin.max(0.0).ln_1p()
}

fn compute_log_interval(interval: Interval) -> (f64, f64) {
    (interval.low.ln(), interval.high.ln())
}

/// Builds the chart with a point for each pair; `None` before the first pair.
pub(super) fn build_pairs_chart(view: &TrialView) -> Option<Chart> {
    let plan = &view.trial.plan;
    let name = metric_name(&plan.load, plan.metric);
    let first = |i: usize| plan.first.get(i).copied().unwrap_or(Side::Now);
    let point = |(i, outcome): (usize, &PairOutcome)| match (outcome, first(i)) {
        (PairOutcome::Measured { effect, .. }, Side::Now) => {
            (trial_effects::PairMark::NowFirst, *effect)
        }
        (PairOutcome::Measured { effect, .. }, _) => {
            (trial_effects::PairMark::ChangedFirst, *effect)
        }
        _ => (trial_effects::PairMark::LeftOut, 0.0),
    };
    let row = |(i, outcome): (usize, &PairOutcome)| {
        let order = match first(i) {
            Side::Now => "A",
            Side::Changed => "B",
        };
        let change = match outcome {
            PairOutcome::Measured { effect, .. } => {
                format_signed_ratio(crate::trial::convert_improvement(plan.metric, effect.exp()))
            }
            _ => "left out".to_owned(),
        };
        vec![(i + 1).to_string(), order.to_owned(), change]
    };
    let title = format!("Change of {name}, pair by pair");
    let chart = trial_effects::PairsChart {
        id: "pairs".to_owned(),
        description: format!(
            "One point for each of {} pairs: how B changed against A, better is up; the band is the \
             {} either way that does not matter.",
            view.pairs.len(),
            format_share(plan.margin)
        ),
        title: title.clone(),
        points: view.pairs.iter().enumerate().map(point).collect(),
        centre: view.judgement.ratio.map(f64::ln),
        interval: view.judgement.interval.map(compute_log_interval),
        margin: compute_log_margin(plan.margin),
        falls: plan.metric.quantity.is_latency(),
        tick: &format_axis_ratio,
    };
    (!view.pairs.is_empty()).then(|| Chart {
        title,
        svg: trial_effects::draw_pairs(&chart),
        table: ChartTable {
            head: to_strings(&["pair", "first", "change"]),
            rows: view.pairs.iter().enumerate().map(row).collect(),
        },
    })
}

/// Builds the chart of the interval at each look.
pub(super) fn build_looks_chart(view: &TrialView) -> Option<Chart> {
    let plan = &view.trial.plan;
    let looks = &view.judgement.looks;
    let text = |low: Option<f64>, high: Option<f64>| {
        let (low, high) = (low.unwrap_or(0.0), high.unwrap_or(f64::INFINITY));
        let (low, high) = convert_interval(plan.metric, low, high);
        let end = |ratio: f64, none: &str| match ratio.is_finite() && ratio > 0.0 {
            true => format_signed_ratio(ratio),
            false => none.to_owned(),
        };
        format!("{} to {}", end(low, "no end"), end(high, "no end"))
    };
    let title = format!(
        "Change and {} interval at each look",
        format_confidence(view)
    );
    let chart = trial_effects::LooksChart {
        id: "looks".to_owned(),
        title: title.clone(),
        description: format!(
            "The change so far with its interval after {} looks; it narrows as pairs come in.",
            looks.len()
        ),
        looks: looks
            .iter()
            .map(|look| {
                let ln = |end: Option<f64>| end.map(f64::ln).filter(|end| end.is_finite());
                (look.pairs, look.ratio.ln(), ln(look.low), ln(look.high))
            })
            .collect(),
        margin: compute_log_margin(plan.margin),
        falls: plan.metric.quantity.is_latency(),
        tick: &format_axis_ratio,
    };
    let row = |look: &assay_model::trial::TrialLook| {
        vec![
            look.pairs.to_string(),
            format_signed_ratio(crate::trial::convert_improvement(plan.metric, look.ratio)),
            text(look.low, look.high),
        ]
    };
    (!looks.is_empty()).then(|| Chart {
        title,
        svg: trial_effects::draw_looks(&chart),
        table: ChartTable {
            head: to_strings(&["pairs", "change", "interval"]),
            rows: looks.iter().map(row).collect(),
        },
    })
}

fn format_confidence(view: &TrialView) -> String {
    format_share(
        view.judgement
            .interval
            .map_or(0.9, |interval| interval.confidence),
    )
}

/// Builds the chart of the guardrails, each with its interval and its limit.
pub(super) fn build_guards_chart(view: &TrialView) -> Option<Chart> {
    let rows = trial_tables::build_guard_rows(view);
    let draw = |(guard, row): (&assay_model::trial::GuardJudgement, &trial_tables::GuardRow)| {
        forest_plot::ForestRow {
            label: format!("{}: {}", row.name, row.state.word()),
            effect: Some(-guard.worsening.ln()).filter(|effect| effect.is_finite()),
            interval: guard.interval.map(|i| (-i.high.ln(), -i.low.ln())),
            least: Some(-compute_log_margin(guard.margin)),
            margin: None,
            shape: match row.state {
                GuardState::Held => forest_plot::ForestMark::Good,
                GuardState::Broken => forest_plot::ForestMark::Bad,
                GuardState::Open | GuardState::Beyond | GuardState::Within => {
                    forest_plot::ForestMark::Open
                }
            },
            text: String::new(),
        }
    };
    let chart = forest_plot::ForestPlot {
        id: "guards".to_owned(),
        title: "Guardrails".to_owned(),
        description:
            "Each guardrail's change with its interval; the band is what is allowed, better is \
                      to the right."
                .to_owned(),
        rows: view.judgement.guards.iter().zip(&rows).map(draw).collect(),
        falls: true,
        tick: &format_worsening,
    };
    (!rows.is_empty()).then(|| Chart {
        title: "Change of each guardrail, and what is allowed".to_owned(),
        svg: forest_plot::draw_forest(&chart),
        table: ChartTable {
            head: to_strings(&["guardrail", "change", "interval", "allowed", ""]),
            rows: rows
                .iter()
                .map(|row| {
                    let word = row.state.word().to_owned();
                    vec![
                        row.name.clone(),
                        row.change.clone(),
                        row.interval.clone(),
                        row.allowed.clone(),
                        word,
                    ]
                })
                .collect(),
        },
    })
}

/// Formats a change on an axis, such as `+5 %`, `0`, `×20`.
fn format_axis_ratio(ratio: f64) -> String {
    match format_signed_ratio(ratio).as_str() {
        "±0 %" => "0".to_owned(),
        text => text.replace(".0", ""),
    }
}

/// Formats a worsening on an axis, such as `10 % worse`, `5 % better`.
fn format_worsening(ratio: f64) -> String {
    match format_axis_ratio(ratio) {
        text if text.starts_with('+') => format!("{} worse", &text[1..]),
        text if text.starts_with('−') => format!("{} better", text.trim_start_matches('−')),
        text if text.starts_with('×') => format!("{text} worse"),
        text => text,
    }
}

/// Builds the chart of the latency of both sides.
pub(super) fn build_latencies_chart(view: &TrialView) -> Option<Chart> {
    let names = match view.trial.plan.aa {
        true => ["A", "B, the same"],
        false => ["A, as it is", "B, changed"],
    };
    let known = view.latency.iter().all(|latency| !latency.is_empty());
    let lines: Vec<percentile_curves::LatencyCurve> = [1, 0]
        .into_iter()
        .map(|i| percentile_curves::LatencyCurve {
            label: ["A", "B"][i].to_owned(),
            points: percentile_curves::compute_curve(&view.latency[i], 64),
        })
        .collect();
    let y = percentile_curves::build_latency_scale(lines.iter(), true);
    let nines = lines
        .iter()
        .filter_map(|line| Some(line.points.last()?.0))
        .fold(1.0, f64::max);
    let columns = [50.0, 90.0, 99.0, 99.9, 99.99, 100.0];
    let row = |i: usize| {
        let cells = columns.iter().map(|percent| {
            let nanos = view.latency[i].percentile(*percent);
            nanos.map_or(NONE.to_owned(), |nanos| format_latency(nanos as f64))
        });
        [names[i].to_owned()].into_iter().chain(cells).collect()
    };
    let panel = percentile_curves::CurvePanel {
        id: "latency".to_owned(),
        title: "Latency percentiles of both sides".to_owned(),
        description: "Latency (logarithmic) by percentile, further right is rarer: a curve for A and one for B."
            .to_owned(),
        curves: lines,
        large: true,
    };
    known.then(|| Chart {
        title: "How long operations took".to_owned(),
        svg: percentile_curves::draw_panel(&panel, &y, nines),
        table: ChartTable {
            head: to_strings(&["", "p50", "p90", "p99", "p99.9", "p99.99", "max"]),
            rows: vec![row(0), row(1)],
        },
    })
}

/// Builds the charts of the deciding figure and the guardrails over time.
pub(super) fn build_course_charts(view: &TrialView) -> Vec<Chart> {
    let plan = &view.trial.plan;
    let mut metrics = vec![plan.metric];
    metrics.extend(plan.guards.iter().map(|guard| guard.metric));
    let mut seen: Vec<Metric> = Vec::new();
    metrics.retain(|metric| {
        !seen.contains(metric) && {
            seen.push(*metric);
            true
        }
    });
    metrics
        .into_iter()
        .enumerate()
        .filter_map(|(i, metric)| build_course_chart(view, metric, i))
        .collect()
}

fn build_course_chart(view: &TrialView, of: Metric, i: usize) -> Option<Chart> {
    let load = &view.trial.plan.load;
    let mut lines = [Vec::new(), Vec::new()];
    for (slot, sample) in trial_tables::zip_slots_with_samples(view)
        .filter(|(slot, _)| trial_tables::is_counted(view, slot.pair))
    {
        if let Some(figure) = sample.and_then(|sample| sample.figures.get(&of)) {
            let since = slot.sample.started.duration_since(view.trial.started);
            lines[slot.side as usize].push((since.as_secs_f64(), *figure));
        }
    }
    if lines.iter().any(Vec::is_empty) {
        return None;
    }
    let title = super::super::trial_text::capitalize(&metric_name(load, of));
    let title = match of.quantity {
        Quantity::Throughput => format!("{title}, MB/s"),
        _ => title,
    };
    let figures = trial_tables::pair_figures(view, of);
    let text =
        |value: Option<f64>| value.map_or(NONE.to_owned(), |v| trial_tables::format_cell(of, v));
    let chart = sides_over_time::SidesChart {
        id: format!("course-{i}"),
        title: format!("{title} over time"),
        description: "The figure of each measurement of A and of B over the time of the trial."
            .to_owned(),
        lines,
        tick: &|value| match of.quantity {
            Quantity::Throughput => format_rate_tick(value / 1e6),
            quantity => format_tick(quantity, value),
        },
    };
    Some(Chart {
        svg: sides_over_time::draw_sides(&chart),
        table: ChartTable {
            head: to_strings(&["pair", "A", "B"]),
            rows: figures
                .iter()
                .map(|(pair, [a, b])| vec![pair.to_string(), text(*a), text(*b)])
                .collect(),
        },
        title,
    })
}

/// Builds the chart of a campaign, with a row for each piece of advice.
pub(super) fn build_campaign_chart(views: &[TrialView]) -> Option<Chart> {
    let row = |view: &TrialView| {
        let plan = &view.trial.plan;
        forest_plot::ForestRow {
            label: format!("{}: {}", plan.advice, trial_lists::describe_state(view)),
            effect: view
                .judgement
                .ratio
                .map(f64::ln)
                .filter(|effect| effect.is_finite()),
            interval: view.judgement.interval.map(compute_log_interval),
            least: None,
            margin: Some(compute_log_margin(plan.margin)),
            shape: match view.judgement.verdict {
                Verdict::Better => forest_plot::ForestMark::Good,
                Verdict::Worse | Verdict::Unsafe => forest_plot::ForestMark::Bad,
                Verdict::NoPracticalDifference => forest_plot::ForestMark::Plain,
                Verdict::Undecided => forest_plot::ForestMark::Open,
            },
            text: summarize_trial(view),
        }
    };
    let chart = forest_plot::ForestPlot {
        id: "campaign".to_owned(),
        title: "Improvement by each piece of advice".to_owned(),
        description: format!(
            "One row for each of {} pieces of advice: its improvement with the interval; the band is what \
             does not matter.",
            views.len()
        ),
        rows: views.iter().map(row).collect(),
        falls: false,
        tick: &format_axis_ratio,
    };
    let cells = |view: &TrialView| {
        let word = headline_word(view).to_lowercase();
        vec![
            assay_render::text::escape_line(&view.trial.plan.advice),
            word,
            summarize_trial(view),
        ]
    };
    (!views.is_empty()).then(|| Chart {
        title: "Improvement by each piece of advice".to_owned(),
        svg: forest_plot::draw_forest(&chart),
        table: ChartTable {
            head: to_strings(&["advice", "verdict", "change"]),
            rows: views.iter().map(cells).collect(),
        },
    })
}

/// Summarises a trial, such as `I/Os/s +12.3 % (+8.1 to +17.0 %)`.
pub(super) fn summarize_trial(view: &TrialView) -> String {
    let plan = &view.trial.plan;
    let Some(ratio) = view.judgement.ratio else {
        return NONE.to_owned();
    };
    let range = view.judgement.interval.map(|interval| {
        let (low, high) = convert_interval(plan.metric, interval.low, interval.high);
        format!(" ({})", format_span(low, high))
    });
    format!(
        "{} {}{}",
        short_metric_name(&plan.load, plan.metric),
        format_signed_ratio(crate::trial::convert_improvement(plan.metric, ratio)),
        range.unwrap_or_default()
    )
}

/// Formats the median of a side and its interval as two texts.
pub(super) fn format_median_cell(metric: Metric, median: Option<PairMedian>) -> (String, String) {
    let Some(median) = median else {
        return (NONE.to_owned(), String::new());
    };
    let range = median
        .interval
        .map(|i| trial_tables::format_range(metric, i));
    (
        trial_tables::format_cell(metric, median.value),
        range.unwrap_or_default(),
    )
}
