//! A trial as one HTML file, in the style of a run's report: no network, no script.

mod charts;
mod page;

use super::View;

/// The page of one trial.
#[must_use]
pub fn html(view: &View) -> String {
    page::trial(view)
}

/// One page for the trials of a campaign, a row for each piece of advice.
#[must_use]
pub fn campaign(views: &[View]) -> String {
    page::campaign(views)
}
