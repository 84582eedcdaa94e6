//! Charts of lines: percentile curves, rates over time.

use super::charts::{MOST_PANELS, rate_tick};
use crate::grid::Grid;
use assay_model::criterion::Quantity;
use assay_model::result::WorkloadResult;
use assay_render::html::{Chart, Table};
use assay_render::svg::{curves, rates};
use assay_render::text::clean;
use assay_render::units::{NONE, latency, value};

/// Curves in one panel when they are no grid.
const MOST_CURVES: usize = 6;
const CURVE_COLUMNS: [f64; 6] = [50.0, 90.0, 99.0, 99.9, 99.99, 100.0];

/// Percentile curves: for a grid one panel for each block size with a curve for each depth; else a
/// few workloads in each panel.
pub(super) fn curves(grids: &[&Grid], rest: &[&WorkloadResult], prefix: &str) -> Vec<Chart> {
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
                .map(|result| (clean(&result.workload), *result))
                .collect(),
        ));
    }
    let panels: Vec<(String, Vec<curves::Curve>, Table)> = groups
        .into_iter()
        .map(|(title, members)| {
            let counted: Vec<&(String, &WorkloadResult)> = members
                .iter()
                .filter(|(_, result)| !result.latency.is_empty())
                .collect();
            let curves = counted.iter().map(|(label, result)| curves::Curve {
                label: label.clone(),
                points: curves::points(&result.latency, 64),
            });
            (title, curves.collect(), curve_table(&counted))
        })
        .filter(|(_, curves, _): &(_, Vec<curves::Curve>, _)| !curves.is_empty())
        .take(MOST_PANELS)
        .collect();
    let large = panels.len() == 1;
    let y = curves::scale(panels.iter().flat_map(|(_, curves, _)| curves), large);
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
            let panel = curves::Panel {
                id: format!("{prefix}-{i}"),
                title: format!("Latency percentiles: {title}"),
                description,
                curves,
                large,
            };
            Chart { title, svg: curves::draw(&panel, &y, nines), table }
        })
        .collect()
}

fn curve_table(members: &[&(String, &WorkloadResult)]) -> Table {
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
                .map_or(NONE.to_owned(), |nanos| latency(nanos as f64))
        });
        [label.clone()]
            .into_iter()
            .chain(cells)
            .chain([result.latency.count().to_string()])
            .collect()
    };
    Table {
        head: ["".to_owned()]
            .into_iter()
            .chain(columns)
            .chain(["operations".to_owned()])
            .collect(),
        rows: members.iter().map(|member| row(member)).collect(),
    }
}

/// Rate over time of each workload that has a series.
pub(super) fn rates(results: &[&WorkloadResult], prefix: &str) -> Vec<Chart> {
    let with_points =
        |result: &&&WorkloadResult| result.series.iter().any(|(_, line)| !line.is_empty());
    let chart = |(i, result): (usize, &&WorkloadResult)| {
        let rounds: Vec<(u32, rates::Line)> = result
            .series
            .iter()
            .map(|(round, points)| (*round, rates::line(points, 24)))
            .collect();
        let table = Table {
            head: ["round", "MB/s in the course of the round"]
                .map(str::to_owned)
                .to_vec(),
            rows: rounds
                .iter()
                .map(|(round, line)| vec![round.to_string(), spoken(line)])
                .collect(),
        };
        let title = clean(&result.workload);
        let panel = rates::Panel {
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
            svg: rates::draw(&panel, &|rate| rate_tick(rate / 1e6)),
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

/// A line as text: `0.1 s: 120 · 0.2 s: 121`.
fn spoken(line: &rates::Line) -> String {
    let points = line.iter().map(|(ms, rate)| {
        format!(
            "{:.1} s: {}",
            ms / 1000.0,
            value(Quantity::Throughput, *rate)
        )
    });
    points.collect::<Vec<_>>().join(" · ")
}
