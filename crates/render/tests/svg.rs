//! Draws each chart separately and compares it with a snapshot.

use assay_model::doubt::Validity;
use assay_render::svg::{dot_plot, heat_map, percentile_curves, rate_panels};

/// Splits the text into one element per line, so that a diff is readable.
fn lines(svg: &str) -> String {
    svg.replace("><", ">\n<")
}

#[test]
fn heat_map() {
    let cell = |value: f64, validity| {
        Some(heat_map::HeatCell {
            value: Some(value),
            text: format!("{value}"),
            validity,
        })
    };
    let map = heat_map::HeatMap {
        id: "h".to_owned(),
        title: "IOPS".to_owned(),
        description: "by size and depth".to_owned(),
        rows: vec!["4k".to_owned(), "1m".to_owned()],
        columns: vec!["qd 1".to_owned(), "qd 16".to_owned()],
        cells: vec![
            cell(100.0, Validity::Valid),
            cell(1000.0, Validity::Suspect),
            cell(5.0, Validity::Void),
            None,
        ],
    };
    insta::assert_snapshot!(lines(&heat_map::draw_heat_map(
        &map,
        &heat_map::build_color_scale([100.0, 1000.0].into_iter())
    )));
}

#[test]
fn dot_plot() {
    let row = |label: &str, value: f64, shape| dot_plot::DotRow {
        label: label.to_owned(),
        value,
        interval: Some((value * 0.9, value * 1.1)),
        rounds: vec![value * 0.95, value * 1.02],
        shape,
        text: format!("{value}"),
    };
    let plot = dot_plot::DotPlot {
        id: "d".to_owned(),
        title: "ratio".to_owned(),
        description: "of B to A".to_owned(),
        rows: vec![
            row("better", 1.2, dot_plot::DotMark::Better),
            row("worse", 0.8, dot_plot::DotMark::Worse),
            row("unclear", 1.0, dot_plot::DotMark::Doubtful),
            row("plain", 1.1, dot_plot::DotMark::Plain),
            row("void", f64::NAN, dot_plot::DotMark::Void),
        ],
        axis: dot_plot::DotAxis::Log,
        reference: Some(1.0),
        tick: &|v| format!("{v:.1}"),
    };
    insta::assert_snapshot!(lines(&dot_plot::draw_intervals(&plot)));
}

#[test]
fn percentile_curves() {
    let histogram = [(100_000, 900), (200_000, 90), (3_000_000, 10)]
        .into_iter()
        .collect();
    let curves = vec![percentile_curves::LatencyCurve {
        label: "qd 1".to_owned(),
        points: percentile_curves::compute_curve(&histogram, 40),
    }];
    let scale = percentile_curves::build_latency_scale(curves.iter(), false);
    let panel = percentile_curves::CurvePanel {
        id: "c".to_owned(),
        title: "latency".to_owned(),
        description: "percentiles".to_owned(),
        curves,
        large: false,
    };
    insta::assert_snapshot!(lines(&percentile_curves::draw_panel(&panel, &scale, 3.0)));
}

#[test]
fn rate_over_time() {
    let panel = rate_panels::RatePanel {
        id: "r".to_owned(),
        title: "rate".to_owned(),
        description: "two rounds".to_owned(),
        rounds: vec![
            (1, vec![(100.0, 900.0), (200.0, 950.0), (300.0, 100.0)]),
            (2, vec![(100.0, 910.0)]),
        ],
    };
    insta::assert_snapshot!(lines(&rate_panels::draw_panel(&panel, &|v| format!(
        "{v:.0}"
    ))));
}
