//! A trial as one JSON document.

use super::View;
use super::evidence::{self, Median};
use super::words;
use assay_model::criterion::Metric;
use assay_model::result::Interval;
use assay_model::sample::{Counters, Outcome};
use assay_model::trial::{Judgement, Kept, PairOutcome, Side, TrialState, Verdict};
use assay_model::{Doubt, SCHEMA_VERSION, Trial, TrialId};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A trial and what it means. Values are in base units: nanoseconds, bytes per second, operations per
/// second; what does not exist is null. `ratio` and its intervals are of improvement: above 1 is
/// better.
#[derive(Serialize, JsonSchema)]
pub struct Document<'a> {
    schema: u32,
    /// The trial as it is stored.
    #[schemars(with = "Trial")]
    trial: Value,
    verdict: Verdict,
    /// The verdict for people.
    sentence: String,
    judgement: &'a Judgement,
    /// Figures of both sides by name.
    #[schemars(with = "BTreeMap<Metric, Row>")]
    figures: Map<String, Value>,
    pairs: Vec<Pair<'a>>,
    doubts: Vec<DoubtOf<'a>>,
    /// The smallest effect that a trial of so many pairs would find with this noise.
    smallest: Vec<Smallest>,
}

/// A figure on both sides.
#[derive(Serialize, JsonSchema)]
struct Row {
    now: Option<Middle>,
    changed: Option<Middle>,
    ratio: Option<f64>,
    interval: Option<Interval>,
    /// Whether the verdict rests on it.
    decides: bool,
}

/// A median over the pairs.
#[derive(Serialize, JsonSchema)]
struct Middle {
    median: f64,
    /// Null below five values.
    interval: Option<Interval>,
}

/// A pair, and the slot on each side that counts.
#[derive(Serialize, JsonSchema)]
struct Pair<'a> {
    #[serde(flatten)]
    outcome: &'a PairOutcome,
    /// Its number, of 1.
    pair: u32,
    /// The side that the coin put first.
    first: Option<&'a Side>,
    now: Option<SlotSeen<'a>>,
    changed: Option<SlotSeen<'a>>,
}

/// A slot and its figures.
#[derive(Serialize, JsonSchema)]
struct SlotSeen<'a> {
    started: jiff::Timestamp,
    /// The setting as it was read back before the slot.
    read_back: &'a str,
    outcome: &'a Outcome,
    tool: &'a str,
    #[schemars(with = "BTreeMap<Metric, f64>")]
    figures: Map<String, Value>,
    counters: &'a Counters,
    /// Codes.
    doubts: Vec<&'a str>,
}

/// A doubt and how many slots of each side carry it.
#[derive(Serialize, JsonSchema)]
struct DoubtOf<'a> {
    #[serde(flatten)]
    doubt: &'a Doubt,
    now: u32,
    changed: u32,
}

#[derive(Serialize, JsonSchema)]
struct Smallest {
    pairs: u32,
    /// As a share: 0.05 is 5 %.
    share: f64,
}

/// Trials in short.
#[derive(Serialize, JsonSchema)]
pub struct List<'a> {
    schema: u32,
    trials: Vec<Listed<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct Listed<'a> {
    id: TrialId,
    uid: &'a str,
    started: jiff::Timestamp,
    state: TrialState,
    advice: &'a str,
    target: &'a str,
    metric: Metric,
    /// Both sides were the same.
    aa: bool,
    verdict: Verdict,
    sentence: String,
    pairs: u32,
    ratio: Option<f64>,
    interval: Option<Interval>,
    kept: Option<Kept>,
}

/// The whole trial.
#[must_use]
pub fn json(view: &View) -> Value {
    let pairs = view.pairs.iter().zip(1..);
    let doubts = evidence::doubts(view);
    json!(Document {
        schema: SCHEMA_VERSION,
        trial: header(view.trial),
        verdict: view.judgement.verdict,
        sentence: words::verdict_line(view),
        judgement: view.judgement,
        figures: figures(view),
        pairs: pairs.map(|(pair, n)| self::pair(view, pair, n)).collect(),
        doubts: doubts
            .iter()
            .map(|one| DoubtOf {
                doubt: one.doubt,
                now: one.slots[0],
                changed: one.slots[1],
            })
            .collect(),
        smallest: view
            .smallest
            .iter()
            .map(|&(pairs, share)| Smallest { pairs, share })
            .collect(),
    })
}

fn header(trial: &Trial) -> Value {
    let mut value = serde_json::to_value(trial).unwrap_or_default();
    if let Value::Object(map) = &mut value {
        // 0 stands for "not stored".
        if trial.id.0 == 0 {
            map.insert("id".to_owned(), Value::Null);
        }
    }
    value
}

fn figures(view: &View) -> Map<String, Value> {
    let side = |median: Option<Median>| {
        median.map(|median| Middle {
            median: median.value,
            interval: median.interval,
        })
    };
    let row = |row: &evidence::Row| {
        let value = json!(Row {
            now: side(row.now),
            changed: side(row.changed),
            ratio: row.ratio,
            interval: row.interval,
            decides: row.decides,
        });
        (row.metric.to_string(), value)
    };
    evidence::table(view).iter().map(row).collect()
}

fn pair<'a>(view: &View<'a>, outcome: &'a PairOutcome, number: u32) -> Pair<'a> {
    Pair {
        outcome,
        pair: number,
        first: view.trial.plan.first.get(number as usize - 1),
        now: slot(view, number, Side::Now),
        changed: slot(view, number, Side::Changed),
    }
}

/// The last slot of a side of a pair: what was measured again replaces what it replaces.
fn slot<'a>(view: &View<'a>, number: u32, side: Side) -> Option<SlotSeen<'a>> {
    let (slot, sample) = evidence::slots(view)
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

/// Several trials in short, for `assay trial --list --json`.
#[must_use]
pub fn list(views: &[View]) -> Value {
    let trials = views.iter().map(|view| Listed {
        id: view.trial.id,
        uid: &view.trial.uid,
        started: view.trial.started,
        state: view.trial.state,
        advice: &view.trial.plan.advice,
        target: &view.trial.plan.target,
        metric: view.trial.plan.metric,
        aa: view.trial.plan.aa,
        verdict: view.judgement.verdict,
        sentence: words::verdict_line(view),
        pairs: view.judgement.pairs,
        ratio: view.judgement.ratio,
        interval: view.judgement.interval,
        kept: view.trial.kept,
    });
    json!(List {
        schema: SCHEMA_VERSION,
        trials: trials.collect(),
    })
}
