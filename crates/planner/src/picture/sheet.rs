//! Bars of any kind, drawn once as HTML and once as text from the same figures.

use super::shell::{escape, shell};
use std::fmt::Write as _;

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
pub struct Row {
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
    pub rows: Vec<Row>,
    /// Length of the whole axis; none: the longest row.
    pub full: Option<f64>,
    /// Marks on the axis.
    pub ticks: Vec<(f64, String)>,
    /// A finished drawing of [`super::growth`], shown instead of bars.
    pub(super) drawing: Option<String>,
    /// Sentences below.
    pub notes: Vec<String>,
}

/// A finite amount from 0 up.
fn amount(value: f64) -> f64 {
    if value.is_finite() {
        value.max(0.0)
    } else {
        0.0
    }
}

impl Section {
    /// The longest bar, never 0, so that one can divide by it.
    fn scale(&self) -> f64 {
        let longest = self
            .rows
            .iter()
            .flat_map(|row| &row.lanes)
            .map(|lane| lane.iter().map(|part| amount(part.amount)).sum::<f64>())
            .fold(0.0, f64::max);
        let full = amount(self.full.unwrap_or(longest));
        if full > 0.0 && full.is_finite() {
            full
        } else {
            1.0
        }
    }
}

/// At most `most` characters.
fn short(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => text.chars().take(most - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// A page with a picture and a table for each section.
#[must_use]
pub fn sheet(title: &str, intro: &[String], sections: &[Section]) -> String {
    let mut html = String::new();
    for line in intro {
        let _ = writeln!(html, "<p class=\"dim\">{}</p>", escape(line));
    }
    for section in sections {
        let _ = writeln!(html, "<section><h2>{}</h2>", escape(&section.heading));
        let _ = writeln!(html, "<p>{}</p>", escape(&section.about));
        match &section.drawing {
            Some(drawing) => html.push_str(drawing),
            None if section.rows.is_empty() => {}
            None => html.push_str(&svg(section)),
        }
        if !section.rows.is_empty() {
            table(&mut html, section);
        }
        for note in &section.notes {
            let _ = writeln!(html, "<p class=\"dim\">{}</p>", escape(note));
        }
        html.push_str("</section>\n");
    }
    shell(title, &html)
}

fn table(html: &mut String, section: &Section) {
    html.push_str("<div class=\"scroll\"><table><thead><tr>");
    for column in &section.columns {
        let _ = write!(html, "<th scope=\"col\">{}</th>", escape(column));
    }
    html.push_str("</tr></thead><tbody>\n");
    for row in &section.rows {
        let _ = write!(
            html,
            "<tr><td style=\"padding-left:{:.1}rem\">{}</td>",
            0.6 + row.depth.min(12) as f64,
            escape(&row.label)
        );
        for cell in &row.cells {
            let _ = write!(html, "<td>{}</td>", escape(cell));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
}

fn svg(section: &Section) -> String {
    const LEFT: f64 = 250.0;
    const WIDTH: f64 = 630.0;
    let scale = section.scale();
    let x = |value: f64| LEFT + (amount(value) / scale).min(1.0) * WIDTH;
    let lane = |row: &Row| if row.lanes.len() > 1 { 10.0 } else { 18.0 };
    let high = |row: &Row| row.lanes.len().max(1) as f64 * lane(row) + 8.0;
    let bottom: f64 = section.rows.iter().map(high).sum::<f64>() + 2.0;
    let height = bottom + if section.ticks.is_empty() { 2.0 } else { 20.0 };
    let mut svg = format!(
        "<svg viewBox=\"0 0 900 {height:.0}\" role=\"img\"><title>{}</title><desc>{} The same \
         figures follow as a table.</desc>",
        escape(&section.heading),
        escape(&section.about)
    );
    for (at, name) in &section.ticks {
        let _ = write!(
            svg,
            "<line x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"0\" y2=\"{bottom:.0}\" stroke=\"var(--line)\"/>\
             <text x=\"{0:.1}\" y=\"{1:.0}\" text-anchor=\"middle\">{2}</text>",
            x(*at),
            bottom + 14.0,
            escape(name)
        );
    }
    let mut y = 2.0;
    for row in &section.rows {
        let indent = row.depth.min(8) as f64 * 14.0;
        let branch = if row.depth == 0 { "" } else { "└ " };
        let most = 34 - row.depth.min(8) * 2;
        let _ = write!(
            svg,
            "<text x=\"{indent:.0}\" y=\"{:.1}\">{branch}{}</text>",
            y + (high(row) - 8.0) / 2.0 + 4.0,
            escape(&short(&row.label, most))
        );
        for (i, parts) in row.lanes.iter().enumerate() {
            let top = y + i as f64 * lane(row);
            let mut before = 0.0;
            for part in parts {
                let (from, to) = (x(before), x(before + amount(part.amount)));
                before += amount(part.amount);
                if amount(part.amount) > 0.0 {
                    let _ = write!(
                        svg,
                        "<rect x=\"{from:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.0}\" \
                         fill=\"var(--{})\"><title>{}</title></rect>",
                        (to - from).max(0.5),
                        lane(row) - 1.0,
                        part.colour,
                        escape(&part.says)
                    );
                }
            }
        }
        if let Some((low, high_end)) = row.interval {
            let middle = y + (high(row) - 8.0) / 2.0;
            let _ = write!(
                svg,
                "<path d=\"M{0:.1} {1:.1}v12M{0:.1} {2:.1}H{3:.1}M{3:.1} {1:.1}v12\" fill=\"none\" \
                 stroke=\"var(--fg)\" stroke-width=\"2\"/>",
                x(low),
                middle - 6.0,
                middle,
                x(high_end)
            );
        }
        y += high(row);
    }
    svg.push_str("</svg>\n");
    svg
}

/// The bars as text, 80 columns; `figure` is the column of the table shown behind each.
#[must_use]
pub fn terminal(section: &Section, figure: usize) -> String {
    const WIDTH: f64 = 36.0;
    let scale = section.scale();
    let mut text = String::new();
    for row in section.rows.iter().filter(|row| !row.lanes.is_empty()) {
        let mut bar = String::new();
        let (mut sum, mut drawn) = (0.0, 0usize);
        for (i, part) in row.lanes.iter().take(1).flatten().enumerate() {
            sum += amount(part.amount);
            let end = ((sum / scale).min(1.0) * WIDTH).round() as usize;
            let mark = if i == 0 { "█" } else { "▒" };
            bar.push_str(&mark.repeat(end - drawn));
            drawn = end;
        }
        let label: String = row.label.escape_debug().to_string();
        let said = row.cells.get(figure).map_or("", String::as_str);
        let _ = writeln!(
            text,
            "  {:<20} {bar}{} {}",
            short(&label, 20),
            " ".repeat(WIDTH as usize - drawn),
            short(said, 18)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(amount: f64) -> Part {
        Part {
            colour: "data",
            amount,
            says: "<x>".into(),
        }
    }

    #[test]
    fn nothing_and_nonsense_still_make_a_page() {
        let rows = [f64::NAN, f64::INFINITY, -1.0, 0.0, f64::MAX, f64::MAX]
            .map(|value| Row {
                label: "<script>\u{1b}\u{202e}\"&".repeat(20),
                lanes: vec![vec![part(value), part(value)]],
                cells: vec!["</td>".into()],
                ..Row::default()
            })
            .to_vec();
        let section = Section {
            heading: "</svg>".into(),
            columns: vec!["a", "b"],
            rows,
            ..Section::default()
        };
        let page = sheet(
            "<h1>",
            &["<p>".into()],
            &[section.clone(), Section::default()],
        );
        crate::picture::tests::stands_alone(&page);
        for bad in ["NaN", "inf", "\u{1b}", "\u{202e}"] {
            assert!(!page.contains(bad), "{bad}");
        }
        for line in terminal(&section, 0).lines() {
            assert!(line.chars().count() <= 80 && !line.contains('\u{1b}'));
        }
        assert_eq!(terminal(&Section::default(), 0), "");
    }
}
