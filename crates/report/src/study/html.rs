//! A study as one HTML file, in the style of a run's report: no network, no script.

mod lines;

use super::curves::{self, cell};
use super::{View, words};
use crate::html::charts::rate_tick;
use assay_model::study::{Cell, Figure, JudgedConclusion, Support};
use assay_render::html::{Chart, Table, page};
use assay_render::svg::intervals;
use assay_render::text::clean;
use assay_render::units::{NONE, count, time};
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

/// The class of a finding: its colour, never without its word.
fn class(finding: Support) -> &'static str {
    match finding {
        Support::Supported => "met",
        Support::Contradicted => "missed",
        Support::Unresolved => "suspect",
        Support::NotTried => "untried",
    }
}

fn conclusion(view: &View<'_>, one: &JudgedConclusion) -> ConclusionView {
    let claims = one.claims.iter().map(|claim| ClaimView {
        text: clean(&words::claim(&view.run.study, &claim.claim)),
        word: words::finding(claim.finding),
        class: class(claim.finding),
        evidence: clean(&words::evidence(&view.run.study, claim)),
        why: clean(&claim.why),
    });
    ConclusionView {
        says: clean(&one.says),
        word: words::finding(one.finding),
        class: class(one.finding),
        why: clean(&one.why),
        published: words::published_finding(one.published_finding),
        today: clean(&one.today),
        claims: claims.collect(),
    }
}

fn tick(unit: &str, value: f64) -> String {
    match unit {
        "B/s" => small(value / 1e6),
        "ns" => assay_render::units::latency(value)
            .replace(".00 ", " ")
            .replace(".0 ", " "),
        "B" => words::value(unit, value),
        _ => small(value),
    }
}

/// A number on an axis, also one that [`rate_tick`] would round to 0.
fn small(value: f64) -> String {
    match value.abs() < 0.1 {
        true => value.to_string(),
        false => rate_tick(value),
    }
}

/// Characters of a row's name beside a plot.
const LABEL: usize = 28;

