//! Formats the figures, claims and findings of a study. The findings are judged in `assay-judge`.

use assay_model::Bytes;
use assay_model::result::Estimate;
use assay_model::study::{
    Bound, Claim, Configuration, Figure, JudgedClaim, NotTried, Published, Ranking, Study, Support,
};
use assay_model::units::{format_significant, mb_per_s};
use assay_render::units::{NONE, format_latency, format_percent, format_plus_minus};

/// Formats a value with its unit.
pub(super) fn format_value(unit: &str, value: f64) -> String {
    match unit {
        _ if !value.is_finite() => NONE.to_owned(),
        "B/s" => format!("{} MB/s", mb_per_s(value)),
        "ns" => format_latency(value),
        "B" if (0.0..1e18).contains(&value) => Bytes(value.round() as u64).to_string(),
        "%" => format!("{} %", format_percent(value)),
        "" => format_number(value),
        unit => format!("{} {unit}", format_significant(value)),
    }
}

/// Formats a number without a unit, with three significant digits. Counts are exact.
pub(super) fn format_number(value: f64) -> String {
    match value.abs() {
        a if value.fract() == 0.0 && a < 1000.0 => format!("{value:.0}"),
        a if a >= 100.0 => format_significant(value),
        a if a >= 10.0 => format!("{value:.1}"),
        a if a >= 1.0 => format!("{value:.2}"),
        a if a >= 0.1 => format!("{value:.3}"),
        _ => format!("{value:.4}"),
    }
}

/// Formats an estimate, such as `1,234 IOPS ±5 %`.
pub(super) fn format_estimate(figure: &Figure, estimate: &Estimate) -> String {
    let number = format_value(&figure.unit, estimate.value);
    match format_plus_minus(estimate) {
        _ if figure.exact && is_unchanging(estimate) => number,
        text if text.is_empty() => number,
        text => format!("{number} {text}"),
    }
}

fn is_unchanging(estimate: &Estimate) -> bool {
    let interval = estimate.interval;
    interval.is_some_and(|interval| interval.low == interval.high)
}

/// Formats a published figure, such as `about 1,234 IOPS`.
pub(super) fn format_published(figure: &Figure, one: &Published) -> String {
    let word = match one.is {
        Bound::Exactly => "",
        Bound::About => "about ",
        Bound::Below => "below ",
        Bound::Above => "above ",
    };
    format!("{word}{}", format_value(&figure.unit, one.value))
}

/// Returns the word for a finding, such as `supported`.
pub(super) fn finding_word(finding: Support) -> &'static str {
    match finding {
        Support::Supported => "supported",
        Support::NotTried => "not tried",
        Support::Unresolved => "unresolved",
        Support::Contradicted => "contradicted",
    }
}

/// Describes the finding that follows from the published figures; `None` without published figures.
pub(super) fn describe_published_finding(found: Option<Support>) -> Option<&'static str> {
    Some(match found? {
        Support::Supported => "the published figures support it",
        Support::Contradicted => "the published figures contradict it",
        Support::Unresolved | Support::NotTried => "the published figures do not settle it",
    })
}

pub(super) fn configuration_title<'a>(study: &'a Study, name: &'a str) -> &'a str {
    study.configuration(name).map_or(name, Configuration::title)
}

/// Formats the lower and the upper bound. `show` formats a number.
fn format_bounds(
    at_least: Option<f64>,
    at_most: Option<f64>,
    show: impl Fn(f64) -> String,
) -> String {
    match (at_least, at_most) {
        (Some(low), Some(high)) if low == high => show(low),
        (Some(low), Some(high)) => format!("{} to {}", show(low), show(high)),
        (Some(low), None) => format!("at least {}", show(low)),
        (None, Some(high)) => format!("at most {}", show(high)),
        (None, None) => "anything".to_owned(),
    }
}

fn format_times(ratio: f64) -> String {
    format!("×{}", format_number(ratio))
}

/// Describes a claim, such as `random write 4 KiB: none ÷ writethrough at least ×2`.
pub(super) fn describe_claim(study: &Study, claim: &Claim) -> String {
    let name = |figure: &str| {
        let known = study.figure(figure);
        known.map_or(figure.to_owned(), |known| known.title().to_owned())
    };
    match claim {
        Claim::Ratio {
            figure,
            of,
            to,
            at_least,
            at_most,
        } => format!(
            "{}: {} ÷ {} is {}",
            name(figure),
            configuration_title(study, of),
            configuration_title(study, to),
            format_bounds(*at_least, *at_most, format_times)
        ),
        Claim::Value {
            figure,
            of,
            at_least,
            at_most,
        } => {
            let unit = study.figure(figure).map_or("", |known| known.unit.as_str());
            let bounds = format_bounds(*at_least, *at_most, |number| format_value(unit, number));
            format!(
                "{}: {} is {bounds}",
                name(figure),
                configuration_title(study, of)
            )
        }
        Claim::Order { figure, best_first } => {
            let names: Vec<&str> = best_first
                .iter()
                .map(|one| configuration_title(study, one))
                .collect();
            format!("{}, best first: {}", name(figure), names.join(", "))
        }
    }
}

