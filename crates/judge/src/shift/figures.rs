//! What a run measured, as far as it is followed over time: how much a workload did, and how long the slow
//! ones of its operations took.

use crate::group::groups;
use assay_model::criterion::{Metric, Quantity};
use assay_model::{Run, Sample};

/// A figure of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The workload.
    pub workload: String,
    /// What it was measured on.
    pub target: String,
    /// Which figure.
    pub metric: Metric,
    /// What was done, to the last option: figures of two different loads are no series.
    pub load: String,
    /// The value.
    pub value: f64,
}

/// The figures of a run that are followed: operations a second and the 99th percentile. Others move with
/// them, and each that is watched makes it harder for all to be noticed.
#[must_use]
pub fn figures(run: &Run, samples: &[Sample]) -> Vec<Figure> {
    let mut all = Vec::new();
    for group in groups(run, samples) {
        let load = group
            .spec
            .and_then(|spec| serde_json::to_string(spec).ok())
            .unwrap_or_default();
        let pooled = group.pooled();
        for quantity in [Quantity::Iops, Quantity::P99] {
            let metric = Metric::all(quantity);
            if let Some(found) = pooled.get(&metric) {
                all.push(Figure {
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
