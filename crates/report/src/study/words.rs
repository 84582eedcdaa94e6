//! Figures, claims and findings in words.

use assay_model::Bytes;
use assay_model::result::Estimate;
use assay_model::study::{
    Bound, Claim, Configuration, Figure, JudgedClaim, NotTried, Published, Ranking, Study, Support,
};
use assay_model::units::{mb_per_s, significant};
use assay_render::units::{NONE, latency, percent, plus_minus};

/// A value with its unit.
pub(super) fn value(unit: &str, value: f64) -> String {
    match unit {
        _ if !value.is_finite() => NONE.to_owned(),
        "B/s" => format!("{} MB/s", mb_per_s(value)),
        "ns" => latency(value),
        "B" if (0.0..1e18).contains(&value) => Bytes(value.round() as u64).to_string(),
        "%" => format!("{} %", percent(value)),
        "" => plain(value),
        unit => format!("{} {unit}", significant(value)),
    }
}

/// A number without a unit, three digits that count; a count as it is.
pub(super) fn plain(value: f64) -> String {
    match value.abs() {
        a if value.fract() == 0.0 && a < 1000.0 => format!("{value:.0}"),
        a if a >= 100.0 => significant(value),
        a if a >= 10.0 => format!("{value:.1}"),
        a if a >= 1.0 => format!("{value:.2}"),
        a if a >= 0.1 => format!("{value:.3}"),
        _ => format!("{value:.4}"),
    }
}

/// `1,234 IOPS ±5 %`.
pub(super) fn estimate(figure: &Figure, estimate: &Estimate) -> String {
    let number = value(&figure.unit, estimate.value);
    match plus_minus(estimate) {
        _ if figure.exact && unchanging(estimate) => number,
        text if text.is_empty() => number,
        text => format!("{number} {text}"),
    }
}

fn unchanging(estimate: &Estimate) -> bool {
    let interval = estimate.interval;
    interval.is_some_and(|interval| interval.low == interval.high)
}

/// `about 1,234 IOPS`.
pub(super) fn published(figure: &Figure, one: &Published) -> String {
    let word = match one.is {
        Bound::Exactly => "",
        Bound::About => "about ",
        Bound::Below => "below ",
        Bound::Above => "above ",
    };
    format!("{word}{}", value(&figure.unit, one.value))
}

/// One word for a finding.
pub(super) fn finding(finding: Support) -> &'static str {
    match finding {
        Support::Supported => "supported",
        Support::NotTried => "not tried",
        Support::Unresolved => "unresolved",
        Support::Contradicted => "contradicted",
    }
}

/// What the author's own figures say, in a few words; none where they say nothing.
pub(super) fn published_finding(found: Option<Support>) -> Option<&'static str> {
    Some(match found? {
        Support::Supported => "the published figures support it",
        Support::Contradicted => "the published figures contradict it",
        Support::Unresolved | Support::NotTried => "the published figures do not settle it",
    })
}

pub(super) fn title<'a>(study: &'a Study, name: &'a str) -> &'a str {
    study.configuration(name).map_or(name, Configuration::title)
}

/// Both bounds with how a number is written.
fn bounds(at_least: Option<f64>, at_most: Option<f64>, show: impl Fn(f64) -> String) -> String {
    match (at_least, at_most) {
        (Some(low), Some(high)) if low == high => show(low),
        (Some(low), Some(high)) => format!("{} to {}", show(low), show(high)),
        (Some(low), None) => format!("at least {}", show(low)),
        (None, Some(high)) => format!("at most {}", show(high)),
        (None, None) => "anything".to_owned(),
    }
}

fn times(ratio: f64) -> String {
    format!("×{}", plain(ratio))
}

