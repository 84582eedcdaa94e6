//! Lists of trials: a list of all trials, and the pieces of advice of one campaign. The report of a single trial is in
//! the sibling modules.

use super::TrialView;
use super::trial_text::{
    convert_interval, format_signed_ratio, format_span, headline_word, short_metric_name,
};
use assay_model::trial::{Kept, TrialState};
use assay_render::Style;
use assay_render::text::{escape_line, measure_width, pad_left, pad_right};
use assay_render::units::{NONE, format_timestamp};

/// Renders the list of `assay trial --list` in the given order.
#[must_use]
pub fn render_trial_list(views: &[TrialView], style: Style) -> String {
    if views.is_empty() {
        return "No trials yet. `assay advice` shows what can be tried.\n".to_owned();
    }
    let head = ["trial", "when", "advice", "pairs", "change", "verdict"].map(str::to_owned);
    let mut lines = vec![head];
    lines.extend(views.iter().map(|view| {
        [
            view.trial.id.to_string(),
            format_timestamp(view.trial.started).replace(" UTC", ""),
            escape_line(&view.trial.plan.advice),
            view.judgement.pairs.to_string(),
            format_change(view),
            describe_state(view),
        ]
    }));
    let widest = |i: usize| {
        lines
            .iter()
            .map(|line| measure_width(&line[i]))
            .max()
            .unwrap_or(0)
    };
    let mut out = String::new();
    for (n, line) in lines.iter().enumerate() {
        let text = format!(
            "{}  {}  {}  {}  {}  {}",
            pad_left(&line[0], widest(0)),
            pad_right(&line[1], widest(1)),
            pad_right(&line[2], widest(2)),
            pad_left(&line[3], widest(3)),
            pad_left(&line[4], widest(4)),
            line[5]
        );
        out.push_str(&if n == 0 { style.dim(&text) } else { text });
        out.push('\n');
    }
    out
}

/// Formats the change of the deciding figure, such as `p99 −12.3 %`.
fn format_change(view: &TrialView) -> String {
    let plan = &view.trial.plan;
    view.judgement.ratio.map_or(NONE.to_owned(), |ratio| {
        let ratio = super::convert_improvement(plan.metric, ratio);
        format!(
            "{} {}",
            short_metric_name(&plan.load, plan.metric),
            format_signed_ratio(ratio)
        )
    })
}

/// Describes verdict and state of a trial, such as `better, kept` or `undecided (stopped)`.
pub(super) fn describe_state(view: &TrialView) -> String {
    let mut text = headline_word(view).to_lowercase();
    if view.trial.kept == Some(Kept::Kept) {
        text.push_str(", kept");
    }
    match view.trial.state {
        TrialState::Complete => {}
        TrialState::Running => text.push_str(" (not finished)"),
        TrialState::Stopped => text.push_str(" (stopped)"),
    }
    text
}

/// Renders the pieces of advice of a campaign, one per line, and what their verdicts mean together.
#[must_use]
pub fn render_campaign(views: &[TrialView], style: Style) -> String {
    let mut out = String::new();
    let names = views
        .iter()
        .map(|view| measure_width(&escape_line(&view.trial.plan.advice)))
        .max();
    for view in views {
        let plan = &view.trial.plan;
        let interval = view.judgement.interval.map_or(NONE.to_owned(), |interval| {
            let (low, high) = convert_interval(plan.metric, interval.low, interval.high);
            format_span(low, high)
        });
        out.push_str(&format!(
            "  {}  {}  {}  {}\n",
            pad_right(&escape_line(&plan.advice), names.unwrap_or(0)),
            pad_right(&describe_state(view), 24),
            pad_left(&format_change(view), 20),
            interval
        ));
    }
    if let Some(view) = views.first() {
        let text = format!(
            "{} pieces of advice together: a false \"better\" anywhere among them in at most {} of such campaigns",
            views.len(),
            super::trial_text::format_error_rate(view.trial.plan.alpha * views.len() as f64)
        );
        style.write_paragraph(&mut out, "", 2, &text);
    }
    out
}
