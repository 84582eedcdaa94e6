//! The HTML page of a study. Shared text is in `study_text`.

mod curve_charts;

use super::curve_tables::{self, find_cell};
use super::{StudyView, study_text};
use crate::html::run_charts::format_rate_tick;
use assay_model::study::{Cell, Figure, JudgedConclusion, Support};
use assay_render::html::{Chart, ChartTable, render_page};
use assay_render::svg::dot_plot;
use assay_render::text::escape_line;
use assay_render::units::{NONE, format_count, format_timestamp};
use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;

const PAGE: &str = include_str!("html/study.html");
const OWN_STYLE: &str = include_str!("html/study.css");

#[derive(Serialize)]
struct ConclusionView {
    says: String,
    word: &'static str,
    class: &'static str,
    why: String,
    published: Option<&'static str>,
    today: String,
    claims: Vec<ClaimView>,
}

#[derive(Serialize)]
struct ClaimView {
    text: String,
    word: &'static str,
    class: &'static str,
    evidence: String,
    why: String,
}

/// Returns the CSS class of a finding. The page always shows the finding as a word too.
fn finding_class(finding: Support) -> &'static str {
    match finding {
        Support::Supported => "met",
        Support::Contradicted => "missed",
        Support::Unresolved => "suspect",
        Support::NotTried => "untried",
    }
}

fn build_conclusion_view(view: &StudyView<'_>, one: &JudgedConclusion) -> ConclusionView {
    let claims = one.claims.iter().map(|claim| ClaimView {
        text: escape_line(&study_text::describe_claim(&view.run.study, &claim.claim)),
        word: study_text::finding_word(claim.finding),
        class: finding_class(claim.finding),
        evidence: escape_line(&study_text::describe_evidence(&view.run.study, claim)),
        why: escape_line(&claim.why),
    });
    ConclusionView {
        says: escape_line(&one.says),
        word: study_text::finding_word(one.finding),
        class: finding_class(one.finding),
        why: escape_line(&one.why),
        published: study_text::describe_published_finding(one.published_finding),
        today: escape_line(&one.today),
        claims: claims.collect(),
    }
}

fn format_tick(unit: &str, value: f64) -> String {
    match unit {
        "B/s" => format_small_number(value / 1e6),
        "ns" => assay_render::units::format_latency(value)
            .replace(".00 ", " ")
            .replace(".0 ", " "),
        "B" => study_text::format_value(unit, value),
        _ => format_small_number(value),
    }
}

/// Formats a number on an axis, including numbers that [`format_rate_tick`] would round to 0.
fn format_small_number(value: f64) -> String {
    match value.abs() < 0.1 {
        true => value.to_string(),
        false => format_rate_tick(value),
    }
}

/// Maximum length of a row's name beside a plot, in characters.
const LABEL: usize = 28;

fn build_chart(view: &StudyView<'_>, number: usize, figure: &Figure) -> Option<Chart> {
    let mut rows = Vec::new();
    let mut table = Vec::new();
    let own = || {
        let cells = view.result.cells.iter();
        cells.filter(|cell| cell.figure == figure.name)
    };
    let shown = own().flat_map(|cell| {
        let ours = cell.estimate.as_ref().map(|one| one.value);
        ours.into_iter()
            .chain(cell.published.as_ref().map(|one| one.value))
    });
    let axis = dot_plot::DotAxis::choose(shown);
    let off = |value: f64| match axis {
        dot_plot::DotAxis::Log => value <= 0.0,
        dot_plot::DotAxis::FromZero => value < 0.0,
    };
    for configuration in &view.run.study.configurations {
        let Some(cell) = find_cell(view, configuration, figure) else {
            continue;
        };
        // Long titles would be cut to the same text beside a plot.
        let (label, title) = match configuration.title() {
            title if title.chars().count() <= LABEL => (title.to_owned(), title.to_owned()),
            title => {
                let name = &configuration.name;
                (name.clone(), format!("{title} ({name})"))
            }
        };
        let [label, title] = [label, title].map(|text| escape_line(&text));
        let ours = cell.estimate.as_ref();
        let rounds = view.run.observations.iter().filter(|one| {
            one.configuration == configuration.name && one.figure == figure.name && !one.void
        });
        if let Some(estimate) = ours {
            let ends = estimate.interval.map(|one| (one.low, one.high));
            rows.push(dot_plot::DotRow {
                label: label.clone(),
                value: estimate.value,
                interval: ends.filter(|(low, _)| *low > 0.0 || axis == dot_plot::DotAxis::FromZero),
                rounds: rounds
                    .map(|one| one.value)
                    .filter(|value| *value > 0.0 || axis == dot_plot::DotAxis::FromZero)
                    .collect(),
                shape: match cell.doubts.is_empty() {
                    _ if off(estimate.value) => dot_plot::DotMark::OffAxis,
                    true => dot_plot::DotMark::Plain,
                    false => dot_plot::DotMark::Doubtful,
                },
                text: study_text::format_value(&figure.unit, estimate.value),
            });
        }
        if let Some(published) = &cell.published {
            rows.push(dot_plot::DotRow {
                label: match ours {
                    Some(_) => "published".to_owned(),
                    None => format!("{label}, published"),
                },
                value: published.value,
                interval: None,
                rounds: Vec::new(),
                shape: match off(published.value) {
                    false => dot_plot::DotMark::Worse,
                    true => dot_plot::DotMark::OffAxis,
                },
                text: study_text::format_published(figure, published),
            });
        }
        table.push(vec![
            title,
            ours.map_or(NONE.to_owned(), |one| {
                study_text::format_value(&figure.unit, one.value)
            }),
            ours.and_then(|one| one.interval)
                .map_or(NONE.to_owned(), |one| {
                    let [low, high] =
                        [one.low, one.high].map(|end| study_text::format_value(&figure.unit, end));
                    format!("{low} to {high}")
                }),
            cell.published.as_ref().map_or(NONE.to_owned(), |one| {
                study_text::format_published(figure, one)
            }),
        ]);
    }
    if rows.is_empty() {
        return None;
    }
    let unit = match figure.unit.as_str() {
        "" => String::new(),
        "B/s" => ", MB/s".to_owned(),
        unit => format!(", {unit}"),
    };
    let title = format!("{}{}", escape_line(figure.title()), escape_line(&unit));
    let plot = dot_plot::DotPlot {
        id: format!("figure-{number}"),
        title: title.clone(),
        description: format!(
            "Dot plot of {title} on {}, a row for each configuration: dots are measured here with \
             their intervals, squares are published, arrows at the left edge are 0.",
            match axis {
                dot_plot::DotAxis::Log => "a logarithmic axis",
                dot_plot::DotAxis::FromZero => "an axis from 0",
            }
        ),
        rows,
        axis,
        reference: None,
        tick: &|value| format_tick(&figure.unit, value),
    };
    Some(Chart {
        title,
        svg: dot_plot::draw_intervals(&plot),
        table: ChartTable {
            head: ["configuration", "here", "interval", "published"]
                .map(str::to_owned)
                .to_vec(),
            rows: table,
        },
    })
}

