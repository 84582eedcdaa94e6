//! The page of `assay plan`: bar charts as SVG and as text from the same figures. The sections of each question are in
//! `answer_sections`.

use super::STYLE;
use assay_render::html::render_page;
use assay_render::svg::canvas::{Svg, TextAnchor, shorten_name};
use assay_render::text::{escape_line, measure_width, pad_right};
use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;
use std::fmt::Write as _;

const TEMPLATE: &str = include_str!("sheet.html");

/// A part of a bar.
#[derive(Clone, Debug)]
pub struct BarPart {
    /// Colour of the part: `data`, `copy`, `parity`, `metadata`, `spare`, `special` or `idle`.
    pub colour: &'static str,
    /// Length of the part in the unit of the section. A negative or invalid length draws nothing.
    pub amount: f64,
    /// Description of the part with its figure.
    pub says: String,
}

/// A row of the chart and of the table.
#[derive(Clone, Debug, Default)]
pub struct BarLine {
    /// Name of the row, which may be untrusted text.
    pub label: String,
    /// Level of indentation of the name.
    pub depth: usize,
    /// Bars of the row, one below the other. Each bar consists of consecutive parts.
    pub lanes: Vec<Vec<BarPart>>,
    /// Interval that is drawn above the bars.
    pub interval: Option<(f64, f64)>,
    /// Cells of the table after the name of the row.
    pub cells: Vec<String>,
}

/// A chart and a table of the same figures.
#[derive(Clone, Debug, Default)]
pub struct PlanSection {
    /// Heading above the chart.
    pub heading: String,
    /// Sentence that describes the chart.
    pub about: String,
    /// Headings of the table's columns.
    pub columns: Vec<&'static str>,
    /// Rows of the chart and of the table.
    pub rows: Vec<BarLine>,
    /// Length of the whole axis; `None` uses the length of the longest row.
    pub full: Option<f64>,
    /// Marks on the axis, as (position, label).
    pub ticks: Vec<(f64, String)>,
    /// A finished SVG chart, such as the growth chart, that replaces the bars.
    pub drawing: Option<String>,
    /// Sentences below the chart.
    pub notes: Vec<String>,
}

/// Replaces a negative or non-finite amount by 0.
fn clamp_amount(value: f64) -> f64 {
    match value.is_finite() {
        true => value.max(0.0),
        false => 0.0,
    }
}

