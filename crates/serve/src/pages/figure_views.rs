//! Descriptions of figures over time as text, and hyperlinks to their charts.

use super::short_name;
use super::trial_row::format_signed;
use crate::figure_series::{Series, SeriesKey};
use crate::query::encode;
use assay_judge::shift::FigureShift;
use assay_model::criterion::{Metric, Quantity};

/// Returns a description of the quantity that a metric measures.
pub(super) fn metric_name(metric: Metric) -> String {
    match metric.quantity {
        Quantity::Iops => "operations per second".to_owned(),
        Quantity::P99 => "99th percentile of latency".to_owned(),
        _ => metric.to_string(),
    }
}

/// Describes a shift, as in `randread-4k-qd1: operations per second −18.2 %`.
pub(super) fn describe_shift(series: &Series, shift: &FigureShift) -> String {
    format!(
        "{}: {} {}",
        short_name(&series.key.figure.workload),
        metric_name(series.key.figure.metric),
        format_signed(shift.ratio)
    )
}

/// Returns the link to the chart of a figure over time.
pub(super) fn series_href(key: &SeriesKey) -> String {
    let metric = key.figure.metric.to_string();
    let machine = key
        .machine
        .as_ref()
        .map(|machine| machine.shown().to_owned());
    let mut pairs = vec![
        ("plan", &*key.plan),
        ("workload", key.figure.workload.as_str()),
        ("target", key.figure.target.as_str()),
        ("metric", metric.as_str()),
    ];
    if let Some(machine) = &machine {
        pairs.insert(0, ("machine", machine));
    }
    if pairs.iter().map(|(_, value)| value.len()).sum::<usize>() > 2 * super::MOST_LINKED {
        return "/figures".to_owned();
    }
    format!("/figures?{}", encode(&pairs))
}
