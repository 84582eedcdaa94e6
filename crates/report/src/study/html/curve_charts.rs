//! Charts of a study's curves: measured and published figures on one axis. Tables of the same
//! curves are in `curve_tables`.

use crate::study::StudyView;
use crate::study::curve_tables::{StudyCurve, choose_row_label, collect_curves};
use assay_render::html::{Chart, ChartTable};
use assay_render::svg::line_chart::{ChartLine, LineChart, build_value_scale, draw_lines};
use assay_render::text::escape_line;

/// Builds, for each curve, a chart of the measured figures and a chart of the published figures.
pub(super) fn build_curve_charts(view: &StudyView<'_>) -> Vec<Chart> {
    let all = collect_curves(&view.run.study);
    let each = (0..).zip(&all);
    each.flat_map(|(number, curve)| build_chart_pair(view, number, &curve.restrict_to_known(view)))
        .collect()
}

fn build_chart_pair(view: &StudyView<'_>, number: usize, curve: &StudyCurve<'_>) -> Vec<Chart> {
    let rows = curve.build_rows(view);
    let (unit, by) = curve.choose_unit(&rows);
    let lines = |published: bool| -> Vec<ChartLine> {
        let rows = rows.iter().filter(|row| row.published == published);
        let lines = rows.map(|row| {
            let cells = curve.points.iter().zip(&row.cells);
            let points = cells.filter_map(|((at, _), cell)| {
                let cell = (*cell)?;
                let (value, ends) = match published {
                    true => (cell.published.as_ref()?.value, None),
                    false => {
                        let estimate = cell.estimate?;
                        let ends = estimate.interval;
                        (
                            estimate.value,
                            ends.map(|one| (one.low / by, one.high / by)),
                        )
                    }
                };
                Some((f64::from(*at), value / by, ends))
            });
            ChartLine {
                label: choose_row_label(row.configuration),
                points: points.filter(|(_, value, _)| *value > 0.0).collect(),
            }
        });
        lines.filter(|line| !line.points.is_empty()).collect()
    };
    let [here, theirs] = [lines(false), lines(true)];
    // Intervals may be wide, so the values alone set the axis.
    let bare = |lines: &[ChartLine]| -> Vec<ChartLine> {
        let line = |line: &ChartLine| ChartLine {
            label: String::new(),
            points: line
                .points
                .iter()
                .map(|(at, value, _)| (*at, *value, None))
                .collect(),
        };
        lines.iter().map(line).collect()
    };
    let values: Vec<ChartLine> = bare(&here).into_iter().chain(bare(&theirs)).collect();
    let y = build_value_scale(values.iter());
    let sides = [("here", false, here), ("published", true, theirs)].into_iter();
    sides
        .filter(|(_, _, lines)| !lines.is_empty())
        .map(|(side, published, lines)| {
            let title = format!("{}: {side}", curve.format_title(&unit));
            let shown = rows.iter().filter(|row| row.published == published);
            let table = shown.map(|row| {
                let cells = row.cells_with_intervals(curve).into_iter();
                let title = escape_line(row.configuration.title());
                [title].into_iter().chain(cells).collect()
            });
            let head = curve.points.iter().map(|(at, _)| at.to_string());
            let drawing = LineChart {
                id: format!("curve-{number}-{side}"),
                title: title.clone(),
                description: format!(
                    "Line chart of {title}, a line for each configuration; the same figures are in the \
                     table below it."
                ),
                over: escape_line(curve.over),
                lines,
                tick: &super::format_small_number,
            };
            Chart {
                svg: draw_lines(&drawing, &y),
                title,
                table: ChartTable {
                    head: ["configuration".to_owned()].into_iter().chain(head).collect(),
                    rows: table.collect(),
                },
            }
        })
        .collect()
}