impl PlanSection {
    /// Returns the length of the longest bar; never 0, so that the result can be a divisor.
    fn longest_bar(&self) -> f64 {
        let lanes = self.rows.iter().flat_map(|row| &row.lanes);
        let longest = lanes
            .map(|lane| {
                lane.iter()
                    .map(|part| clamp_amount(part.amount))
                    .sum::<f64>()
            })
            .fold(0.0, f64::max);
        let full = clamp_amount(self.full.unwrap_or(longest));
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

/// Renders a page of `assay plan` with a chart and a table for each section.
#[must_use]
pub fn render_planner_page(title: &str, intro: &[String], sections: &[PlanSection]) -> String {
    render_page_of_verb("assay plan", title, intro, sections)
}

/// Renders a page of the same kind for another verb of assay.
#[must_use]
pub fn render_page_of_verb(
    verb: &str,
    title: &str,
    intro: &[String],
    sections: &[PlanSection],
) -> String {
    let all =
        |lines: &[String]| -> Vec<String> { lines.iter().map(|one| escape_line(one)).collect() };
    let views = sections.iter().enumerate().map(|(at, one)| SectionView {
        heading: escape_line(&one.heading),
        about: escape_line(&one.about),
        drawing: match &one.drawing {
            Some(drawing) => Some(drawing.clone()),
            None => (!one.rows.is_empty()).then(|| draw_section(one, &format!("bars-{at}"))),
        },
        columns: one.columns.clone(),
        rows: (one.rows.iter())
            .map(|row| RowView {
                label: escape_line(&row.label),
                depth: row.depth.min(12),
                cells: all(&row.cells),
            })
            .collect(),
        notes: all(&one.notes),
    });
    render_page(
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

/// Draws a section. The name of each row is above its bars, so that both can use the whole width, even on a phone.
fn draw_section(section: &PlanSection, id: &str) -> String {
    const WIDTH: f64 = 560.0;
    const NAME: f64 = 16.0;
    let scale = section.longest_bar();
    let x = |value: f64| 2.0 + (clamp_amount(value) / scale).min(1.0) * (WIDTH - 4.0);
    let lane = |row: &BarLine| if row.lanes.len() > 1 { 9.0 } else { 14.0 };
    let high = |row: &BarLine| NAME + row.lanes.len().max(1) as f64 * lane(row) + 8.0;
    let bottom: f64 = section.rows.iter().map(high).sum::<f64>() + 2.0;
    let ends = if section.ticks.is_empty() { 2.0 } else { 18.0 };
    let mut svg = Svg::new(WIDTH, bottom + ends);
    for (at, name) in &section.ticks {
        let at = x(*at);
        svg.add_line((at, 0.0), (at, bottom), "gr");
        let anchor = match at / WIDTH {
            share if share < 0.1 => TextAnchor::Start,
            share if share > 0.9 => TextAnchor::End,
            _ => TextAnchor::Middle,
        };
        svg.add_text(at, bottom + 13.0, anchor, "ax n", name);
    }
    let mut y = 2.0;
    for row in &section.rows {
        let depth = row.depth.min(8);
        let branch = if depth == 0 { "" } else { "└ " };
        let label = format!("{branch}{}", shorten_name(&row.label, 76 - depth * 2));
        svg.add_text(depth as f64 * 12.0, y + 11.0, TextAnchor::Start, "", &label);
        for (i, parts) in row.lanes.iter().enumerate() {
            let top = y + NAME + i as f64 * lane(row);
            let mut before = 0.0;
            for part in parts.iter().filter(|part| clamp_amount(part.amount) > 0.0) {
                let (from, to) = (x(before), x(before + clamp_amount(part.amount)));
                before += clamp_amount(part.amount);
                let at = [from, top, (to - from).max(0.5), lane(row) - 1.0];
                svg.add_titled_rect(at, &format!("c-{}", part.colour), &part.says);
            }
        }
        if let Some((low, end)) = row.interval {
            let middle = y + NAME + (high(row) - NAME - 8.0) / 2.0;
            svg.add_path(&[(x(low), middle), (x(end), middle)], "span");
            for end in [x(low), x(end)] {
                svg.add_path(&[(end, middle - 6.0), (end, middle + 6.0)], "span");
            }
        }
        y += high(row);
    }
    let description = format!("{} The same figures follow as a table.", section.about);
    svg.finish(id, &section.heading, &description)
}

/// Formats the bars as text, `columns` wide. `figure` is the table column that is printed after each bar.
#[must_use]
pub fn format_section(section: &PlanSection, figure: usize, columns: usize) -> String {
    let rows = || section.rows.iter().filter(|row| !row.lanes.is_empty());
    let figure_text =
        |row: &BarLine| shorten_name(row.cells.get(figure).map_or("", String::as_str), 18);
    let figures = rows()
        .map(|row| measure_width(&figure_text(row)))
        .max()
        .unwrap_or(0);
    let rest = columns.clamp(40, 80) - figures - 4;
    let names = (rest / 2).min(20);
    let bars = (rest - names).min(36);
    let scale = section.longest_bar();
    let mut text = String::new();
    for row in rows() {
        let mut bar = String::new();
        let (mut sum, mut drawn) = (0.0, 0usize);
        for (i, part) in row.lanes.iter().take(1).flatten().enumerate() {
            sum += clamp_amount(part.amount);
            let end = ((sum / scale).min(1.0) * bars as f64).round() as usize;
            let mark = if i == 0 { "█" } else { "▒" };
            bar.push_str(&mark.repeat(end - drawn));
            drawn = end;
        }
        let label = pad_right(&shorten_name(&row.label, names), names);
        let line = format!("  {label} {} {}", pad_right(&bar, bars), figure_text(row));
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}
