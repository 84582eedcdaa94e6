//! Bars of any kind, drawn as SVG and as text from the same figures.

use super::STYLE;
use assay_render::html::page;
use assay_render::svg::draw::{Anchor, Svg, shorten};
use assay_render::text::{clean, left, width};
use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;
use std::fmt::Write as _;

const TEMPLATE: &str = include_str!("sheet.html");

/// A stretch of a bar.
#[derive(Clone, Debug)]
pub struct Part {
    /// Colour: `data`, `copy`, `parity`, `metadata`, `spare`, `special` or `idle`.
    pub colour: &'static str,
    /// Length, in the unit of the section; what is negative or no number draws nothing.
    pub amount: f64,
    /// What it is, with its figure.
    pub says: String,
}

/// One row of the picture and of the table.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// Its name; may come from outside.
    pub label: String,
    /// Levels of indentation.
    pub depth: usize,
    /// Bars one below the other, each of parts one after another.
    pub lanes: Vec<Vec<Part>>,
    /// Interval drawn over the bars.
    pub interval: Option<(f64, f64)>,
    /// Cells of the table after the name.
    pub cells: Vec<String>,
}

/// A picture with the same figures as a table.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Heading.
    pub heading: String,
    /// What the picture shows, in a sentence.
    pub about: String,
    /// Columns of the table.
    pub columns: Vec<&'static str>,
    /// Rows.
    pub rows: Vec<Line>,
    /// Length of the whole axis; none: the longest row.
    pub full: Option<f64>,
    /// Marks on the axis.
    pub ticks: Vec<(f64, String)>,
    /// A finished drawing of [`super::growth`], shown instead of bars.
    pub drawing: Option<String>,
    /// Sentences below.
    pub notes: Vec<String>,
}

/// A finite amount from 0 up.
fn amount(value: f64) -> f64 {
    match value.is_finite() {
        true => value.max(0.0),
        false => 0.0,
    }
}

impl Section {
    /// The longest bar, never 0, so that one can divide by it.
    fn scale(&self) -> f64 {
        let lanes = self.rows.iter().flat_map(|row| &row.lanes);
        let longest = lanes
            .map(|lane| lane.iter().map(|part| amount(part.amount)).sum::<f64>())
            .fold(0.0, f64::max);
        let full = amount(self.full.unwrap_or(longest));
        if full > 0.0 { full } else { 1.0 }
    }
}

#[derive(Serialize)]
struct SectionView {
    heading: String,
    about: String,
    drawing: Option<String>,
    columns: Vec<&'static str>,
    rows: Vec<RowView>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct RowView {
    label: String,
    depth: usize,
    cells: Vec<String>,
}

/// A page of the planner with a picture and a table for each section.
#[must_use]
pub fn sheet(title: &str, intro: &[String], sections: &[Section]) -> String {
    sheet_of("assay plan", title, intro, sections)
}

/// The same of another verb.
#[must_use]
pub fn sheet_of(verb: &str, title: &str, intro: &[String], sections: &[Section]) -> String {
    let all = |lines: &[String]| -> Vec<String> { lines.iter().map(|one| clean(one)).collect() };
    let views = sections.iter().enumerate().map(|(at, one)| SectionView {
        heading: clean(&one.heading),
        about: clean(&one.about),
        drawing: match &one.drawing {
            Some(drawing) => Some(drawing.clone()),
            None => (!one.rows.is_empty()).then(|| svg(one, &format!("bars-{at}"))),
        },
        columns: one.columns.clone(),
        rows: (one.rows.iter())
            .map(|row| RowView {
                label: clean(&row.label),
                depth: row.depth.min(12),
                cells: all(&row.cells),
            })
            .collect(),
        notes: all(&one.notes),
    });
    page(
        title,
        STYLE,
        TEMPLATE,
        context! {
            verb,
            intro => Serde(all(intro)),
            sections => Serde(views.collect::<Vec<_>>()),
        },
    )
}

/// Each row's name stands above its bars, so that both have the whole width, also on a telephone.
fn svg(section: &Section, id: &str) -> String {
    const WIDTH: f64 = 560.0;
    const NAME: f64 = 16.0;
    let scale = section.scale();
    let x = |value: f64| 2.0 + (amount(value) / scale).min(1.0) * (WIDTH - 4.0);
    let lane = |row: &Line| if row.lanes.len() > 1 { 9.0 } else { 14.0 };
    let high = |row: &Line| NAME + row.lanes.len().max(1) as f64 * lane(row) + 8.0;
    let bottom: f64 = section.rows.iter().map(high).sum::<f64>() + 2.0;
    let ends = if section.ticks.is_empty() { 2.0 } else { 18.0 };
    let mut svg = Svg::new(WIDTH, bottom + ends);
    for (at, name) in &section.ticks {
        let at = x(*at);
        svg.line((at, 0.0), (at, bottom), "gr");
        let anchor = match at / WIDTH {
            share if share < 0.1 => Anchor::Start,
            share if share > 0.9 => Anchor::End,
            _ => Anchor::Middle,
        };
        svg.text(at, bottom + 13.0, anchor, "ax n", name);
    }
    let mut y = 2.0;
    for row in &section.rows {
        let depth = row.depth.min(8);
        let branch = if depth == 0 { "" } else { "└ " };
        let label = format!("{branch}{}", shorten(&row.label, 76 - depth * 2));
        svg.text(depth as f64 * 12.0, y + 11.0, Anchor::Start, "", &label);
        for (i, parts) in row.lanes.iter().enumerate() {
            let top = y + NAME + i as f64 * lane(row);
            let mut before = 0.0;
            for part in parts.iter().filter(|part| amount(part.amount) > 0.0) {
                let (from, to) = (x(before), x(before + amount(part.amount)));
                before += amount(part.amount);
                let at = [from, top, (to - from).max(0.5), lane(row) - 1.0];
                svg.titled(at, &format!("c-{}", part.colour), &part.says);
            }
        }
        if let Some((low, end)) = row.interval {
            let middle = y + NAME + (high(row) - NAME - 8.0) / 2.0;
            svg.path(&[(x(low), middle), (x(end), middle)], "span");
            for end in [x(low), x(end)] {
                svg.path(&[(end, middle - 6.0), (end, middle + 6.0)], "span");
            }
        }
        y += high(row);
    }
    let description = format!("{} The same figures follow as a table.", section.about);
    svg.finish(id, &section.heading, &description)
}

/// The bars as text in so many columns; `figure` is the column of the table shown behind each.
#[must_use]
pub fn terminal(section: &Section, figure: usize, columns: usize) -> String {
    let rows = || section.rows.iter().filter(|row| !row.lanes.is_empty());
    let said = |row: &Line| shorten(row.cells.get(figure).map_or("", String::as_str), 18);
    let figures = rows().map(|row| width(&said(row))).max().unwrap_or(0);
    let rest = columns.clamp(40, 80) - figures - 4;
    let names = (rest / 2).min(20);
    let bars = (rest - names).min(36);
    let scale = section.scale();
    let mut text = String::new();
    for row in rows() {
        let mut bar = String::new();
        let (mut sum, mut drawn) = (0.0, 0usize);
        for (i, part) in row.lanes.iter().take(1).flatten().enumerate() {
            sum += amount(part.amount);
            let end = ((sum / scale).min(1.0) * bars as f64).round() as usize;
            let mark = if i == 0 { "█" } else { "▒" };
            bar.push_str(&mark.repeat(end - drawn));
            drawn = end;
        }
        let label = left(&shorten(&row.label, names), names);
        let line = format!("  {label} {} {}", left(&bar, bars), said(row));
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}
