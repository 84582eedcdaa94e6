//! The charts of a trial, each with the table of what it shows.

use crate::html::charts::{rate_tick, tick};
use crate::trial::View;
use crate::trial::evidence::{self, GuardState, Median};
use crate::trial::list;
use crate::trial::words::{ends, headline, metric, share, short_metric, signed, span};
use assay_model::criterion::{Metric, Quantity};
use assay_model::result::Interval;
use assay_model::trial::{PairOutcome, Side, Verdict};
use assay_render::html::{Chart, Table};
use assay_render::svg::{curves, effects, forest, sides};
use assay_render::units::{NONE, latency};

fn head(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// ln of a margin.
fn band(margin: f64) -> f64 {
    margin.max(0.0).ln_1p()
}

fn logs(interval: Interval) -> (f64, f64) {
    (interval.low.ln(), interval.high.ln())
}

/// One point for each pair; none before there is one.
pub(super) fn pairs(view: &View) -> Option<Chart> {
    let plan = &view.trial.plan;
    let name = metric(&plan.load, plan.metric);
    let first = |i: usize| plan.first.get(i).copied().unwrap_or(Side::Now);
    let point = |(i, outcome): (usize, &PairOutcome)| match (outcome, first(i)) {
        (PairOutcome::Measured { effect, .. }, Side::Now) => (effects::Point::NowFirst, *effect),
        (PairOutcome::Measured { effect, .. }, _) => (effects::Point::ChangedFirst, *effect),
        _ => (effects::Point::LeftOut, 0.0),
    };
    let row = |(i, outcome): (usize, &PairOutcome)| {
        let order = match first(i) {
            Side::Now => "A",
            Side::Changed => "B",
        };
        let change = match outcome {
            PairOutcome::Measured { effect, .. } => {
                signed(crate::trial::change_of(plan.metric, effect.exp()))
            }
            _ => "left out".to_owned(),
        };
        vec![(i + 1).to_string(), order.to_owned(), change]
    };
    let title = format!("Change of {name}, pair by pair");
    let chart = effects::Pairs {
        id: "pairs".to_owned(),
        description: format!(
            "One point for each of {} pairs: how B changed against A, better is up; the band is the \
             {} either way that does not matter.",
            view.pairs.len(),
            share(plan.margin)
        ),
        title: title.clone(),
        points: view.pairs.iter().enumerate().map(point).collect(),
        centre: view.judgement.ratio.map(f64::ln),
        interval: view.judgement.interval.map(logs),
        margin: band(plan.margin),
        falls: plan.metric.quantity.is_latency(),
        tick: &on_axis,
    };
    (!view.pairs.is_empty()).then(|| Chart {
        title,
        svg: effects::pairs(&chart),
        table: Table {
            head: head(&["pair", "first", "change"]),
            rows: view.pairs.iter().enumerate().map(row).collect(),
        },
    })
}

/// The interval at each look.
pub(super) fn looks(view: &View) -> Option<Chart> {
    let plan = &view.trial.plan;
    let looks = &view.judgement.looks;
    let text = |low: Option<f64>, high: Option<f64>| {
        let (low, high) = (low.unwrap_or(0.0), high.unwrap_or(f64::INFINITY));
        let (low, high) = ends(plan.metric, low, high);
        let end = |ratio: f64, none: &str| match ratio.is_finite() && ratio > 0.0 {
            true => signed(ratio),
            false => none.to_owned(),
        };
        format!("{} to {}", end(low, "no end"), end(high, "no end"))
    };
    let title = format!("Change and {} interval at each look", confidence(view));
    let chart = effects::Looks {
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
        margin: band(plan.margin),
        falls: plan.metric.quantity.is_latency(),
        tick: &on_axis,
    };
    let row = |look: &assay_model::trial::Look| {
        vec![
            look.pairs.to_string(),
            signed(crate::trial::change_of(plan.metric, look.ratio)),
            text(look.low, look.high),
        ]
    };
    (!looks.is_empty()).then(|| Chart {
        title,
        svg: effects::looks(&chart),
        table: Table {
            head: head(&["pairs", "change", "interval"]),
            rows: looks.iter().map(row).collect(),
        },
    })
}

fn confidence(view: &View) -> String {
    share(
        view.judgement
            .interval
            .map_or(0.9, |interval| interval.confidence),
    )
}

/// Guardrails: each with its interval and where its limit is.
pub(super) fn guards(view: &View) -> Option<Chart> {
    let rows = evidence::guards(view);
    let draw =
        |(guard, row): (&assay_model::trial::GuardJudgement, &evidence::GuardRow)| forest::Row {
            label: format!("{}: {}", row.name, row.state.word()),
            effect: Some(-guard.worsening.ln()).filter(|effect| effect.is_finite()),
            interval: guard.interval.map(|i| (-i.high.ln(), -i.low.ln())),
            least: Some(-band(guard.margin)),
            margin: None,
            shape: match row.state {
                GuardState::Held => forest::Shape::Good,
                GuardState::Broken => forest::Shape::Bad,
                GuardState::Open | GuardState::Beyond | GuardState::Within => forest::Shape::Open,
            },
            text: String::new(),
        };
    let chart = forest::Forest {
        id: "guards".to_owned(),
        title: "Guardrails".to_owned(),
        description:
            "Each guardrail's change with its interval; the band is what is allowed, better is \
                      to the right."
                .to_owned(),
        rows: view.judgement.guards.iter().zip(&rows).map(draw).collect(),
        falls: true,
        tick: &worsening,
    };
    (!rows.is_empty()).then(|| Chart {
        title: "Change of each guardrail, and what is allowed".to_owned(),
        svg: forest::draw(&chart),
        table: Table {
            head: head(&["guardrail", "change", "interval", "allowed", ""]),
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

/// A change on an axis: `+5 %`, `0`, `×20`.
fn on_axis(ratio: f64) -> String {
    match signed(ratio).as_str() {
        "±0 %" => "0".to_owned(),
        text => text.replace(".0", ""),
    }
}

/// A worsening on an axis: `10 % worse`, `5 % better`.
fn worsening(ratio: f64) -> String {
    match on_axis(ratio) {
        text if text.starts_with('+') => format!("{} worse", &text[1..]),
        text if text.starts_with('−') => format!("{} better", text.trim_start_matches('−')),
        text if text.starts_with('×') => format!("{text} worse"),
        text => text,
    }
}

/// Latency of both sides.
pub(super) fn latencies(view: &View) -> Option<Chart> {
    let names = match view.trial.plan.aa {
        true => ["A", "B, the same"],
        false => ["A, as it is", "B, changed"],
    };
    let known = view.latency.iter().all(|latency| !latency.is_empty());
    let lines: Vec<curves::Curve> = [1, 0]
        .into_iter()
        .map(|i| curves::Curve {
            label: ["A", "B"][i].to_owned(),
            points: curves::points(&view.latency[i], 64),
        })
        .collect();
    let y = curves::scale(lines.iter(), true);
    let nines = lines
        .iter()
        .filter_map(|line| Some(line.points.last()?.0))
        .fold(1.0, f64::max);
    let columns = [50.0, 90.0, 99.0, 99.9, 99.99, 100.0];
    let row = |i: usize| {
        let cells = columns.iter().map(|percent| {
            let nanos = view.latency[i].percentile(*percent);
            nanos.map_or(NONE.to_owned(), |nanos| latency(nanos as f64))
        });
        [names[i].to_owned()].into_iter().chain(cells).collect()
    };
    let panel = curves::Panel {
        id: "latency".to_owned(),
        title: "Latency percentiles of both sides".to_owned(),
        description: "Latency (logarithmic) by percentile, further right is rarer: a curve for A and one for B."
            .to_owned(),
        curves: lines,
        large: true,
    };
    known.then(|| Chart {
        title: "How long operations took".to_owned(),
        svg: curves::draw(&panel, &y, nines),
        table: Table {
            head: head(&["", "p50", "p90", "p99", "p99.9", "p99.99", "max"]),
            rows: vec![row(0), row(1)],
        },
    })
}

/// What decides and the guardrails in the course of the trial.
pub(super) fn over_time(view: &View) -> Vec<Chart> {
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
        .filter_map(|(i, metric)| course(view, metric, i))
        .collect()
}

fn course(view: &View, of: Metric, i: usize) -> Option<Chart> {
    let load = &view.trial.plan.load;
    let mut lines = [Vec::new(), Vec::new()];
    for (slot, sample) in
        evidence::slots(view).filter(|(slot, _)| evidence::measured(view, slot.pair))
    {
        if let Some(figure) = sample.and_then(|sample| sample.figures.get(&of)) {
            let since = slot.sample.started.duration_since(view.trial.started);
            lines[slot.side as usize].push((since.as_secs_f64(), *figure));
        }
    }
    if lines.iter().any(Vec::is_empty) {
        return None;
    }
    let title = super::super::words::capital(&metric(load, of));
    let title = match of.quantity {
        Quantity::Throughput => format!("{title}, MB/s"),
        _ => title,
    };
    let figures = evidence::figures(view, of);
    let text = |value: Option<f64>| value.map_or(NONE.to_owned(), |v| evidence::cell(of, v));
    let chart = sides::Sides {
        id: format!("course-{i}"),
        title: format!("{title} over time"),
        description: "The figure of each measurement of A and of B over the time of the trial."
            .to_owned(),
        lines,
        tick: &|value| match of.quantity {
            Quantity::Throughput => rate_tick(value / 1e6),
            quantity => tick(quantity, value),
        },
    };
    Some(Chart {
        svg: sides::draw(&chart),
        table: Table {
            head: head(&["pair", "A", "B"]),
            rows: figures
                .iter()
                .map(|(pair, [a, b])| vec![pair.to_string(), text(*a), text(*b)])
                .collect(),
        },
        title,
    })
}

/// A row for each piece of advice of a campaign.
pub(super) fn campaign(views: &[View]) -> Option<Chart> {
    let row = |view: &View| {
        let plan = &view.trial.plan;
        forest::Row {
            label: format!("{}: {}", plan.advice, list::state(view)),
            effect: view
                .judgement
                .ratio
                .map(f64::ln)
                .filter(|effect| effect.is_finite()),
            interval: view.judgement.interval.map(logs),
            least: None,
            margin: Some(band(plan.margin)),
            shape: match view.judgement.verdict {
                Verdict::Better => forest::Shape::Good,
                Verdict::Worse | Verdict::Unsafe => forest::Shape::Bad,
                Verdict::NoPracticalDifference => forest::Shape::Plain,
                Verdict::Undecided => forest::Shape::Open,
            },
            text: summary(view),
        }
    };
    let chart = forest::Forest {
        id: "campaign".to_owned(),
        title: "Improvement by each piece of advice".to_owned(),
        description: format!(
            "One row for each of {} pieces of advice: its improvement with the interval; the band is what \
             does not matter.",
            views.len()
        ),
        rows: views.iter().map(row).collect(),
        falls: false,
        tick: &on_axis,
    };
    let cells = |view: &View| {
        let word = headline(view).to_lowercase();
        vec![
            assay_render::text::clean(&view.trial.plan.advice),
            word,
            summary(view),
        ]
    };
    (!views.is_empty()).then(|| Chart {
        title: "Improvement by each piece of advice".to_owned(),
        svg: forest::draw(&chart),
        table: Table {
            head: head(&["advice", "verdict", "change"]),
            rows: views.iter().map(cells).collect(),
        },
    })
}

/// `I/Os/s +12.3 % (+8.1 to +17.0 %)`.
pub(super) fn summary(view: &View) -> String {
    let plan = &view.trial.plan;
    let Some(ratio) = view.judgement.ratio else {
        return NONE.to_owned();
    };
    let range = view.judgement.interval.map(|interval| {
        let (low, high) = ends(plan.metric, interval.low, interval.high);
        format!(" ({})", span(low, high))
    });
    format!(
        "{} {}{}",
        short_metric(&plan.load, plan.metric),
        signed(crate::trial::change_of(plan.metric, ratio)),
        range.unwrap_or_default()
    )
}

/// A median of a side with its interval, in two parts.
pub(super) fn cell(metric: Metric, median: Option<Median>) -> (String, String) {
    let Some(median) = median else {
        return (NONE.to_owned(), String::new());
    };
    let range = median.interval.map(|i| evidence::range(metric, i));
    (
        evidence::cell(metric, median.value),
        range.unwrap_or_default(),
    )
}
