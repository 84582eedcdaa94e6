//! The HTML page of a run. It is self-contained, has no script, and is readable in light and dark mode, on paper and on
//! a narrow screen. `assay-render` renders the charts.

pub(crate) mod doubt_view;
mod line_charts;
pub(crate) mod run_charts;
pub(crate) mod run_page;

pub use run_page::{FactRow, group_facts};

use assay_model::result::{Judged, RunComparison};
use assay_model::{Run, Sample};

/// Renders the page of a run. `against` contains the judged earlier run (A) and its comparison with this run (B).
/// `jobs` contains the exact fio job files as pairs of workload name and text.
#[must_use]
pub fn render_run_page(
    run: &Run,
    judged: &Judged,
    samples: &[Sample],
    against: Option<(&Run, &Judged, &RunComparison)>,
    jobs: &[(String, String)],
) -> String {
    run_page::render_page(run, judged, samples, against, jobs)
}
