//! Reports of a trial of two networks: the verdict in a sentence, the experience of all people on each side, and the
//! pairs.

use super::format_percent;
use super::page::of_whole;
use crate::plan::{BarLine, BarPart, PlanSection, render_page_of_verb};
use crate::trial::{format_signed_ratio, format_span, verdict_word};
use assay_model::SCHEMA_VERSION;
use assay_model::result::Interval;
use assay_model::trial::{Judgement, Side, Verdict};
use assay_net::trial::{PersonOutcome, Trial};
use assay_render::table::render_table;
use assay_render::terminal_style::Style;
use assay_render::text::escape_line;
use assay_render::units::{NONE, format_plural};

/// Returns one JSON object with the judgement, the outcome for each person, and the raw runs.
#[must_use]
pub fn trial_json(trial: &Trial) -> String {
    let value = serde_json::json!(TrialDocument {
        schema: SCHEMA_VERSION,
        kind: "net-trial",
        judgement: trial.judgement(),
        people: trial.people(),
        trial,
    });
    format!("{value:#}\n")
}

/// What [`trial_json`] returns.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct TrialDocument<'a> {
    schema: u32,
    /// Always `net-trial`.
    kind: &'static str,
    judgement: Judgement,
    people: Vec<PersonOutcome>,
    trial: &'a Trial,
}

/// Formats the verdict as a line, such as `BETTER: fq-codel …`.
#[must_use]
pub fn trial_verdict(trial: &Trial, judgement: &Judgement) -> String {
    let [now, changed] = trial.sides.each_ref().map(|side| escape_line(side));
    let pairs = format_plural(u64::from(judgement.pairs), "pair", "pairs");
    let moved = judgement.ratio.map_or_else(
        || "nothing is known".to_owned(),
        |ratio| {
            format!(
                "{}{} of what was due came in time",
                format_signed_ratio(ratio),
                format_interval(judgement.interval)
            )
        },
    );
    let said = match judgement.verdict {
        Verdict::Better => format!(
            "with {changed} instead of {now}, {moved}, {pairs}, and nobody lost more than {}",
            format_percent(trial.guard)
        ),
        _ => format!(
            "with {changed} instead of {now}: {}",
            escape_line(&judgement.reason)
        ),
    };
    let left_out = match judgement.left_out {
        0 => String::new(),
        n => format!(
            " {} left out.",
            format_plural(u64::from(n), "pair was", "pairs were")
        ),
    };
    let error = match judgement.verdict {
        Verdict::Better | Verdict::Worse => format!(
            " Chance alone says so in at most {} of such trials.",
            format_percent(trial.alpha)
        ),
        _ => String::new(),
    };
    format!(
        "{}: {said}.{left_out}{error}",
        verdict_word(judgement.verdict)
    )
}

fn format_interval(interval: Option<Interval>) -> String {
    interval.map_or_else(String::new, |interval| {
        format!(
            " ({} interval {})",
            format_percent(interval.confidence),
            format_span(interval.low, interval.high)
        )
    })
}

fn format_share(share: Option<f64>) -> String {
    share.map_or_else(|| NONE.to_owned(), format_percent)
}

/// Formats the change for a person, with its interval. The guardrail stores worsening as a factor. The report shows the
/// inverse, for which above 1 is better.
fn format_change(person: &PersonOutcome, judgement: &Judgement) -> [String; 2] {
    let guard = person.guard.and_then(|at| judgement.guards.get(at));
    let Some(guard) = guard.filter(|guard| guard.worsening > 0.0) else {
        return [NONE.to_owned(), NONE.to_owned()];
    };
    let interval = guard.interval.map_or_else(
        || NONE.to_owned(),
        |interval| format_span(1.0 / interval.high, 1.0 / interval.low),
    );
    [format_signed_ratio(1.0 / guard.worsening), interval]
}

fn format_cells(trial: &Trial, person: &PersonOutcome, judgement: &Judgement) -> Vec<String> {
    let runs = trial.slots.len() / 2;
    let [ratio, interval] = format_change(person, judgement);
    vec![
        format_share(person.in_time[0]),
        format_share(person.in_time[1]),
        ratio,
        interval,
        format!("{} of {runs}", person.bad[0]),
        format!("{} of {runs}", person.bad[1]),
    ]
}

