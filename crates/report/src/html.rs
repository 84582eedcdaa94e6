//! A run as one HTML file: no network, no script, readable in light and dark, on paper and on a
//! narrow screen.

pub(crate) mod charts;
pub(crate) mod doubt;
mod lines;
pub(crate) mod page;

use assay_model::result::{Judged, RunComparison};
use assay_model::{Run, Sample};

/// The page. `against` is an earlier run, as judged, and how this run (B) compares with it (A);
/// `jobs` are the exact fio job files as pairs of workload name and text.
#[must_use]
pub fn run(
    run: &Run,
    judged: &Judged,
    samples: &[Sample],
    against: Option<(&Run, &Judged, &RunComparison)>,
    jobs: &[(String, String)],
) -> String {
    page::render(run, judged, samples, against, jobs)
}