/// Renders the page of a study.
#[must_use]
pub fn render_study_page(view: &StudyView<'_>) -> String {
    let (run, study) = (view.run, &view.run.study);
    let kinds = [
        Support::Supported,
        Support::Contradicted,
        Support::Unresolved,
        Support::NotTried,
    ];
    let tiles: Vec<(usize, &str)> = kinds
        .into_iter()
        .map(|kind| {
            let all = view.result.conclusions.iter();
            (
                all.filter(|one| one.finding == kind).count(),
                study_text::finding_word(kind),
            )
        })
        .filter(|(n, _)| *n > 0)
        .collect();
    let conclusions: Vec<ConclusionView> = view
        .result
        .conclusions
        .iter()
        .map(|one| build_conclusion_view(view, one))
        .collect();
    let rankings: Vec<(String, ChartTable)> = view
        .result
        .rankings
        .iter()
        .filter_map(|ranking| {
            let figure = study.figure(&ranking.figure)?;
            let places = study_text::rank_rows(study, figure, ranking).into_iter();
            let rows = places.map(|row| row.cells.iter().map(|cell| escape_line(cell)).collect());
            let head = ["rank", "configuration", "here", "", "published rank"];
            Some((
                escape_line(figure.title()),
                ChartTable {
                    head: head.map(str::to_owned).to_vec(),
                    rows: rows.collect(),
                },
            ))
        })
        .collect();
    let curves = curve_charts::build_curve_charts(view);
    let charts: Vec<Chart> = (0..)
        .zip(curve_tables::list_single_figures(study))
        .filter_map(|(number, figure)| build_chart(view, number, figure))
        .collect();
    let doubtful: Vec<&Cell> = view
        .result
        .cells
        .iter()
        .filter(|one| !one.doubts.is_empty())
        .collect();
    let clean_pair = |(a, b): (String, String)| (escape_line(&a), escape_line(&b));
    let doubts: Vec<_> = study_text::list_doubts(&doubtful)
        .into_iter()
        .map(clean_pair)
        .collect();
    let not_tried: Vec<String> = run
        .not_tried
        .iter()
        .map(|not| escape_line(&study_text::describe_not_tried(study, not)))
        .collect();
    let notes: Vec<String> = study
        .published
        .iter()
        .filter(|one| !one.note.is_empty())
        .map(|one| escape_line(&study_text::describe_published_note(study, one)))
        .collect();
    let machine: Vec<_> = run
        .machine
        .iter()
        .map(|(name, value)| (escape_line(name), escape_line(value)))
        .collect();
    render_page(
        &format!("{} (study {})", study.title, study.name),
        OWN_STYLE,
        PAGE,
        context! {
            title => escape_line(&study.title),
            name => escape_line(&study.name),
            question => escape_line(&study.question),
            source => escape_line(&study_text::format_source(study)),
            source_machine => escape_line(&study.source.machine),
            when => format_timestamp(run.started),
            form => escape_line(&run.form),
            rounds => study_text::format_rounds(run),
            complete => run.complete,
            emulated => run.emulated,
            seed => run.seed.to_string(),
            version => escape_line(&run.assay_version),
            observations => format_count(run.observations.len(), "figure"),
            tiles => Serde(tiles),
            conclusions => Serde(conclusions),
            rankings => Serde(rankings),
            curves => Serde(curves),
            charts => Serde(charts),
            doubts => Serde(doubts),
            not_tried => Serde(not_tried),
            notes => Serde(notes),
            machine => Serde(machine),
        },
    )
}
