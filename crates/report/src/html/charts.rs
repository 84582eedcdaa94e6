//! Which charts a run has, each with the table of what it shows.

use crate::grid::Grid;
use crate::terminal::plain_change;
use assay_model::criterion::{Direction, Metric, Quantity};
use assay_model::doubt::Validity;
use assay_model::result::{Change, Judged, RunComparison, WorkloadResult};
use assay_render::html::{Chart, Table};
use assay_render::svg::{heat, intervals};
use assay_render::text::clean;
use assay_render::units::{NONE, heading, latency, range, ratio, value, value_and_unit};
use serde::Serialize;

/// Panels of one kind that a page shows at most; the tables of figures have all workloads.
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

fn figure(result: &WorkloadResult, quantity: Quantity) -> Option<f64> {
    Some(result.estimates.get(&Metric::all(quantity))?.value)
}

/// Figures as text; void results have none.
fn text(result: &WorkloadResult, quantity: Quantity) -> String {
    match (result.validity, figure(result, quantity)) {
        (Validity::Void, _) => "void".to_owned(),
        (Validity::Suspect, Some(figure)) => format!("{} ?", value(quantity, figure)),
        (Validity::Valid, Some(figure)) => value(quantity, figure),
        (_, None) => NONE.to_owned(),
    }
}

pub(super) fn heat(grids: &[&Grid], prefix: &str) -> Vec<HeatColumn> {
    let column = |(quantity, name): (Quantity, &str)| {
        let counted = grids.iter().flat_map(|grid| &grid.cells).flatten();
        let counted = counted.filter(|result| result.validity != Validity::Void);
        let values: Vec<f64> = counted
            .filter_map(|result| figure(result, quantity))
            .filter(|value| value.is_finite() && *value > 0.0)
            .collect();
        let scale = heat::scale(values.iter().copied());
        let (low, high) = match values.is_empty() {
            true => (NONE.to_owned(), NONE.to_owned()),
            false => (
                value(quantity, values.iter().copied().fold(f64::MAX, f64::min)),
                value(quantity, values.iter().copied().fold(0.0, f64::max)),
            ),
        };
        let id = format!("{prefix}-{}", quantity.name());
        HeatColumn {
            title: name.to_owned(),
            key: heat::key(
                &format!("{id}-key"),
                &format!("Colours of {name}"),
                &low,
                &high,
            ),
            maps: grids
                .iter()
                .enumerate()
                .map(|(i, grid)| heat_map(grid, quantity, name, &format!("{id}-{i}"), &scale))
                .collect(),
        }
    };
    HEAT.into_iter().map(column).collect()
}

fn heat_map(
    grid: &Grid,
    quantity: Quantity,
    name: &str,
    id: &str,
    scale: &assay_render::svg::scale::Scale,
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
    let cells: Vec<Option<heat::Cell>> = grid
        .cells
        .iter()
        .map(|cell| {
            cell.map(|result| heat::Cell {
                value: figure(result, quantity),
                text: figure(result, quantity).map_or(NONE.to_owned(), |v| value(quantity, v)),
                validity: result.validity,
            })
        })
        .collect();
    let table = Table {
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
                        .map_or(String::new(), |result| text(result, quantity))
                });
                [name.clone()].into_iter().chain(texts).collect()
            })
            .collect(),
    };
    let map = heat::Map {
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
        svg: heat::draw(&map, scale),
        table,
    }
}

