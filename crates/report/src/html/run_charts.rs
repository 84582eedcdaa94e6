//! Charts of a run, each with the table of its figures. Line charts are in `line_charts`.

use crate::result_grid::ResultGrid;
use crate::terminal::change_word;
use assay_model::criterion::{Direction, Metric, Quantity};
use assay_model::doubt::Validity;
use assay_model::result::{Change, Judged, RunComparison, WorkloadResult};
use assay_render::html::{Chart, ChartTable};
use assay_render::svg::{dot_plot, heat_map};
use assay_render::text::escape_line;
use assay_render::units::{
    NONE, format_latency, format_range, format_ratio, format_value, format_value_with_unit,
    quantity_heading,
};
use serde::Serialize;

/// Maximum number of panels of one kind on a page. The tables still contain all workloads.
pub(super) const MOST_PANELS: usize = 64;

/// The heat maps of one quantity, which share a scale.
#[derive(Serialize)]
pub(super) struct HeatColumn {
    pub(crate) title: String,
    pub(super) key: String,
    pub(super) maps: Vec<Chart>,
}

const HEAT: [(Quantity, &str); 3] = [
    (Quantity::Iops, "I/Os per second"),
    (Quantity::Throughput, "MB/s"),
    (Quantity::P99, "p99 latency"),
];

fn find_figure(result: &WorkloadResult, quantity: Quantity) -> Option<f64> {
    Some(result.estimates.get(&Metric::all(quantity))?.value)
}

/// Formats a figure; empty for a result that is void.
fn format_figure(result: &WorkloadResult, quantity: Quantity) -> String {
    match (result.validity, find_figure(result, quantity)) {
        (Validity::Void, _) => "void".to_owned(),
        (Validity::Suspect, Some(figure)) => format!("{} ?", format_value(quantity, figure)),
        (Validity::Valid, Some(figure)) => format_value(quantity, figure),
        (_, None) => NONE.to_owned(),
    }
}

pub(super) fn build_heat_columns(grids: &[&ResultGrid], prefix: &str) -> Vec<HeatColumn> {
    let column = |(quantity, name): (Quantity, &str)| {
        let counted = grids.iter().flat_map(|grid| &grid.cells).flatten();
        let counted = counted.filter(|result| result.validity != Validity::Void);
        let values: Vec<f64> = counted
            .filter_map(|result| find_figure(result, quantity))
            .filter(|value| value.is_finite() && *value > 0.0)
            .collect();
        let scale = heat_map::build_color_scale(values.iter().copied());
        let (low, high) = match values.is_empty() {
            true => (NONE.to_owned(), NONE.to_owned()),
            false => (
                format_value(quantity, values.iter().copied().fold(f64::MAX, f64::min)),
                format_value(quantity, values.iter().copied().fold(0.0, f64::max)),
            ),
        };
        let id = format!("{prefix}-{}", quantity.name());
        HeatColumn {
            title: name.to_owned(),
            key: heat_map::draw_color_key(
                &format!("{id}-key"),
                &format!("Colours of {name}"),
                &low,
                &high,
            ),
            maps: grids
                .iter()
                .enumerate()
                .map(|(i, grid)| build_heat_map(grid, quantity, name, &format!("{id}-{i}"), &scale))
                .collect(),
        }
    };
    HEAT.into_iter().map(column).collect()
}

