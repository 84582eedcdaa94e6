//! Several trials: as a list, and as the pieces of advice of one campaign.

use super::View;
use super::words::{ends, headline, short_metric, signed, span};
use assay_model::trial::{Kept, TrialState};
use assay_render::Style;
use assay_render::text::{clean, left, right, width};
use assay_render::units::{NONE, time};

/// A list for `assay trial --list`, as given.
#[must_use]
pub fn list(views: &[View], style: Style) -> String {
    if views.is_empty() {
        return "No trials yet. `assay advice` shows what can be tried.\n".to_owned();
    }
    let head = ["trial", "when", "advice", "pairs", "change", "verdict"].map(str::to_owned);
    let mut lines = vec![head];
    lines.extend(views.iter().map(|view| {
        [
            view.trial.id.to_string(),
            time(view.trial.started).replace(" UTC", ""),
            clean(&view.trial.plan.advice),
            view.judgement.pairs.to_string(),
            change(view),
            state(view),
        ]
    }));
    let widest = |i: usize| lines.iter().map(|line| width(&line[i])).max().unwrap_or(0);
    let mut out = String::new();
    for (n, line) in lines.iter().enumerate() {
        let text = format!(
            "{}  {}  {}  {}  {}  {}",
            right(&line[0], widest(0)),
            left(&line[1], widest(1)),
            left(&line[2], widest(2)),
            right(&line[3], widest(3)),
            right(&line[4], widest(4)),
            line[5]
        );
        out.push_str(&if n == 0 { style.dim(&text) } else { text });
        out.push('\n');
    }
    out
}

/// The change of the deciding figure in few characters: `p99 −12.3 %`.
fn change(view: &View) -> String {
    let plan = &view.trial.plan;
    view.judgement.ratio.map_or(NONE.to_owned(), |ratio| {
        let ratio = super::change_of(plan.metric, ratio);
        format!(
            "{} {}",
            short_metric(&plan.load, plan.metric),
            signed(ratio)
        )
    })
}

/// `better, kept`, `undecided (stopped)`.
pub(super) fn state(view: &View) -> String {
    let mut text = headline(view).to_lowercase();
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

/// The pieces of advice of a campaign, one line each, and what its verdicts mean together.
#[must_use]
pub fn campaign(views: &[View], style: Style) -> String {
    let mut out = String::new();
    let names = views
        .iter()
        .map(|view| width(&clean(&view.trial.plan.advice)))
        .max();
    for view in views {
        let plan = &view.trial.plan;
        let interval = view.judgement.interval.map_or(NONE.to_owned(), |interval| {
            let (low, high) = ends(plan.metric, interval.low, interval.high);
            span(low, high)
        });
        out.push_str(&format!(
            "  {}  {}  {}  {}\n",
            left(&clean(&plan.advice), names.unwrap_or(0)),
            left(&state(view), 24),
            right(&change(view), 20),
            interval
        ));
    }
    if let Some(view) = views.first() {
        let text = format!(
            "{} pieces of advice together: a false \"better\" anywhere among them in at most {} of such campaigns",
            views.len(),
            super::words::rate(view.trial.plan.alpha * views.len() as f64)
        );
        style.paragraph(&mut out, "", 2, &text);
    }
    out
}
