//! The terminal report of a comparison of two runs. The comparison is computed in `assay-judge`.

use super::write_section_heading;
use assay_model::criterion::{Direction, Quantity};
use assay_model::result::{Change, ComparisonRow, RunComparison, SizeFactor};
use assay_render::Style;
use assay_render::text::{escape_line, measure_width, pad_left, pad_right};
use assay_render::units::{format_ratio, format_value, quantity_heading};

/// Quantities in the report for people. The JSON document contains all quantities.
const SHOWN: [Quantity; 6] = [
    Quantity::Iops,
    Quantity::Throughput,
    Quantity::Cpu,
    Quantity::P50,
    Quantity::P99,
    Quantity::P999,
];

/// Whether a row is shown to people. Throughput is not shown if a workload has one block size, because IOPS contain the
/// same information.
pub(crate) fn is_shown(row: &ComparisonRow) -> bool {
    row.metric.direction == Direction::All
        && SHOWN.contains(&row.metric.quantity)
        && row.metric.quantity != Quantity::Throughput
}

/// Returns the word for a verdict.
pub(crate) fn change_word(change: Change) -> &'static str {
    match change {
        Change::Better => "better",
        Change::Worse => "worse",
        Change::Same => "same",
        Change::Unclear => "unclear",
    }
}

/// Formats a JSON value; strings have no quotes.
pub(crate) fn format_plain_json(value: Option<&serde_json::Value>) -> String {
    match value {
        None => "absent".to_owned(),
        Some(serde_json::Value::String(text)) => escape_line(text),
        Some(other) => escape_line(&other.to_string()),
    }
}

/// Renders the comparison of run B with run A: the environment first, then the ratio of each figure
/// with its interval.
#[must_use]
pub fn render_comparison(comparison: &RunComparison, style: Style) -> String {
    render_rows(
        comparison,
        comparison.rows.iter().filter(|row| is_shown(row)),
        style,
    )
}

/// Renders all rows of the comparison, including rows that [`render_comparison`] hides. Used if the user has already
/// selected the rows.
#[must_use]
pub fn render_full_comparison(comparison: &RunComparison, style: Style) -> String {
    render_rows(comparison, comparison.rows.iter(), style)
}

fn render_rows<'a>(
    comparison: &RunComparison,
    rows: impl Iterator<Item = &'a ComparisonRow>,
    style: Style,
) -> String {
    let mut out = String::new();
    let title = format!("run {} (B) against run {} (A)", comparison.b, comparison.a);
    out.push_str(&format!("{}\n", style.bold(&title)));
    if comparison.factors.is_empty() {
        write_environment(comparison, usize::MAX, &mut out, style);
        write_cautions(comparison, &mut out, style);
    } else {
        out.push('\n');
        style.write_paragraph(&mut out, "", 0, &describe_factors(&comparison.factors));
    }
    write_table(
        &rows.collect::<Vec<_>>(),
        comparison.requests,
        &mut out,
        style,
    );
    for (only, which) in [(&comparison.only_a, "A"), (&comparison.only_b, "B")] {
        if !only.is_empty() {
            let names: Vec<String> = only.iter().map(|name| escape_line(name)).collect();
            let text = format!("only in {which}: {}", super::format_some_names(&names, 6));
            write_hanging(&mut out, &text, style);
        }
    }
    if !comparison.factors.is_empty() {
        // Two targets differ in nearly everything: the figures are the news.
        write_cautions(comparison, &mut out, style);
        write_environment(comparison, MOST_DIFFERENCES, &mut out, style);
    }
    out
}

/// Maximum number of environment differences that are printed if the two runs measured different targets.
const MOST_DIFFERENCES: usize = 8;

fn write_environment(comparison: &RunComparison, most: usize, out: &mut String, style: Style) {
    let all = &comparison.environment;
    if all.is_empty() && !comparison.factors.is_empty() {
        return;
    }
    write_section_heading("Environment", out, style);
    if all.is_empty() {
        out.push_str("  no difference in the facts of the two runs\n");
    }
    for difference in all.iter().take(most) {
        let text = format!(
            "{}: {} in A, {} in B",
            escape_line(&difference.key),
            format_plain_json(difference.a.as_ref()),
            format_plain_json(difference.b.as_ref())
        );
        write_hanging(out, &text, style);
    }
    if all.len() > most {
        let text = format!("{} more; --json has all of them", all.len() - most);
        write_hanging(out, &text, style);
    }
}

fn write_cautions(comparison: &RunComparison, out: &mut String, style: Style) {
    if comparison.cautions.is_empty() {
        return;
    }
    write_section_heading("Beware", out, style);
    for caution in &comparison.cautions {
        write_hanging(out, &escape_line(caution), style);
    }
}

