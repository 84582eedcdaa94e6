//! A trial in a list, and the forest plot of several trials.

use super::{LinkView, TimeView, machine_link, short_name};
use crate::stored_trial::TrialSummary;
use assay_model::trial::{Kept, TrialState, Verdict};
use assay_pool::Pooled;
use assay_render::html::{Chart, ChartTable};
use assay_render::svg::forest_plot::{ForestMark, ForestPlot, ForestRow, draw_forest};
use assay_render::units::NONE;
use serde::Serialize;

/// Maximum number of rows in the forest plot. The table contains all trials.
const MOST_ROWS: usize = 40;

/// A row of a list of trials.
#[derive(Clone, Debug, Serialize)]
pub(super) struct TrialRowView {
    id: i64,
    advice: String,
    advice_href: String,
    machine: Option<LinkView>,
    target: String,
    started: TimeView,
    pairs: String,
    verdict: &'static str,
    class: &'static str,
    change: String,
    became: &'static str,
}

impl TrialRowView {
    /// Builds the row of a trial.
    pub(super) fn new(trial: &TrialSummary) -> Self {
        Self {
            id: trial.id.0,
            advice: short_name(&trial.advice),
            advice_href: match trial.advice.len() > super::MOST_LINKED {
                true => "/advice".to_owned(),
                false => super::catalogue::advice_href(&trial.advice, None),
            },
            machine: trial.machine.as_deref().map(machine_link),
            target: short_name(&trial.target),
            started: TimeView::new(trial.started),
            pairs: match trial.state {
                TrialState::Running => format!("{} of at most {}", trial.pairs, trial.most_pairs),
                _ => trial.pairs.to_string(),
            },
            verdict: verdict_name(trial),
            class: verdict_class(trial),
            change: describe_change(trial),
            became: match (trial.state, trial.kept) {
                (TrialState::Running, _) => "running",
                (_, Some(Kept::Kept)) => "kept",
                _ if trial.waits_for_keep => "waits for keep",
                (_, Some(Kept::Reverted)) => "reverted",
                (TrialState::Stopped, None) => "stopped",
                (TrialState::Complete, None) => "",
            },
        }
    }
}

/// Returns the name of a trial's verdict, in one or two words.
pub(super) fn verdict_name(trial: &TrialSummary) -> &'static str {
    match (trial.is_aa, trial.verdict) {
        (true, Verdict::Better | Verdict::Worse) => "false alarm",
        (true, _) => "noise",
        (_, Verdict::Better) => "better",
        (_, Verdict::Worse) => "worse",
        (_, Verdict::Unsafe) => "unsafe",
        (_, Verdict::NoPracticalDifference) => "no difference",
        (_, Verdict::Undecided) => "undecided",
    }
}

/// Returns the CSS class for a trial's verdict.
pub(super) fn verdict_class(trial: &TrialSummary) -> &'static str {
    match (trial.is_aa, trial.verdict) {
        (false, Verdict::Better) => "good",
        (false, Verdict::Worse | Verdict::Unsafe) => "bad",
        (false, Verdict::Undecided) => "warn",
        _ => "plain",
    }
}

/// Formats the change of the deciding figure, as in `p99 −12.3 %`.
pub(super) fn describe_change(trial: &TrialSummary) -> String {
    match trial.change {
        Some(change) => format!("{} {}", trial.metric, format_signed(change)),
        None => NONE.to_owned(),
    }
}

/// Formats a ratio as a change in percent with its sign.
pub(super) fn format_signed(ratio: f64) -> String {
    match ratio {
        r if !r.is_finite() || r <= 0.0 => NONE.to_owned(),
        r if r >= 3.0 => format!("×{r:.1}"),
        r => {
            let percent = (r - 1.0) * 100.0;
            match percent {
                p if p.abs() < 0.05 => "±0 %".to_owned(),
                p if p < 0.0 => format!("−{:.1} %", -p),
                p => format!("+{p:.1} %"),
            }
        }
    }
}

/// Draws the effects of trials with their intervals, where better is to the right. The means of shared trials follow
/// below.
pub(super) fn draw_effects(trials: &[&TrialSummary], elsewhere: &[Pooled]) -> Option<Chart> {
    let shown: Vec<&&TrialSummary> = trials
        .iter()
        .filter(|trial| trial.improvement.is_some_and(f64::is_finite) && !trial.is_aa)
        .take(MOST_ROWS)
        .collect();
    let label = |trial: &TrialSummary| match &trial.machine {
        Some(machine) => format!("{} on {}", short_name(&trial.advice), short_name(machine)),
        None => short_name(&trial.advice),
    };
    let interval = |trial: &TrialSummary| match trial.interval {
        Some([low, high]) => format!("{} to {}", format_signed(low), format_signed(high)),
        None => NONE.to_owned(),
    };
    let rows = shown.iter().map(|trial| ForestRow {
        label: label(trial),
        effect: trial.improvement.map(f64::ln),
        interval: trial.interval.map(|[low, high]| (low.ln(), high.ln())),
        least: None,
        margin: Some(trial.margin.ln_1p()),
        shape: match verdict_class(trial) {
            "good" => ForestMark::Good,
            "bad" => ForestMark::Bad,
            "warn" => ForestMark::Open,
            _ => ForestMark::Plain,
        },
        text: format!("{}: {}", verdict_name(trial), describe_change(trial)),
    });
    let shared: Vec<(&Pooled, &assay_pool::Effect)> = elsewhere
        .iter()
        .filter_map(|one| Some((one, one.effect.as_ref()?)))
        .collect();
    let shared_label = |one: &Pooled| {
        format!(
            "elsewhere: {} machines of {} owners",
            one.machines, one.owners
        )
    };
    let shared_rows = shared.iter().map(|(one, effect)| ForestRow {
        label: shared_label(one),
        effect: Some(effect.mean.ln_1p()),
        interval: Some((
            effect.mean_interval.low.ln_1p(),
            effect.mean_interval.high.ln_1p(),
        )),
        least: None,
        margin: Some(effect.worthwhile.ln_1p()),
        shape: ForestMark::Plain,
        text: format!("{} {}", one.metric, format_signed(1.0 + effect.mean)),
    });
    let rows = rows.chain(shared_rows);
    let title = "Effects of trials with their intervals";
    let plot = ForestPlot {
        id: "effects".to_owned(),
        title: title.to_owned(),
        description: format!(
            "One row for each of {} trials: its improvement with the interval, better to the right; the band is what \
             does not matter.",
            shown.len() + shared.len()
        ),
        rows: rows.collect(),
        falls: false,
        tick: &|ratio| format_signed(ratio).replace(".0 %", " %"),
    };
    let table = shown.iter().map(|trial| {
        vec![
            format!("{} ({})", label(trial), trial.id),
            verdict_name(trial).to_owned(),
            trial.improvement.map_or(NONE.to_owned(), format_signed),
            interval(trial),
        ]
    });
    let shared_table = shared.iter().map(|(one, effect)| {
        vec![
            shared_label(one),
            "mean".to_owned(),
            format_signed(1.0 + effect.mean),
            format!(
                "{} to {}",
                format_signed(1.0 + effect.mean_interval.low),
                format_signed(1.0 + effect.mean_interval.high)
            ),
        ]
    });
    let table = table.chain(shared_table);
    (!shown.is_empty() || !shared.is_empty()).then(|| Chart {
        title: title.to_owned(),
        svg: draw_forest(&plot),
        table: ChartTable {
            head: ["trial", "verdict", "improvement", "interval"]
                .map(str::to_owned)
                .to_vec(),
            rows: table.collect(),
        },
    })
}