fn chart(view: &View<'_>, number: usize, figure: &Figure) -> Option<Chart> {
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
    let axis = intervals::Axis::of(shown);
    let off = |value: f64| match axis {
        intervals::Axis::Log => value <= 0.0,
        intervals::Axis::FromZero => value < 0.0,
    };
    for configuration in &view.run.study.configurations {
        let Some(cell) = cell(view, configuration, figure) else {
            continue;
        };
        // Beside a plot long titles would be cut to the same words.
        let (label, title) = match configuration.title() {
            title if title.chars().count() <= LABEL => (title.to_owned(), title.to_owned()),
            title => {
                let name = &configuration.name;
                (name.clone(), format!("{title} ({name})"))
            }
        };
        let [label, title] = [label, title].map(|text| clean(&text));
        let ours = cell.estimate.as_ref();
        let rounds = view.run.observations.iter().filter(|one| {
            one.configuration == configuration.name && one.figure == figure.name && !one.void
        });
        if let Some(estimate) = ours {
            let ends = estimate.interval.map(|one| (one.low, one.high));
            rows.push(intervals::Row {
                label: label.clone(),
                value: estimate.value,
                interval: ends.filter(|(low, _)| *low > 0.0 || axis == intervals::Axis::FromZero),
                rounds: rounds
                    .map(|one| one.value)
                    .filter(|value| *value > 0.0 || axis == intervals::Axis::FromZero)
                    .collect(),
                shape: match cell.doubts.is_empty() {
                    _ if off(estimate.value) => intervals::Shape::OffAxis,
                    true => intervals::Shape::Plain,
                    false => intervals::Shape::Doubtful,
                },
                text: words::value(&figure.unit, estimate.value),
            });
        }
        if let Some(published) = &cell.published {
            rows.push(intervals::Row {
                label: match ours {
                    Some(_) => "published".to_owned(),
                    None => format!("{label}, published"),
                },
                value: published.value,
                interval: None,
                rounds: Vec::new(),
                shape: match off(published.value) {
                    false => intervals::Shape::Worse,
                    true => intervals::Shape::OffAxis,
                },
                text: words::published(figure, published),
            });
        }
        table.push(vec![
            title,
            ours.map_or(NONE.to_owned(), |one| words::value(&figure.unit, one.value)),
            ours.and_then(|one| one.interval)
                .map_or(NONE.to_owned(), |one| {
                    let [low, high] =
                        [one.low, one.high].map(|end| words::value(&figure.unit, end));
                    format!("{low} to {high}")
                }),
            cell.published
                .as_ref()
                .map_or(NONE.to_owned(), |one| words::published(figure, one)),
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
    let title = format!("{}{}", clean(figure.title()), clean(&unit));
    let plot = intervals::Plot {
        id: format!("figure-{number}"),
        title: title.clone(),
        description: format!(
            "Dot plot of {title} on {}, a row for each configuration: dots are measured here with \
             their intervals, squares are published, arrows at the left edge are 0.",
            match axis {
                intervals::Axis::Log => "a logarithmic axis",
                intervals::Axis::FromZero => "an axis from 0",
            }
        ),
        rows,
        axis,
        reference: None,
        tick: &|value| tick(&figure.unit, value),
    };
    Some(Chart {
        title,
        svg: intervals::draw(&plot),
        table: Table {
            head: ["configuration", "here", "interval", "published"]
                .map(str::to_owned)
                .to_vec(),
            rows: table,
        },
    })
}

/// The page.
#[must_use]
pub fn html(view: &View<'_>) -> String {
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
                words::finding(kind),
            )
        })
        .filter(|(n, _)| *n > 0)
        .collect();
    let conclusions: Vec<ConclusionView> = view
        .result
        .conclusions
        .iter()
        .map(|one| conclusion(view, one))
        .collect();
    let rankings: Vec<(String, Table)> = view
        .result
        .rankings
        .iter()
        .filter_map(|ranking| {
            let figure = study.figure(&ranking.figure)?;
            let places = words::places(study, figure, ranking).into_iter();
            let rows = places.map(|row| row.cells.iter().map(|cell| clean(cell)).collect());
            let head = ["rank", "configuration", "here", "", "published rank"];
            Some((
                clean(figure.title()),
                Table {
                    head: head.map(str::to_owned).to_vec(),
                    rows: rows.collect(),
                },
            ))
        })
        .collect();
    let curves = lines::charts(view);
    let charts: Vec<Chart> = (0..)
        .zip(curves::single(study))
        .filter_map(|(number, figure)| chart(view, number, figure))
        .collect();
    let doubtful: Vec<&Cell> = view
        .result
        .cells
        .iter()
        .filter(|one| !one.doubts.is_empty())
        .collect();
    let clean_pair = |(a, b): (String, String)| (clean(&a), clean(&b));
    let doubts: Vec<_> = words::doubts(&doubtful)
        .into_iter()
        .map(clean_pair)
        .collect();
    let not_tried: Vec<String> = run
        .not_tried
        .iter()
        .map(|not| clean(&words::not_tried(study, not)))
        .collect();
    let notes: Vec<String> = study
        .published
        .iter()
        .filter(|one| !one.note.is_empty())
        .map(|one| clean(&words::published_note(study, one)))
        .collect();
    let machine: Vec<_> = run
        .machine
        .iter()
        .map(|(name, value)| (clean(name), clean(value)))
        .collect();
    page(
        &format!("{} (study {})", study.title, study.name),
        OWN_STYLE,
        PAGE,
        context! {
            title => clean(&study.title),
            name => clean(&study.name),
            question => clean(&study.question),
            source => clean(&words::source(study)),
            source_machine => clean(&study.source.machine),
            when => time(run.started),
            form => clean(&run.form),
            rounds => words::rounds(run),
            complete => run.complete,
            emulated => run.emulated,
            seed => run.seed.to_string(),
            version => clean(&run.assay_version),
            observations => count(run.observations.len(), "figure"),
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
