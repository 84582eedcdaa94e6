//! A trial as one JSON document. Reports for people are in the sibling modules.

use super::TrialView;
use super::trial_tables::{self, PairMedian};
use super::trial_text;
use assay_model::criterion::Metric;
use assay_model::result::Interval;
use assay_model::sample::{Counters, Outcome};
use assay_model::trial::{Judgement, Kept, PairOutcome, Side, TrialState, Verdict};
use assay_model::{Doubt, SCHEMA_VERSION, Trial, TrialId};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// A trial and its result. Values are in base units: nanoseconds, bytes per second, operations per second. A missing
/// value is null. `ratio` and its intervals describe improvement: above 1 is better.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Document")]
pub struct TrialReport<'a> {
    schema: u32,
    /// The trial as it is stored.
    #[schemars(with = "Trial")]
    trial: Value,
    verdict: Verdict,
    /// The verdict as a sentence.
    sentence: String,
    judgement: &'a Judgement,
    /// Figures of both sides, by name.
    #[schemars(with = "std::collections::BTreeMap<Metric, TrialFigure>")]
    figures: Map<String, Value>,
    pairs: Vec<PairSeen<'a>>,
    doubts: Vec<DoubtSeen<'a>>,
    /// For several numbers of pairs, the smallest effect that a trial with that many pairs would detect at the measured
    /// noise.
    smallest: Vec<SmallestEffect>,
}

/// A figure with its values on both sides.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Row")]
struct TrialFigure {
    now: Option<MedianSeen>,
    changed: Option<MedianSeen>,
    ratio: Option<f64>,
    interval: Option<Interval>,
    /// Whether the figure decides the verdict.
    decides: bool,
}

/// A median over the pairs, with its interval.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Middle")]
struct MedianSeen {
    median: f64,
    /// Interval of the median; null for fewer than five values.
    interval: Option<Interval>,
}

/// A pair, with the slot of each side that counts for the verdict.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Pair")]
struct PairSeen<'a> {
    #[serde(flatten)]
    outcome: &'a PairOutcome,
    /// Number of the pair, from 1.
    pair: u32,
    /// The side that was measured first.
    first: Option<&'a Side>,
    now: Option<SlotSeen<'a>>,
    changed: Option<SlotSeen<'a>>,
}

/// A slot with its figures.
#[derive(Serialize, JsonSchema)]
struct SlotSeen<'a> {
    started: jiff::Timestamp,
    /// The setting as it was read back before the slot.
    read_back: &'a str,
    outcome: &'a Outcome,
    tool: &'a str,
    #[schemars(with = "std::collections::BTreeMap<Metric, f64>")]
    figures: Map<String, Value>,
    counters: &'a Counters,
    /// Codes of the doubts about the slot.
    doubts: Vec<&'a str>,
}

/// A doubt with the number of slots of each side that have it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DoubtOf")]
struct DoubtSeen<'a> {
    #[serde(flatten)]
    doubt: &'a Doubt,
    now: u32,
    changed: u32,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Smallest")]
struct SmallestEffect {
    pairs: u32,
    /// The effect as a fraction: 0.05 is 5 %.
    share: f64,
}

/// JSON document of summaries of trials.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "List")]
pub struct TrialListDocument<'a> {
    schema: u32,
    trials: Vec<TrialEntry<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Listed")]
struct TrialEntry<'a> {
    id: TrialId,
    uid: &'a str,
    started: jiff::Timestamp,
    state: TrialState,
    advice: &'a str,
    target: &'a str,
    metric: Metric,
    /// Whether both sides are the same (A/A trial).
    aa: bool,
    verdict: Verdict,
    sentence: String,
    pairs: u32,
    ratio: Option<f64>,
    interval: Option<Interval>,
    kept: Option<Kept>,
}