/// Renders the report of a trial for a terminal.
#[must_use]
pub fn trial_terminal(trial: &Trial, style: Style) -> String {
    let judgement = trial.judgement();
    let mut out = String::new();
    style.write_paragraph(&mut out, "", 0, &trial_verdict(trial, &judgement));
    out.push('\n');
    let [now, changed] = trial.sides.each_ref().map(|side| escape_line(side));
    let heads = [
        "person".to_owned(),
        format!("{now}: in time"),
        format!("{changed}: in time"),
        "change".to_owned(),
        "interval".to_owned(),
        format!("{now}: bad"),
        format!("{changed}: bad"),
    ];
    let heads: Vec<&str> = heads.iter().map(|head| &**head).collect();
    let rows: Vec<Vec<String>> = trial
        .people()
        .iter()
        .map(|person| {
            std::iter::once(escape_line(&person.person))
                .chain(format_cells(trial, person, &judgement))
                .collect()
        })
        .collect();
    out += &render_table(2, "lrrrrrr", &heads, &rows);
    out
}

/// Formats the line that is printed after a pair has been judged.
#[must_use]
pub fn trial_pair(trial: &Trial, judgement: &Judgement) -> String {
    let pair = trial.slots.last().map_or(0, |slot| slot.pair);
    match judgement.ratio {
        Some(ratio) => format!(
            "pair {pair} of at most {}: {}{}",
            trial.first.len(),
            format_signed_ratio(ratio),
            format_interval(judgement.interval)
        ),
        None => format!(
            "pair {pair} of at most {}: {}",
            trial.first.len(),
            escape_line(&judgement.reason)
        ),
    }
}

/// Renders the report of a trial as one self-contained page.
#[must_use]
pub fn trial_page(trial: &Trial) -> String {
    let judgement = trial.judgement();
    let title = format!(
        "Two networks in turns: {} against {}",
        escape_line(&trial.sides[1]),
        escape_line(&trial.sides[0])
    );
    let sections = [
        build_people_section(trial, &judgement),
        build_pairs_section(trial),
    ];
    render_page_of_verb(
        "assay net",
        &title,
        &[trial_verdict(trial, &judgement)],
        &sections,
    )
}

fn build_bar(share: Option<f64>, colour: &'static str, side: &str) -> Vec<BarPart> {
    let part = share.map(|share| BarPart {
        colour,
        amount: share,
        says: format!("{}: {} in time", escape_line(side), format_percent(share)),
    });
    part.into_iter().collect()
}

fn build_people_section(trial: &Trial, judgement: &Judgement) -> PlanSection {
    let rows = trial.people().into_iter().map(|person| BarLine {
        label: person.person.clone(),
        lanes: vec![
            build_bar(person.in_time[0], "copy", &trial.sides[0]),
            build_bar(person.in_time[1], "data", &trial.sides[1]),
        ],
        cells: format_cells(trial, &person, judgement),
        ..BarLine::default()
    });
    PlanSection {
        heading: "Who got what in time".to_owned(),
        about: format!(
            "Of the role that was worst, over all runs: {} (A) above, {} (B) below. A role without a goal does not \
             count.",
            escape_line(&trial.sides[0]),
            escape_line(&trial.sides[1])
        ),
        columns: vec![
            "person",
            "A: in time",
            "B: in time",
            "change",
            "interval",
            "A: bad",
            "B: bad",
        ],
        rows: rows.collect(),
        ..of_whole()
    }
}

fn build_pairs_section(trial: &Trial) -> PlanSection {
    let rows = trial.slots.chunks_exact(2).map(|two| {
        let grades = |side: Side| {
            let slot = two.iter().find(|slot| slot.side == side);
            slot.map_or_else(
                || NONE.to_owned(),
                |slot| {
                    let of = assay_net::result::experience(&slot.run.judged());
                    format!("bad for {}, tolerable for {}", of.bad, of.tolerable)
                },
            )
        };
        let first = match two[0].side {
            Side::Now => &trial.sides[0],
            Side::Changed => &trial.sides[1],
        };
        BarLine {
            label: format!("pair {}", two[0].pair),
            cells: vec![escape_line(first), grades(Side::Now), grades(Side::Changed)],
            ..BarLine::default()
        }
    });
    PlanSection {
        heading: "The pairs".to_owned(),
        about: "Two runs after one another; which side was first, a coin said before anything was measured.".to_owned(),
        columns: vec!["pair", "first", "A", "B"],
        rows: rows.collect(),
        drawing: Some(String::new()),
        ..PlanSection::default()
    }
}
