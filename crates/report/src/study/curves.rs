//! Figures that are points of a curve, as one table: configurations as rows, points as columns.

use super::{View, words};
use assay_model::study::{Cell, Configuration, Figure, Study};
use assay_render::text::clean;
use assay_render::units::NONE;

/// A curve with its points in the order of the study.
pub(super) struct Curve<'a> {
    /// What it shows.
    pub of: &'a str,
    /// What its points differ in.
    pub over: &'a str,
    /// Where, and the figure there.
    pub points: Vec<(u32, &'a Figure)>,
}

/// The curves of a study, in the order of their first points.
pub(super) fn curves(study: &Study) -> Vec<Curve<'_>> {
    let mut all: Vec<Curve<'_>> = Vec::new();
    for figure in &study.figures {
        let Some(curve) = &figure.curve else { continue };
        let known = all.iter_mut().find(|one| {
            one.of == curve.of
                && one.over == curve.over
                && one.points[0].1.unit == figure.unit
                && one.points[0].1.better == figure.better
        });
        match known {
            Some(known) => known.points.push((curve.at, figure)),
            None => all.push(Curve {
                of: &curve.of,
                over: &curve.over,
                points: vec![(curve.at, figure)],
            }),
        }
    }
    all
}

/// The figures that stand for themselves.
pub(super) fn single(study: &Study) -> Vec<&Figure> {
    let all = study.figures.iter();
    all.filter(|figure| figure.curve.is_none()).collect()
}

pub(super) fn cell<'a>(
    view: &View<'a>,
    configuration: &Configuration,
    figure: &Figure,
) -> Option<&'a Cell> {
    let mut cells = view.result.cells.iter();
    cells.find(|cell| cell.configuration == configuration.name && cell.figure == figure.name)
}

/// The longest title that a row has room for; beyond it the name is taken.
const TITLE: usize = 18;

/// What a row is called where there is little room.
pub(super) fn label(configuration: &Configuration) -> String {
    clean(match configuration.title() {
        title if title.chars().count() <= TITLE => title,
        _ => &configuration.name,
    })
}

/// A row of a curve's table.
pub(super) struct Row<'a> {
    /// Which configuration.
    pub configuration: &'a Configuration,
    /// Its cells, by point.
    pub cells: Vec<Option<&'a Cell>>,
    /// They are looked at for what is published.
    pub published: bool,
    /// There is no row of what was measured before it.
    pub alone: bool,
}

impl Row<'_> {
    /// Its cells as short as they can be, in units of `by`.
    pub fn texts(&self, by: f64) -> Vec<String> {
        let text = |cell: &Cell| match (self.published, &cell.published, &cell.estimate) {
            (true, Some(one), _) => words::plain(one.value / by),
            (false, _, Some(estimate)) => {
                let mark = if cell.doubts.is_empty() { "" } else { "?" };
                format!("{}{mark}", words::plain(estimate.value / by))
            }
            (false, _, None) if cell.rounds_void > 0 => "void".to_owned(),
            _ => String::new(),
        };
        let cells = self.cells.iter();
        cells.map(|cell| cell.map_or(String::new(), text)).collect()
    }

    /// Its cells with their intervals, each with its unit.
    pub fn whole(&self, curve: &Curve<'_>) -> Vec<String> {
        let text = |(cell, (_, figure)): (&Option<&Cell>, &(u32, &Figure))| {
            let cell = (*cell)?;
            Some(match (self.published, &cell.published, &cell.estimate) {
                (true, Some(one), _) => words::published(figure, one),
                (false, _, Some(estimate)) => {
                    let mark = if cell.doubts.is_empty() { "" } else { " ?" };
                    format!("{}{mark}", words::estimate(figure, estimate))
                }
                (false, _, None) if cell.rounds_void > 0 => "void".to_owned(),
                _ => NONE.to_owned(),
            })
        };
        let cells = self.cells.iter().zip(&curve.points);
        cells
            .map(|one| text(one).unwrap_or_else(|| NONE.to_owned()))
            .collect()
    }
}

impl Curve<'_> {
    /// The points that anything is known of.
    pub fn known<'v>(&self, view: &View<'v>) -> Curve<'_>
    where
        Self: 'v,
    {
        let points = self.points.iter().filter(|(_, figure)| {
            let mut cells = view.result.cells.iter();
            cells.any(|cell| {
                let tried = cell.estimate.is_some() || cell.rounds_void > 0;
                cell.figure == figure.name && tried
            })
        });
        let mut points: Vec<_> = points.copied().collect();
        // Nothing was measured yet: what is published is shown.
        if points.is_empty() {
            points.clone_from(&self.points);
        }
        points.sort_by_key(|(at, _)| *at);
        Curve { points, ..*self }
    }

    /// A row for what was measured in each configuration, and one for what is published.
    pub fn rows<'v>(&self, view: &View<'v>) -> Vec<Row<'v>> {
        let mut rows = Vec::new();
        for configuration in &view.run.study.configurations {
            for published in [false, true] {
                let cells = self.points.iter().map(|(_, figure)| {
                    cell(view, configuration, figure).filter(|cell| match published {
                        true => cell.published.is_some(),
                        false => cell.estimate.is_some() || cell.rounds_void > 0,
                    })
                });
                let cells: Vec<_> = cells.collect();
                if cells.iter().any(Option::is_some) {
                    let before = rows.last().map(|row: &Row<'_>| &row.configuration.name);
                    rows.push(Row {
                        alone: before != Some(&configuration.name),
                        configuration,
                        cells,
                        published,
                    });
                }
            }
        }
        rows
    }

    /// A unit for the whole table and what values are divided by: `µs`, 1,000.
    pub fn unit(&self, rows: &[Row<'_>]) -> (String, f64) {
        let values = rows.iter().flat_map(|row| {
            let cells = row.cells.iter().flatten();
            cells.filter_map(|cell| match row.published {
                true => Some(cell.published.as_ref()?.value),
                false => Some(cell.estimate?.value),
            })
        });
        let largest = values.fold(0.0, f64::max);
        let unit = self.points[0].1.unit.as_str();
        match unit {
            "ns" if largest >= 1e8 => ("ms".to_owned(), 1e6),
            "ns" => ("µs".to_owned(), 1e3),
            "B/s" => ("MB/s".to_owned(), 1e6),
            "" if largest >= 1e5 => ("thousands".to_owned(), 1e3),
            unit if largest >= 1e5 => (format!("thousand {unit}"), 1e3),
            unit => (unit.to_owned(), 1.0),
        }
    }

    /// `requests per second over clients, req/s`.
    pub fn title(&self, unit: &str) -> String {
        let unit = match unit {
            "" => String::new(),
            unit => format!(", {unit}"),
        };
        clean(&format!("{} by number of {}{unit}", self.of, self.over))
    }
}
