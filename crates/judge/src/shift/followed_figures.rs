//! Selects the figures of a run whose history is watched for shifts: how much work a workload did, and how long its
//! slow operations took. The parent module finds the shifts.

use crate::workload_groups::group_samples;
use assay_model::criterion::{Metric, Quantity};
use assay_model::{Run, Sample};

/// A figure of a run that is watched over time.
#[derive(Clone, Debug, PartialEq)]
pub struct FollowedFigure {
    /// Name of the workload that was measured.
    pub workload: String,
    /// Name of the target that was measured.
    pub target: String,
    /// Metric of the figure.
    pub metric: Metric,
    /// Full description of the load with all options. Figures with different loads belong to different series.
    pub load: String,
    /// Value of the figure in base units.
    pub value: f64,
}

/// Returns the figures of a run that are watched over time: operations per second and the 99th percentile. Other
/// figures move with these two, and each additional figure would make every shift harder to detect.
#[must_use]
pub fn collect_followed_figures(run: &Run, samples: &[Sample]) -> Vec<FollowedFigure> {
    let mut all = Vec::new();
    for group in group_samples(run, samples) {
        let load = group
            .spec
            .and_then(|spec| serde_json::to_string(spec).ok())
            .unwrap_or_default();
        let pooled = group.pool_samples();
        for quantity in [Quantity::Iops, Quantity::P99] {
            let metric = Metric::all(quantity);
            if let Some(found) = pooled.get(&metric) {
                all.push(FollowedFigure {
                    workload: group.workload.clone(),
                    target: group.target.clone(),
                    metric,
                    load: load.clone(),
                    value: found.value,
                });
            }
        }
    }
    all
}