/// Describes the evidence, such as `here ×3.40 (2.90 to 4.10), published ×5.00`; empty without evidence.
pub(super) fn describe_evidence(study: &Study, judged: &JudgedClaim) -> String {
    let show = |number: f64| match &judged.claim {
        Claim::Value { figure, .. } => {
            let unit = study.figure(figure).map_or("", |known| known.unit.as_str());
            format_value(unit, number)
        }
        _ => format_times(number),
    };
    let mut parts = Vec::new();
    if let Some(estimate) = &judged.estimate {
        let interval = match estimate.interval {
            Some(interval) if interval.low < interval.high => {
                format!(" ({} to {})", show(interval.low), show(interval.high))
            }
            _ => String::new(),
        };
        parts.push(format!("here {}{interval}", show(estimate.value)));
    }
    if let Some(published) = judged.published {
        parts.push(format!("published {}", show(published)));
    }
    parts.join(", ")
}

/// Describes a configuration or figure that could not be tried, as `name: why`.
pub(super) fn describe_not_tried(study: &Study, not: &NotTried) -> String {
    let configuration = configuration_title(study, &not.configuration);
    match &not.figure {
        None => format!("{configuration}: {}", not.why),
        Some(figure) => {
            let figure = study.figure(figure).map_or(figure.as_str(), Figure::title);
            format!("{figure} of {configuration}: {}", not.why)
        }
    }
}

/// A row of a ranking.
pub(super) struct RankedRow {
    /// Index of the row in the ranking, from 0.
    pub at: usize,
    /// Cells of the row: rank, title, figure, difference from the next row, published rank.
    pub cells: Vec<String>,
}

/// Builds the rows of a ranking, best first. Marks the rows that do not differ significantly from the next row.
pub(super) fn rank_rows(study: &Study, figure: &Figure, ranking: &Ranking) -> Vec<RankedRow> {
    let rows = ranking.places.iter().enumerate();
    rows.map(|(at, place)| RankedRow {
        at,
        cells: vec![
            (at + 1).to_string(),
            configuration_title(study, &place.configuration).to_owned(),
            format_estimate(figure, &place.estimate),
            match place.apart {
                Some(false) => "not told apart from the next".to_owned(),
                _ => String::new(),
            },
            place
                .published
                .map_or(String::new(), |rank| rank.to_string()),
        ],
    })
    .collect()
}

/// Formats an approximate time: `4 min`, `40 s`.
pub(super) fn format_rough_time(time: assay_model::Nanos) -> String {
    let seconds = time.0.div_ceil(1_000_000_000);
    match seconds {
        0..=90 => format!("{seconds} s"),
        _ => format!("{} min", seconds.div_ceil(60)),
    }
}

/// Lists the doubts, each with its extent, such as `too-short`, `3 figures of 2 configurations`.
pub(super) fn list_doubts(cells: &[&assay_model::study::Cell]) -> Vec<(String, String)> {
    use std::collections::{BTreeMap, BTreeSet};
    let mut carried: BTreeMap<&String, (u32, BTreeSet<&str>)> = BTreeMap::new();
    for cell in cells {
        for (doubt, times) in &cell.doubts {
            let entry = carried.entry(doubt).or_default();
            entry.0 += times;
            entry.1.insert(&cell.configuration);
        }
    }
    let lines = carried.into_iter().map(|(doubt, (times, configurations))| {
        let names: Vec<&str> = configurations.into_iter().collect();
        (
            doubt.clone(),
            format!(
                "{}: {}",
                assay_render::units::format_count(times as usize, "observation"),
                names.join(", ")
            ),
        )
    });
    lines.collect()
}

/// Formats the title and the year of the study's source.
pub(super) fn format_source(study: &Study) -> String {
    match study.source.year {
        Some(year) => format!("{}, {year}", study.source.title),
        None => study.source.title.clone(),
    }
}

/// Formats the number of rounds: `3 rounds`.
pub(super) fn format_rounds(run: &assay_model::study::StudyRun) -> String {
    let form = match run.form.as_str() {
        "full" => &run.study.forms.full,
        _ => &run.study.forms.quick,
    };
    assay_render::units::format_count(form.rounds as usize, "round")
}

/// Describes the limitations of a published figure, from the study's note on it.
pub(super) fn describe_published_note(study: &Study, one: &Published) -> String {
    let figure = study.figure(&one.figure);
    let name = figure.map_or(one.figure.as_str(), Figure::title);
    let value = figure.map_or(String::new(), |figure| format_published(figure, one));
    format!(
        "{name} of {}, {value}: {}",
        configuration_title(study, &one.configuration),
        one.note
    )
}
