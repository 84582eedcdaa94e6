//! The page of `assay plan layout`.

use super::shell::{escape, shell};
use super::{name, rows};
use crate::layout::{Content, Plan, Segment};
use crate::size::{binary, vendor};
use std::fmt::Write as _;

/// The page for an answer: the question, a table, and a card with the disks of each layout.
#[must_use]
pub fn page(question: &str, assumptions: &[String], plans: &[Plan]) -> String {
    let mut html = String::new();
    for line in assumptions {
        let _ = writeln!(html, "<p class=\"dim\">{}</p>", escape(line));
    }
    html.push_str(&key(plans));
    html.push_str(
        "<div class=\"scroll\"><table><thead><tr><th>layout</th><th>usable</th><th>of raw</th>\
         <th>survives</th><th>loss a year</th><th>rebuild</th><th>random r/w</th><th>stream r/w</th>\
         <th>cost</th></tr></thead><tbody>\n",
    );
    for plan in plans {
        let rebuild = plan.rebuild_seconds.map_or("–".to_owned(), hours);
        let cost = plan
            .cost
            .map_or("–".to_owned(), |cost| format!("{cost:.0}"));
        let _ = writeln!(
            html,
            "<tr><td>{}{}</td><td>{}</td><td>{:.1} %</td><td>{}</td><td>{}</td><td>{rebuild}</td>\
             <td>{:.1} / {:.1}</td><td>{:.1} / {:.1}</td><td>{cost}</td></tr>",
            escape(&plan.layout),
            if plan.pareto { " ★" } else { "" },
            binary(plan.usable),
            plan.efficiency * 100.0,
            plan.survives,
            probability(plan.loss_per_year),
            plan.scaling.random_read,
            plan.scaling.random_write,
            plan.scaling.stream_read,
            plan.scaling.stream_write,
        );
    }
    html.push_str("</tbody></table></div>\n<p class=\"dim\">★ not beaten in everything by another one. Speeds are multiples of one disk, by arithmetic.</p>\n");
    for plan in plans {
        card(&mut html, plan);
    }
    let _ = writeln!(
        html,
        "<p class=\"dim\">{}</p>",
        escape(crate::durability::CANNOT_TELL)
    );
    shell(&format!("Layouts for {question}"), &html)
}

fn key(plans: &[Plan]) -> String {
    let mut seen: Vec<Content> = Vec::new();
    for segment in plans.iter().flat_map(|plan| plan.disks.iter().flatten()) {
        if !seen.contains(&segment.content) {
            seen.push(segment.content);
        }
    }
    seen.sort_by_key(|content| *content as u8);
    let mut html = String::from("<p class=\"key\">");
    for content in seen {
        let name = name(content);
        let _ = write!(
            html,
            "<span><i style=\"background:var(--{name})\"></i>{name}</span>"
        );
    }
    html.push_str("</p>\n");
    html
}

fn card(html: &mut String, plan: &Plan) {
    let _ = writeln!(
        html,
        "<section><h2>{}</h2>\n<p>{} usable of {} raw; survives any {} failed disk{}, at best {}; unlucky: {}.</p>",
        escape(&plan.layout),
        binary(plan.usable),
        vendor(plan.raw),
        plan.survives,
        if plan.survives == 1 { "" } else { "s" },
        plan.survives_at_best,
        escape(&plan.unlucky),
    );
    if let Some(zfs) = &plan.zfs {
        let _ = writeln!(
            html,
            "<p class=\"dim\">zpool list: {} · zfs list: {} · slop {} · tail {}</p>",
            binary(zfs.zpool_size),
            binary(zfs.zfs_usable),
            binary(zfs.slop),
            binary(zfs.tail)
        );
    }
    if let Some(fs) = &plan.btrfs {
        let _ = writeln!(
            html,
            "<p class=\"dim\">btrfs filesystem usage when new: free (estimated) {}, min {} · metadata {}</p>",
            binary(fs.usage_free_estimated),
            binary(fs.usage_free_min),
            fs.metadata
        );
    }
    html.push_str(&drawing(&plan.disks));
    for warning in &plan.warnings {
        let _ = writeln!(html, "<p class=\"warn\">{}</p>", escape(warning));
    }
    if !plan.growth.is_empty() {
        html.push_str("<ul>");
        for step in &plan.growth {
            let _ = write!(
                html,
                "<li>{}: {} more</li>",
                escape(&step.action),
                binary(step.gives)
            );
        }
        html.push_str("</ul>\n");
    }
    html.push_str("</section>\n");
}

/// Bars as SVG, equal neighbours once.
fn drawing(disks: &[Vec<Segment>]) -> String {
    const BAR: u64 = 18;
    const STEP: u64 = 26;
    let rows = rows(disks);
    let largest = rows.iter().map(|row| row.size).max().unwrap_or(1).max(1) as f64;
    let height = rows.len() as u64 * STEP + 4;
    let mut svg = format!(
        "<svg viewBox=\"0 0 900 {height}\" role=\"img\"><title>Disks</title>\
         <desc>What lies on each disk; the same figures stand above.</desc>"
    );
    for (i, row) in rows.iter().enumerate() {
        let y = i as u64 * STEP + 2;
        let count = if row.times > 1 {
            format!("{} × ", row.times)
        } else {
            String::new()
        };
        let _ = write!(
            svg,
            "<text x=\"104\" y=\"{}\" text-anchor=\"end\">{count}{}</text>",
            y + 13,
            vendor(row.size)
        );
        let mut x = 112.0;
        for segment in row.segments {
            let width = segment.bytes as f64 / largest * 780.0;
            let _ = write!(
                svg,
                "<rect x=\"{x:.1}\" y=\"{y}\" width=\"{:.1}\" height=\"{BAR}\" fill=\"var(--{})\"><title>{}: {}</title></rect>",
                width.max(0.5),
                name(segment.content),
                name(segment.content),
                binary(segment.bytes)
            );
            x += width;
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// Seconds as people say them.
fn hours(seconds: f64) -> String {
    match seconds / 3600.0 {
        h if h >= 48.0 => format!("{:.1} d", h / 24.0),
        h if h >= 1.0 => format!("{h:.1} h"),
        h => format!("{:.0} min", h * 60.0),
    }
}

/// A probability with two digits.
fn probability(value: f64) -> String {
    match value {
        v if v >= 0.001 => format!("{:.2} %", v * 100.0),
        v => format!("{v:.1e}"),
    }
}