fn build_heat_map(
    grid: &ResultGrid,
    quantity: Quantity,
    name: &str,
    id: &str,
    scale: &assay_render::svg::scale::AxisScale,
) -> Chart {
    let rows: Vec<String> = grid
        .block_sizes
        .iter()
        .map(|size| size.short().to_lowercase())
        .collect();
    let columns: Vec<String> = grid
        .depths
        .iter()
        .map(|depth| format!("qd {depth}"))
        .collect();
    let cells: Vec<Option<heat_map::HeatCell>> = grid
        .cells
        .iter()
        .map(|cell| {
            cell.map(|result| heat_map::HeatCell {
                value: find_figure(result, quantity),
                text: find_figure(result, quantity)
                    .map_or(NONE.to_owned(), |v| format_value(quantity, v)),
                validity: result.validity,
            })
        })
        .collect();
    let table = ChartTable {
        head: ["block size".to_owned()]
            .into_iter()
            .chain(columns.clone())
            .collect(),
        rows: rows
            .iter()
            .enumerate()
            .map(|(row, name)| {
                let texts = (0..columns.len()).map(|column| {
                    grid.cell(row, column)
                        .map_or(String::new(), |result| format_figure(result, quantity))
                });
                [name.clone()].into_iter().chain(texts).collect()
            })
            .collect(),
    };
    let map = heat_map::HeatMap {
        id: id.to_owned(),
        title: format!("{name}, {}", grid.title),
        description: format!(
            "Heat map of {name} by block size (rows {}) and queue depth (columns {}).",
            rows.join(", "),
            columns.join(", ")
        ),
        rows,
        columns,
        cells,
    };
    Chart {
        title: grid.title.clone(),
        svg: heat_map::draw_heat_map(&map, scale),
        table,
    }
}

/// Builds the chart of operations per second (with the heading `rates`) and the chart of p99. Each shows every workload
/// with its interval and its rounds.
pub(super) fn build_interval_charts(
    judged: &Judged,
    results: &[&WorkloadResult],
    rates: &str,
    prefix: &str,
) -> Vec<Chart> {
    let chart = |quantity: Quantity| {
        let rounds = |result: &WorkloadResult| -> Vec<f64> {
            let own = judged.samples.iter().filter(|sample| {
                sample.workload == result.workload
                    && sample.target == result.target
                    && sample.validity != Validity::Void
            });
            own.filter_map(|sample| sample.figures.get(&Metric::all(quantity)).copied())
                .collect()
        };
        let rows = results.iter().map(|result| {
            let estimate = result.estimates.get(&Metric::all(quantity));
            dot_plot::DotRow {
                label: escape_line(&result.workload),
                value: estimate.map_or(f64::NAN, |estimate| estimate.value),
                interval: estimate.and_then(|e| e.interval).map(|i| (i.low, i.high)),
                rounds: rounds(result),
                shape: match (result.validity, estimate) {
                    (Validity::Void, _) | (_, None) => dot_plot::DotMark::Void,
                    (Validity::Suspect, _) => dot_plot::DotMark::Doubtful,
                    (Validity::Valid, _) => dot_plot::DotMark::Plain,
                },
                text: format_figure(result, quantity),
            }
        });
        let (name, unit) = match (quantity, rates) {
            (Quantity::Iops, "IOPS") => ("I/Os per second", rates),
            (Quantity::Iops, _) => (rates, rates),
            _ => ("p99 latency", quantity_heading(quantity)),
        };
        let table = results.iter().map(|result| {
            let estimate = result.estimates.get(&Metric::all(quantity));
            vec![
                escape_line(&result.workload),
                format_figure(result, quantity),
                estimate
                    .and_then(|e| e.interval)
                    .map_or(NONE.to_owned(), |i| format_range(quantity, &i)),
                rounds(result)
                    .into_iter()
                    .map(|v| format_value(quantity, v))
                    .collect::<Vec<_>>()
                    .join(" · "),
            ]
        });
        let plot = dot_plot::DotPlot {
            id: format!("{prefix}-{}", quantity.name()),
            title: format!("{name} with intervals"),
            description: format!(
                "Dot plot of {name} on a logarithmic axis: one row for each of {} workloads, a dot \
                 for the figure, a bar for its interval, thin strokes for the rounds.",
                results.len()
            ),
            rows: rows.collect(),
            axis: dot_plot::DotAxis::Log,
            reference: None,
            tick: &|v| format_tick(quantity, v),
        };
        Chart {
            title: name.to_owned(),
            svg: dot_plot::draw_intervals(&plot),
            table: ChartTable {
                head: ["workload", unit, "interval", "rounds"]
                    .map(str::to_owned)
                    .to_vec(),
                rows: table.collect(),
            },
        }
    };
    [Quantity::Iops, Quantity::P99]
        .into_iter()
        .map(chart)
        .collect()
}

