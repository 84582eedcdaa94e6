//! Finds the outlier rounds of a judged run. `assay-judge` defines what an outlier is.

use assay_judge::OddRounds;
use assay_model::criterion::{Metric, Quantity};
use assay_model::doubt::Validity;
use assay_model::result::{Judged, WorkloadResult};

/// Finds the largest outlier round of a result; void samples are ignored.
pub(crate) fn find_odd_round(judged: &Judged, result: &WorkloadResult) -> Option<OddRounds> {
    let metric = Metric::all(Quantity::Iops);
    let counts = judged.samples.iter().filter(|sample| {
        sample.workload == result.workload
            && sample.target == result.target
            && sample.validity != Validity::Void
    });
    let rates: Vec<(u32, f64)> = counts
        .filter_map(|sample| Some((sample.round, *sample.figures.get(&metric)?)))
        .collect();
    OddRounds::find(&rates)
}