/// Operations per second, which are called `rates`, and p99 of each workload with interval and rounds.
pub(super) fn intervals(
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
            intervals::Row {
                label: clean(&result.workload),
                value: estimate.map_or(f64::NAN, |estimate| estimate.value),
                interval: estimate.and_then(|e| e.interval).map(|i| (i.low, i.high)),
                rounds: rounds(result),
                shape: match (result.validity, estimate) {
                    (Validity::Void, _) | (_, None) => intervals::Shape::Void,
                    (Validity::Suspect, _) => intervals::Shape::Doubtful,
                    (Validity::Valid, _) => intervals::Shape::Plain,
                },
                text: text(result, quantity),
            }
        });
        let (name, unit) = match (quantity, rates) {
            (Quantity::Iops, "IOPS") => ("I/Os per second", rates),
            (Quantity::Iops, _) => (rates, rates),
            _ => ("p99 latency", heading(quantity)),
        };
        let table = results.iter().map(|result| {
            let estimate = result.estimates.get(&Metric::all(quantity));
            vec![
                clean(&result.workload),
                text(result, quantity),
                estimate
                    .and_then(|e| e.interval)
                    .map_or(NONE.to_owned(), |i| range(quantity, &i)),
                rounds(result)
                    .into_iter()
                    .map(|v| value(quantity, v))
                    .collect::<Vec<_>>()
                    .join(" · "),
            ]
        });
        let plot = intervals::Plot {
            id: format!("{prefix}-{}", quantity.name()),
            title: format!("{name} with intervals"),
            description: format!(
                "Dot plot of {name} on a logarithmic axis: one row for each of {} workloads, a dot \
                 for the figure, a bar for its interval, thin strokes for the rounds.",
                results.len()
            ),
            rows: rows.collect(),
            axis: intervals::Axis::Log,
            reference: None,
            tick: &|v| tick(quantity, v),
        };
        Chart {
            title: name.to_owned(),
            svg: intervals::draw(&plot),
            table: Table {
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

/// A figure on an axis: `10k`, `1 ms`.
pub(crate) fn tick(quantity: Quantity, v: f64) -> String {
    if quantity.is_latency() {
        return latency(v).replace(".00 ", " ").replace(".0 ", " ");
    }
    rate_tick(v)
}

/// A rate on an axis: `0`, `250`, `10k`, `1.5M`.
pub(crate) fn rate_tick(v: f64) -> String {
    let (v, unit) = match v {
        v if !v.is_finite() => return NONE.to_owned(),
        v if v >= 1e6 => (v / 1e6, "M"),
        v if v >= 1e3 => (v / 1e3, "k"),
        v => (v, ""),
    };
    let text = format!("{v:.2}");
    format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// The ratios of this run (B) to another (A), one chart for each quantity.
pub(super) fn ratios(comparison: &RunComparison, several_targets: bool) -> Vec<Chart> {
    let chart = |quantity: Quantity| {
        let rows: Vec<_> = comparison
            .rows
            .iter()
            .filter(|row| row.metric.quantity == quantity && row.metric.direction == Direction::All)
            .collect();
        let label = |row: &assay_model::result::ComparisonRow| match several_targets {
            true => format!("{} on {}", clean(&row.workload), clean(&row.target)),
            false => clean(&row.workload),
        };
        let name = if quantity == Quantity::Iops {
            "I/Os per second"
        } else {
            quantity.name()
        };
        let plot = intervals::Plot {
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
                .map(|row| intervals::Row {
                    label: label(row),
                    value: row.ratio,
                    interval: row.interval.map(|i| (i.low, i.high)),
                    rounds: Vec::new(),
                    shape: match row.verdict {
                        Change::Better => intervals::Shape::Better,
                        Change::Worse => intervals::Shape::Worse,
                        Change::Same | Change::Unclear => intervals::Shape::Doubtful,
                    },
                    text: format!("{} {}", ratio(row.ratio), plain_change(row.verdict)),
                })
                .collect(),
            axis: intervals::Axis::Log,
            reference: Some(1.0),
            tick: &|v| ratio_tick(v),
        };
        let table = rows.iter().map(|row| {
            vec![
                label(row),
                value_and_unit(quantity, row.a.value),
                value_and_unit(quantity, row.b.value),
                ratio(row.ratio),
                row.interval.map_or(NONE.to_owned(), |i| {
                    format!("{} to {}", ratio(i.low), ratio(i.high))
                }),
                plain_change(row.verdict).to_owned(),
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
            svg: intervals::draw(&plot),
            table: Table {
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

fn ratio_tick(v: f64) -> String {
    format!("×{}", rate_tick(v))
}
