//! The HTML page of an answer: the suspects, and the waiting time as curves.

use super::answer_text::{
    format_heading, format_part, format_suspect_share, name_class, summarize_answer,
};
use assay_render::html::render_page;
use assay_render::svg::line_chart::{ChartLine, LineChart, build_value_scale, draw_lines};
use assay_render::text::escape_line;
use assay_why::SlownessAnswer;
use minijinja::context;
use minijinja::value::Serde;

const TEMPLATE: &str = include_str!("page.html");

/// Charts of the page: the prefix of the names of their curves, the title, and whether the values are fractions.
const CHARTS: [(&str, &str, bool); 4] = [
    ("cpu: ", "CPUs: share of all", true),
    (
        "pressure: ",
        "Pressure: share of the time in which tasks waited",
        true,
    ),
    (
        "disk: ",
        "Disks: share of the time with requests in flight",
        true,
    ),
    (
        "waiting: ",
        "Tasks that waited, by what they waited for",
        false,
    ),
];

/// Renders an answer as a page.
#[must_use]
pub fn render_answer_page(answer: &SlownessAnswer) -> String {
    let suspects: Vec<_> = answer
        .suspects
        .iter()
        .map(|suspect| (format_suspect_share(suspect), suspect))
        .collect();
    let classes: Vec<[String; 3]> = answer
        .classes
        .iter()
        .map(|class| {
            [
                name_class(&class.class).to_owned(),
                format!("{:.2}", class.tasks),
                format_part(class.explained),
            ]
        })
        .collect();
    let charts: Vec<String> = CHARTS
        .iter()
        .enumerate()
        .filter_map(|(number, (prefix, title, is_share))| {
            draw_chart(answer, number, prefix, title, *is_share)
        })
        .collect();
    let head = format_heading(answer);
    render_page(
        &head,
        "",
        TEMPLATE,
        context! {
            head => &head,
            summary => summarize_answer(answer),
            suspects => Serde(&suspects),
            classes => Serde(&classes),
            charts => charts,
            figures => Serde(&answer.figures),
            missing => &answer.missing,
            seconds => format!("{:.0}", answer.seconds),
            looks => answer.looks,
        },
    )
}

fn draw_chart(
    answer: &SlownessAnswer,
    number: usize,
    prefix: &str,
    title: &str,
    is_share: bool,
) -> Option<String> {
    let mut curves: Vec<(&str, &assay_why::Curve)> = answer
        .curves
        .iter()
        .filter_map(|(name, curve)| Some((name.strip_prefix(prefix)?, curve)))
        .filter(|(_, curve)| curve.len() >= 2 && curve.iter().any(|(_, value)| *value > 0.001))
        .collect();
    let sum = |curve: &assay_why::Curve| curve.iter().map(|(_, value)| *value).sum::<f64>();
    curves.sort_by(|a, b| sum(b.1).total_cmp(&sum(a.1)));
    curves.truncate(8);
    if curves.is_empty() {
        return None;
    }
    let factor = if is_share { 100.0 } else { 1.0 };
    let lines: Vec<ChartLine> = curves
        .into_iter()
        .map(|(name, curve)| ChartLine {
            label: escape_line(name),
            points: curve
                .iter()
                .map(|(at, value)| (*at, value * factor, None))
                .collect(),
        })
        .collect();
    let percent = |value: f64| format!("{value:.0} %");
    let tasks = |value: f64| format!("{value:.1}");
    let tick: &dyn Fn(f64) -> String = if is_share { &percent } else { &tasks };
    let scale = build_value_scale(lines.iter());
    let chart = LineChart {
        id: format!("curves-{number}"),
        title: title.to_owned(),
        description: format!("{title}, over {:.0} s", answer.seconds),
        over: "seconds".to_owned(),
        lines,
        tick,
    };
    Some(format!(
        "<figure><figcaption>{title}</figcaption>{}</figure>",
        draw_lines(&chart, &scale)
    ))
}