/// Describes the ratios by block size, such as `B is 85 × as fast at 4 KiB (60 to 120), 6 × at 1 MiB.`
fn describe_factors(factors: &[SizeFactor]) -> String {
    // One digit of a factor that is far from 1 is enough.
    let number = |factor: f64| match factor {
        _ if factor >= 10.0 => format!("{factor:.0}"),
        _ if factor >= 2.0 => format!("{factor:.1}"),
        _ => format!("{factor:.2}"),
    };
    let slower = factors.iter().all(|one| one.factor < 1.0);
    let part = |one: &SizeFactor| {
        let (factor, low, high) = match slower {
            true => (1.0 / one.factor, 1.0 / one.highest, 1.0 / one.lowest),
            false => (one.factor, one.lowest, one.highest),
        };
        let range = match one.workloads {
            1 => String::new(),
            _ => format!(" ({} to {})", number(low), number(high)),
        };
        format!("{} × at {}{range}", number(factor), one.block_size)
    };
    let parts: Vec<String> = factors.iter().map(part).collect();
    let who = match (slower, factors.iter().all(|one| one.factor > 1.0)) {
        (true, _) => "A does more I/O than B",
        (_, true) => "B does more I/O than A",
        _ => "I/Os of B ÷ I/Os of A",
    };
    format!("{who}: {}.", parts.join(", "))
}

fn write_hanging(out: &mut String, text: &str, style: Style) {
    style.write_paragraph(out, "  -", 4, text);
}

/// Returns the name of a figure. Operations are called I/Os for disks, and requests for web servers.
pub(crate) fn figure_name(quantity: Quantity, requests: bool) -> &'static str {
    match quantity {
        Quantity::Iops if requests => "answers/s",
        Quantity::Cpu => "CPU per answer",
        other => quantity_heading(other),
    }
}

/// If the upper end of an interval exceeds the lower end by this factor, the ends are not printed.
const TOO_WIDE: f64 = 1e4;

fn format_cells(row: &ComparisonRow, requests: bool) -> [String; 6] {
    let quantity = row.metric.quantity;
    let interval = match row.interval {
        None => "no interval".to_owned(),
        // Two rounds that differ give ends that are millions apart.
        Some(interval) if interval.high > TOO_WIDE * interval.low => "too wide".to_owned(),
        Some(interval) => format!(
            "{} to {}",
            format_ratio(interval.low),
            format_ratio(interval.high)
        ),
    };
    let of = match row.metric.direction {
        Direction::All => "",
        Direction::Read => "read ",
        Direction::Write => "write ",
        Direction::Flush => "flush ",
    };
    [
        format!("{of}{}", figure_name(quantity, requests)),
        format_value(quantity, row.a.value),
        format_value(quantity, row.b.value),
        format_ratio(row.ratio),
        interval,
        change_word(row.verdict).to_owned(),
    ]
}

fn write_table(rows: &[&ComparisonRow], requests: bool, out: &mut String, style: Style) {
    write_section_heading("Figures", out, style);
    if rows.is_empty() {
        out.push_str("  no workload in common, by name or by pattern, block size and depth\n");
        return;
    }
    let heads = ["", "A", "B", "B ÷ A", "interval", "B is"];
    let body: Vec<[String; 6]> = rows.iter().map(|row| format_cells(row, requests)).collect();
    let columns: Vec<usize> = (0..heads.len())
        .map(|i| {
            body.iter()
                .map(|row| measure_width(&row[i]))
                .chain([measure_width(heads[i])])
                .max()
                .unwrap_or(0)
        })
        .collect();
    let line = |cells: [&str; 6]| -> String {
        let mut text = format!("    {}", pad_right(cells[0], columns[0]));
        for (cell, column) in cells.iter().zip(&columns).skip(1).take(4) {
            text.push_str(&format!("  {}", pad_left(cell, *column)));
        }
        text
    };
    out.push_str(&format!(
        "{}\n",
        style.dim(&format!("{}  {}", line(heads), heads[5]))
    ));
    let several = rows.iter().any(|row| row.target != rows[0].target);
    let mut last: Option<(&str, &str)> = None;
    for (row, body) in rows.iter().zip(&body) {
        if last != Some((&row.workload, &row.target)) {
            last = Some((&row.workload, &row.target));
            let target = if several {
                format!(" on {}", escape_line(&row.target))
            } else {
                String::new()
            };
            out.push_str(&format!("  {}{target}\n", escape_line(&row.workload)));
        }
        let sgr = match row.verdict {
            Change::Better => "32",
            Change::Worse => "31",
            Change::Same | Change::Unclear => "2",
        };
        let cells =
            [&body[0], &body[1], &body[2], &body[3], &body[4], &body[5]].map(String::as_str);
        out.push_str(&format!(
            "{}  {}\n",
            line(cells),
            style.paint(sgr, cells[5])
        ));
    }
    let changed = |change| rows.iter().filter(|row| row.verdict == change).count();
    let [better, worse, unclear] = [Change::Better, Change::Worse, Change::Unclear].map(changed);
    let text = match requests {
        true => format!(
            "{better} better, {worse} worse, {} the same within 5 %, {unclear} unclear. Better and worse are more than \
             5 % apart, with a chance of at most 5 % that any of these figures is called so when nothing changed.",
            changed(Change::Same)
        ),
        false => format!(
            "{better} better, {worse} worse, {unclear} unclear (the interval of the ratio contains 1, or there is none)"
        ),
    };
    out.push('\n');
    style.write_paragraph(out, "", 0, &text);
}