/// What is claimed: `random write 4 KiB: none ÷ writethrough at least ×2`.
pub(super) fn claim(study: &Study, claim: &Claim) -> String {
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
            title(study, of),
            title(study, to),
            bounds(*at_least, *at_most, times)
        ),
        Claim::Value {
            figure,
            of,
            at_least,
            at_most,
        } => {
            let unit = study.figure(figure).map_or("", |known| known.unit.as_str());
            let bounds = bounds(*at_least, *at_most, |number| value(unit, number));
            format!("{}: {} is {bounds}", name(figure), title(study, of))
        }
        Claim::Order { figure, best_first } => {
            let names: Vec<&str> = best_first.iter().map(|one| title(study, one)).collect();
            format!("{}, best first: {}", name(figure), names.join(", "))
        }
    }
}

/// What was found: `here ×3.40 (2.90 to 4.10), published ×5.00`; empty where nothing is known.
pub(super) fn evidence(study: &Study, judged: &JudgedClaim) -> String {
    let show = |number: f64| match &judged.claim {
        Claim::Value { figure, .. } => {
            let unit = study.figure(figure).map_or("", |known| known.unit.as_str());
            value(unit, number)
        }
        _ => times(number),
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

/// What could not be tried, each configuration or figure once: `name: why`.
pub(super) fn not_tried(study: &Study, not: &NotTried) -> String {
    let configuration = title(study, &not.configuration);
    match &not.figure {
        None => format!("{configuration}: {}", not.why),
        Some(figure) => {
            let figure = study.figure(figure).map_or(figure.as_str(), Figure::title);
            format!("{figure} of {configuration}: {}", not.why)
        }
    }
}

/// A row of a ranking.
pub(super) struct Ranked {
    /// Where in the ranking.
    pub at: usize,
    /// Rank, title, figure, whether it is told apart from the next, rank among the published.
    pub cells: Vec<String>,
}

/// The rows of a ranking, best first. Places that are not told apart from the next say so.
pub(super) fn places(study: &Study, figure: &Figure, ranking: &Ranking) -> Vec<Ranked> {
    let rows = ranking.places.iter().enumerate();
    rows.map(|(at, place)| Ranked {
        at,
        cells: vec![
            (at + 1).to_string(),
            title(study, &place.configuration).to_owned(),
            estimate(figure, &place.estimate),
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

/// A time that is a guess: `4 min`, `40 s`.
pub(super) fn about(time: assay_model::Nanos) -> String {
    let seconds = time.0.div_ceil(1_000_000_000);
    match seconds {
        0..=90 => format!("{seconds} s"),
        _ => format!("{} min", seconds.div_ceil(60)),
    }
}

/// Doubts with what carries them: `too-short`, `3 figures of 2 configurations`.
pub(super) fn doubts(cells: &[&assay_model::study::Cell]) -> Vec<(String, String)> {
    use std::collections::{BTreeMap, BTreeSet};
    let mut carried: BTreeMap<&String, (u32, BTreeSet<&str>)> = BTreeMap::new();
    for cell in cells {
        for (doubt, times) in &cell.doubts {
            let entry = carried.entry(doubt).or_default();
            entry.0 += times;
            entry.1.insert(&cell.configuration);
        }
    }
    let told = carried.into_iter().map(|(doubt, (times, configurations))| {
        let names: Vec<&str> = configurations.into_iter().collect();
        (
            doubt.clone(),
            format!(
                "{}: {}",
                assay_render::units::count(times as usize, "observation"),
                names.join(", ")
            ),
        )
    });
    told.collect()
}

/// Title and year of the source.
pub(super) fn source(study: &Study) -> String {
    match study.source.year {
        Some(year) => format!("{}, {year}", study.source.title),
        None => study.source.title.clone(),
    }
}

/// `3 rounds`.
pub(super) fn rounds(run: &assay_model::study::StudyRun) -> String {
    let form = match run.form.as_str() {
        "full" => &run.study.forms.full,
        _ => &run.study.forms.quick,
    };
    assay_render::units::count(form.rounds as usize, "round")
}

/// What is to be said about a published figure.
pub(super) fn published_note(study: &Study, one: &Published) -> String {
    let figure = study.figure(&one.figure);
    let name = figure.map_or(one.figure.as_str(), Figure::title);
    let value = figure.map_or(String::new(), |figure| published(figure, one));
    format!(
        "{name} of {}, {value}: {}",
        title(study, &one.configuration),
        one.note
    )
}