/// Formats a figure on an axis: `10k`, `1 ms`.
pub(crate) fn format_tick(quantity: Quantity, v: f64) -> String {
    if quantity.is_latency() {
        return format_latency(v).replace(".00 ", " ").replace(".0 ", " ");
    }
    format_rate_tick(v)
}

/// Formats a rate on an axis: `0`, `250`, `10k`, `1.5M`.
pub(crate) fn format_rate_tick(v: f64) -> String {
    let (v, unit) = match v {
        v if !v.is_finite() => return NONE.to_owned(),
        v if v >= 1e6 => (v / 1e6, "M"),
        v if v >= 1e3 => (v / 1e3, "k"),
        v => (v, ""),
    };
    let text = format!("{v:.2}");
    format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Builds the charts of the ratios of this run (B) to another (A), one for each quantity.
pub(super) fn build_ratio_charts(comparison: &RunComparison, several_targets: bool) -> Vec<Chart> {
    let chart = |quantity: Quantity| {
        let rows: Vec<_> = comparison
            .rows
            .iter()
            .filter(|row| row.metric.quantity == quantity && row.metric.direction == Direction::All)
            .collect();
        let label = |row: &assay_model::result::ComparisonRow| match several_targets {
            true => format!(
                "{} on {}",
                escape_line(&row.workload),
                escape_line(&row.target)
            ),
            false => escape_line(&row.workload),
        };
        let name = if quantity == Quantity::Iops {
            "I/Os per second"
        } else {
            quantity.name()
        };
        let plot = dot_plot::DotPlot {
            id: format!("ratio-{}", quantity.name()),
            title: format!("{name}: B ÷ A"),
            description: format!(
                "Dot plot of the ratio of {name} in run {} to run {} for {} workloads, with intervals, \
                 on a logarithmic axis with a line at 1.",
                comparison.b,
                comparison.a,
                rows.len()
            ),
            rows: rows
                .iter()
                .map(|row| dot_plot::DotRow {
                    label: label(row),
                    value: row.ratio,
                    interval: row.interval.map(|i| (i.low, i.high)),
                    rounds: Vec::new(),
                    shape: match row.verdict {
                        Change::Better => dot_plot::DotMark::Better,
                        Change::Worse => dot_plot::DotMark::Worse,
                        Change::Same | Change::Unclear => dot_plot::DotMark::Doubtful,
                    },
                    text: format!("{} {}", format_ratio(row.ratio), change_word(row.verdict)),
                })
                .collect(),
            axis: dot_plot::DotAxis::Log,
            reference: Some(1.0),
            tick: &|v| format_ratio_tick(v),
        };
        let table = rows.iter().map(|row| {
            vec![
                label(row),
                format_value_with_unit(quantity, row.a.value),
                format_value_with_unit(quantity, row.b.value),
                format_ratio(row.ratio),
                row.interval.map_or(NONE.to_owned(), |i| {
                    format!("{} to {}", format_ratio(i.low), format_ratio(i.high))
                }),
                change_word(row.verdict).to_owned(),
            ]
        });
        let empty = rows.is_empty();
        let chart = Chart {
            title: format!(
                "{name}, {} is better",
                if quantity.is_latency() {
                    "less"
                } else {
                    "more"
                }
            ),
            svg: dot_plot::draw_intervals(&plot),
            table: ChartTable {
                head: ["workload", "A", "B", "B ÷ A", "interval", "B is"]
                    .map(str::to_owned)
                    .to_vec(),
                rows: table.collect(),
            },
        };
        (!empty).then_some(chart)
    };
    let quantities = [Quantity::Iops, Quantity::P50, Quantity::P99, Quantity::P999];
    quantities.into_iter().filter_map(chart).collect()
}

fn format_ratio_tick(v: f64) -> String {
    format!("×{}", format_rate_tick(v))
}
