//! Curves of a study: what was measured here, and beside it what is published, on one axis.

use crate::study::View;
use crate::study::curves::{Curve, curves, label};
use assay_render::html::{Chart, Table};
use assay_render::svg::lines::{Line, Lines, draw, scale};
use assay_render::text::clean;

/// A chart of what was measured, and one of what is published, for each curve.
pub(super) fn charts(view: &View<'_>) -> Vec<Chart> {
    let all = curves(&view.run.study);
    let each = (0..).zip(&all);
    each.flat_map(|(number, curve)| both(view, number, &curve.known(view)))
        .collect()
}

fn both(view: &View<'_>, number: usize, curve: &Curve<'_>) -> Vec<Chart> {
    let rows = curve.rows(view);
    let (unit, by) = curve.unit(&rows);
    let lines = |published: bool| -> Vec<Line> {
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
            Line {
                label: label(row.configuration),
                points: points.filter(|(_, value, _)| *value > 0.0).collect(),
            }
        });
        lines.filter(|line| !line.points.is_empty()).collect()
    };
    let [here, theirs] = [lines(false), lines(true)];
    // The ends of an interval may be far away: the axis is that of the values.
    let bare = |lines: &[Line]| -> Vec<Line> {
        let line = |line: &Line| Line {
            label: String::new(),
            points: line
                .points
                .iter()
                .map(|(at, value, _)| (*at, *value, None))
                .collect(),
        };
        lines.iter().map(line).collect()
    };
    let values: Vec<Line> = bare(&here).into_iter().chain(bare(&theirs)).collect();
    let y = scale(values.iter());
    let sides = [("here", false, here), ("published", true, theirs)].into_iter();
    sides
        .filter(|(_, _, lines)| !lines.is_empty())
        .map(|(side, published, lines)| {
            let title = format!("{}: {side}", curve.title(&unit));
            let shown = rows.iter().filter(|row| row.published == published);
            let table = shown.map(|row| {
                let cells = row.whole(curve).into_iter();
                let title = clean(row.configuration.title());
                [title].into_iter().chain(cells).collect()
            });
            let head = curve.points.iter().map(|(at, _)| at.to_string());
            let drawing = Lines {
                id: format!("curve-{number}-{side}"),
                title: title.clone(),
                description: format!(
                    "Line chart of {title}, a line for each configuration; the same figures are in the \
                     table below it."
                ),
                over: clean(curve.over),
                lines,
                tick: &super::small,
            };
            Chart {
                svg: draw(&drawing, &y),
                title,
                table: Table {
                    head: ["configuration".to_owned()].into_iter().chain(head).collect(),
                    rows: table.collect(),
                },
            }
        })
        .collect()
}
