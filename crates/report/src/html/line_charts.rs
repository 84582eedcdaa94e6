//! Line charts of a run: percentile curves, rates over time. All other charts of a run are in
//! `run_charts`.

use super::run_charts::{MOST_PANELS, format_rate_tick};
use crate::result_grid::ResultGrid;
use assay_model::criterion::Quantity;
use assay_model::result::WorkloadResult;
use assay_render::html::{Chart, ChartTable};
use assay_render::svg::{percentile_curves, rate_panels};
use assay_render::text::escape_line;
use assay_render::units::{NONE, format_latency, format_value};

/// Maximum number of curves in a panel that is not part of a grid.
const MOST_CURVES: usize = 6;
const CURVE_COLUMNS: [f64; 6] = [50.0, 90.0, 99.0, 99.9, 99.99, 100.0];

/// Builds the charts of percentile curves. A grid gets one panel per block size with one curve per queue depth. Other
/// workloads share panels, a few in each.
pub(super) fn build_curve_charts(
    grids: &[&ResultGrid],
    rest: &[&WorkloadResult],
    prefix: &str,
) -> Vec<Chart> {
    let mut groups: Vec<(String, Vec<(String, &WorkloadResult)>)> = Vec::new();
    for grid in grids {
        for (row, size) in grid.block_sizes.iter().enumerate() {
            let columns = grid.depths.iter().enumerate();
            let members = columns
                .filter_map(|(column, depth)| {
                    Some((format!("qd {depth}"), grid.cell(row, column)?))
                })
                .collect();
            groups.push((format!("{}, {size}", grid.title), members));
        }
    }
    for (i, chunk) in rest.chunks(MOST_CURVES).enumerate() {
        let title = match rest.len() > MOST_CURVES {
            true => format!(
                "Workloads {} to {}",
                i * MOST_CURVES + 1,
                i * MOST_CURVES + chunk.len()
            ),
            false => "All workloads".to_owned(),
        };
        groups.push((
            title,
            chunk
                .iter()
                .map(|result| (escape_line(&result.workload), *result))
                .collect(),
        ));
    }
    let panels: Vec<(String, Vec<percentile_curves::LatencyCurve>, ChartTable)> = groups
        .into_iter()
        .map(|(title, members)| {
            let counted: Vec<&(String, &WorkloadResult)> = members
                .iter()
                .filter(|(_, result)| !result.latency.is_empty())
                .collect();
            let curves = counted
                .iter()
                .map(|(label, result)| percentile_curves::LatencyCurve {
                    label: label.clone(),
                    points: percentile_curves::compute_curve(&result.latency, 64),
                });
            (title, curves.collect(), build_curve_table(&counted))
        })
        .filter(|(_, curves, _): &(_, Vec<percentile_curves::LatencyCurve>, _)| !curves.is_empty())
        .take(MOST_PANELS)
        .collect();
    let large = panels.len() == 1;
    let y = percentile_curves::build_latency_scale(
        panels.iter().flat_map(|(_, curves, _)| curves),
        large,
    );
    let nines = panels
        .iter()
        .flat_map(|(_, curves, _)| curves.iter().filter_map(|curve| curve.points.last()))
        .map(|(nines, _)| *nines)
        .fold(1.0, f64::max);
    panels
        .into_iter()
        .enumerate()
        .map(|(i, (title, curves, table))| {
            let names: Vec<&str> = curves.iter().map(|curve| curve.label.as_str()).collect();
            let description = format!(
                "Latency (logarithmic) by percentile, further right is rarer: one curve each for {}.",
                names.join(", ")
            );
            let panel = percentile_curves::CurvePanel {
                id: format!("{prefix}-{i}"),
                title: format!("Latency percentiles: {title}"),
                description,
                curves,
                large,
            };
            Chart { title, svg: percentile_curves::draw_panel(&panel, &y, nines), table }
        })
        .collect()
}

fn build_curve_table(members: &[&(String, &WorkloadResult)]) -> ChartTable {
    let columns = CURVE_COLUMNS.iter().map(|p| {
        if *p == 100.0 {
            "max".to_owned()
        } else {
            format!("p{p}")
        }
    });
    let row = |(label, result): &(String, &WorkloadResult)| {
        let cells = CURVE_COLUMNS.iter().map(|p| {
            result
                .latency
                .percentile(*p)
                .map_or(NONE.to_owned(), |nanos| format_latency(nanos as f64))
        });
        [label.clone()]
            .into_iter()
            .chain(cells)
            .chain([result.latency.count().to_string()])
            .collect()
    };
    ChartTable {
        head: ["".to_owned()]
            .into_iter()
            .chain(columns)
            .chain(["operations".to_owned()])
            .collect(),
        rows: members.iter().map(|member| row(member)).collect(),
    }
}

/// Builds the charts of the rate over time, for each workload that has a time series.
pub(super) fn build_rate_charts(results: &[&WorkloadResult], prefix: &str) -> Vec<Chart> {
    let with_points =
        |result: &&&WorkloadResult| result.series.iter().any(|(_, line)| !line.is_empty());
    let chart = |(i, result): (usize, &&WorkloadResult)| {
        let rounds: Vec<(u32, rate_panels::RateLine)> = result
            .series
            .iter()
            .map(|(round, points)| (*round, rate_panels::sum_rates(points, 24)))
            .collect();
        let table = ChartTable {
            head: ["round", "MB/s in the course of the round"]
                .map(str::to_owned)
                .to_vec(),
            rows: rounds
                .iter()
                .map(|(round, line)| vec![round.to_string(), format_rate_line(line)])
                .collect(),
        };
        let title = escape_line(&result.workload);
        let panel = rate_panels::RatePanel {
            id: format!("{prefix}-{i}"),
            title: format!("Rate over time: {title}"),
            description: format!(
                "MB/s over time, {} rounds side by side; the axis begins at zero.",
                rounds.len()
            ),
            rounds,
        };
        Chart {
            title,
            svg: rate_panels::draw_panel(&panel, &|rate| format_rate_tick(rate / 1e6)),
            table,
        }
    };
    results
        .iter()
        .filter(with_points)
        .take(MOST_PANELS)
        .enumerate()
        .map(chart)
        .collect()
}

/// Formats a rate over time as text, such as `0.1 s: 120 · 0.2 s: 121`.
fn format_rate_line(line: &rate_panels::RateLine) -> String {
    let points = line.iter().map(|(ms, rate)| {
        format!(
            "{:.1} s: {}",
            ms / 1000.0,
            format_value(Quantity::Throughput, *rate)
        )
    });
    points.collect::<Vec<_>>().join(" · ")
}
