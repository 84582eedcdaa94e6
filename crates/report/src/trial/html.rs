//! The HTML page of a trial. The values for its template are in `trial_page`, its charts in `trial_charts`.

mod trial_charts;
mod trial_page;

use super::TrialView;

/// Renders the page of one trial.
#[must_use]
pub fn render_trial_page(view: &TrialView) -> String {
    trial_page::render_trial(view)
}

/// Renders one page for the trials of a campaign, with a row for each piece of advice.
#[must_use]
pub fn render_campaign_page(views: &[TrialView]) -> String {
    trial_page::render_campaign(views)
}
