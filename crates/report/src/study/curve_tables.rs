//! Tables of the figures that are points of a curve: configurations are rows, points are columns. Charts of the same
//! curves are in `html::curve_charts`.

use super::{StudyView, study_text};
use assay_model::study::{Cell, Configuration, Figure, Study};
use assay_render::text::escape_line;
use assay_render::units::NONE;

/// A curve with its points in the order of the study.
pub(super) struct StudyCurve<'a> {
    /// Quantity on the y axis of the curve.
    pub of: &'a str,
    /// Quantity on the x axis, by which the points differ.
    pub over: &'a str,
    /// Position on the x axis and figure of each point.
    pub points: Vec<(u32, &'a Figure)>,
}

/// Collects the curves of a study, in the order of their first points.
pub(super) fn collect_curves(study: &Study) -> Vec<StudyCurve<'_>> {
    let mut all: Vec<StudyCurve<'_>> = Vec::new();
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
            None => all.push(StudyCurve {
                of: &curve.of,
                over: &curve.over,
                points: vec![(curve.at, figure)],
            }),
        }
    }
    all
}

/// Returns the figures that are not points of a curve.
pub(super) fn list_single_figures(study: &Study) -> Vec<&Figure> {
    let all = study.figures.iter();
    all.filter(|figure| figure.curve.is_none()).collect()
}

pub(super) fn find_cell<'a>(
    view: &StudyView<'a>,
    configuration: &Configuration,
    figure: &Figure,
) -> Option<&'a Cell> {
    let mut cells = view.result.cells.iter();
    cells.find(|cell| cell.configuration == configuration.name && cell.figure == figure.name)
}

/// Maximum length of a title that fits into a row, in characters. A longer title is replaced by the name.
const TITLE: usize = 18;

/// Returns the short label of a configuration's row.
pub(super) fn choose_row_label(configuration: &Configuration) -> String {
    escape_line(match configuration.title() {
        title if title.chars().count() <= TITLE => title,
        _ => &configuration.name,
    })
}

/// A row of a curve's table.
pub(super) struct CurveRow<'a> {
    /// The configuration that the row is about.
    pub configuration: &'a Configuration,
    /// Cells in the order of the points; `None` without a figure.
    pub cells: Vec<Option<&'a Cell>>,
    /// Whether the row shows published figures.
    pub published: bool,
    /// Whether the previous row does not belong to the same configuration.
    pub alone: bool,
}

impl CurveRow<'_> {
    /// Formats the cells as short as possible, in multiples of `by`.
    pub fn short_cells(&self, by: f64) -> Vec<String> {
        let text = |cell: &Cell| match (self.published, &cell.published, &cell.estimate) {
            (true, Some(one), _) => study_text::format_number(one.value / by),
            (false, _, Some(estimate)) => {
                let mark = if cell.doubts.is_empty() { "" } else { "?" };
                format!("{}{mark}", study_text::format_number(estimate.value / by))
            }
            (false, _, None) if cell.rounds_void > 0 => "void".to_owned(),
            _ => String::new(),
        };
        let cells = self.cells.iter();
        cells.map(|cell| cell.map_or(String::new(), text)).collect()
    }

    /// Formats the cells with their intervals and units.
    pub fn cells_with_intervals(&self, curve: &StudyCurve<'_>) -> Vec<String> {
        let text = |(cell, (_, figure)): (&Option<&Cell>, &(u32, &Figure))| {
            let cell = (*cell)?;
            Some(match (self.published, &cell.published, &cell.estimate) {
                (true, Some(one), _) => study_text::format_published(figure, one),
                (false, _, Some(estimate)) => {
                    let mark = if cell.doubts.is_empty() { "" } else { " ?" };
                    format!("{}{mark}", study_text::format_estimate(figure, estimate))
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

impl StudyCurve<'_> {
    /// Restricts the curve to the points that have a figure.
    pub fn restrict_to_known<'v>(&self, view: &StudyView<'v>) -> StudyCurve<'_>
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
        // Without any measurement, the published figures are shown.
        if points.is_empty() {
            points.clone_from(&self.points);
        }
        points.sort_by_key(|(at, _)| *at);
        StudyCurve { points, ..*self }
    }

    /// Builds the rows of the curve: for each configuration a row of measured figures, and a row of published figures.
    pub fn build_rows<'v>(&self, view: &StudyView<'v>) -> Vec<CurveRow<'v>> {
        let mut rows = Vec::new();
        for configuration in &view.run.study.configurations {
            for published in [false, true] {
                let cells = self.points.iter().map(|(_, figure)| {
                    find_cell(view, configuration, figure).filter(|cell| match published {
                        true => cell.published.is_some(),
                        false => cell.estimate.is_some() || cell.rounds_void > 0,
                    })
                });
                let cells: Vec<_> = cells.collect();
                if cells.iter().any(Option::is_some) {
                    let before = rows
                        .last()
                        .map(|row: &CurveRow<'_>| &row.configuration.name);
                    rows.push(CurveRow {
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

    /// Chooses one unit for the whole table. Returns the unit with the divisor of the values, such as `µs` and 1,000.
    pub fn choose_unit(&self, rows: &[CurveRow<'_>]) -> (String, f64) {
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

    /// Formats the title, such as `requests per second over clients, req/s`.
    pub fn format_title(&self, unit: &str) -> String {
        let unit = match unit {
            "" => String::new(),
            unit => format!(", {unit}"),
        };
        escape_line(&format!("{} by number of {}{unit}", self.of, self.over))
    }
}