/// Converts a trial to JSON.
#[must_use]
pub fn trial_to_json(view: &TrialView) -> Value {
    let pairs = view.pairs.iter().zip(1..);
    let doubts = trial_tables::count_doubts(view);
    json!(TrialReport {
        schema: SCHEMA_VERSION,
        trial: build_header(view.trial),
        verdict: view.judgement.verdict,
        sentence: trial_text::format_verdict_line(view),
        judgement: view.judgement,
        figures: build_figures(view),
        pairs: pairs
            .map(|(pair, n)| self::build_pair(view, pair, n))
            .collect(),
        doubts: doubts
            .iter()
            .map(|one| DoubtSeen {
                doubt: one.doubt,
                now: one.slots[0],
                changed: one.slots[1],
            })
            .collect(),
        smallest: view
            .smallest
            .iter()
            .map(|&(pairs, share)| SmallestEffect { pairs, share })
            .collect(),
    })
}

fn build_header(trial: &Trial) -> Value {
    let mut value = serde_json::to_value(trial).unwrap_or_default();
    if let Value::Object(map) = &mut value {
        // 0 stands for "not stored".
        if trial.id.0 == 0 {
            map.insert("id".to_owned(), Value::Null);
        }
    }
    value
}

fn build_figures(view: &TrialView) -> Map<String, Value> {
    let side = |median: Option<PairMedian>| {
        median.map(|median| MedianSeen {
            median: median.value,
            interval: median.interval,
        })
    };
    let row = |row: &trial_tables::ComparedFigure| {
        let value = json!(TrialFigure {
            now: side(row.now),
            changed: side(row.changed),
            ratio: row.ratio,
            interval: row.interval,
            decides: row.decides,
        });
        (row.metric.to_string(), value)
    };
    trial_tables::build_figure_rows(view)
        .iter()
        .map(row)
        .collect()
}

fn build_pair<'a>(view: &TrialView<'a>, outcome: &'a PairOutcome, number: u32) -> PairSeen<'a> {
    PairSeen {
        outcome,
        pair: number,
        first: view.trial.plan.first.get(number as usize - 1),
        now: find_slot(view, number, Side::Now),
        changed: find_slot(view, number, Side::Changed),
    }
}

/// Returns the last slot of a side of a pair. A repeated slot replaces the earlier ones.
fn find_slot<'a>(view: &TrialView<'a>, number: u32, side: Side) -> Option<SlotSeen<'a>> {
    let (slot, sample) = trial_tables::zip_slots_with_samples(view)
        .filter(|(slot, _)| slot.pair == number && slot.side == side)
        .last()?;
    let figures: Map<String, Value> = sample
        .into_iter()
        .flat_map(|sample| &sample.figures)
        .map(|(metric, value)| (metric.to_string(), json!(value)))
        .collect();
    let doubts = sample.into_iter().flat_map(|sample| &sample.doubts);
    let doubts: Vec<&str> = slot
        .doubts
        .iter()
        .chain(doubts)
        .map(|doubt| doubt.code.as_str())
        .collect();
    Some(SlotSeen {
        started: slot.sample.started,
        read_back: &slot.read_back,
        outcome: &slot.sample.outcome,
        tool: &slot.sample.tool,
        figures,
        counters: &slot.sample.counters,
        doubts,
    })
}

/// Converts summaries of trials to JSON, for `assay trial --list --json`.
#[must_use]
pub fn trials_to_json(views: &[TrialView]) -> Value {
    let trials = views.iter().map(|view| TrialEntry {
        id: view.trial.id,
        uid: &view.trial.uid,
        started: view.trial.started,
        state: view.trial.state,
        advice: &view.trial.plan.advice,
        target: &view.trial.plan.target,
        metric: view.trial.plan.metric,
        aa: view.trial.plan.aa,
        verdict: view.judgement.verdict,
        sentence: trial_text::format_verdict_line(view),
        pairs: view.judgement.pairs,
        ratio: view.judgement.ratio,
        interval: view.judgement.interval,
        kept: view.trial.kept,
    });
    json!(TrialListDocument {
        schema: SCHEMA_VERSION,
        trials: trials.collect(),
    })
}
