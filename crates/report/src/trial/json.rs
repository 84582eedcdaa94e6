//! A trial as one JSON document.

use super::View;
use super::evidence::{self, Median};
use super::words;
use assay_model::trial::{PairOutcome, Side};
use assay_model::{SCHEMA_VERSION, Trial};
use serde_json::{Map, Value, json};

/// The whole trial. Values are in base units: nanoseconds, bytes per second, operations per second;
/// what does not exist is `null`. `ratio` and its intervals are of improvement: above 1 is better.
#[must_use]
pub fn json(view: &View) -> Value {
    json!({
        "schema": SCHEMA_VERSION,
        "trial": header(view.trial),
        "verdict": view.judgement.verdict,
        "sentence": words::verdict_line(view),
        "judgement": view.judgement,
        "figures": figures(view),
        "pairs": view.pairs.iter().zip(1..).map(|(pair, n)| self::pair(view, pair, n)).collect::<Vec<_>>(),
        "doubts": evidence::doubts(view).iter().map(|one| json!({
            "code": one.doubt.code,
            "severity": one.doubt.severity,
            "evidence": one.doubt.evidence,
            "remedy": one.doubt.remedy,
            "now": one.slots[0],
            "changed": one.slots[1],
        })).collect::<Vec<_>>(),
        "smallest": view.smallest.iter().map(|(pairs, share)| json!({
            "pairs": pairs, "share": share,
        })).collect::<Vec<_>>(),
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
        median.map(|median| json!({"median": median.value, "interval": median.interval}))
    };
    let row = |row: &evidence::Row| {
        let value = json!({
            "now": side(row.now),
            "changed": side(row.changed),
            "ratio": row.ratio,
            "interval": row.interval,
            "decides": row.decides,
        });
        (row.metric.to_string(), value)
    };
    evidence::table(view).iter().map(row).collect()
}

fn pair(view: &View, outcome: &PairOutcome, number: u32) -> Value {
    let mut value = serde_json::to_value(outcome).unwrap_or_default();
    if let Value::Object(map) = &mut value {
        map.insert("pair".to_owned(), json!(number));
        let first = view.trial.plan.first.get(number as usize - 1);
        map.insert("first".to_owned(), json!(first));
        for (name, side) in [("now", Side::Now), ("changed", Side::Changed)] {
            map.insert(name.to_owned(), slot(view, number, side));
        }
    }
    value
}

/// The last slot of a side of a pair: what was measured again replaces what it replaces.
fn slot(view: &View, number: u32, side: Side) -> Value {
    let found = evidence::slots(view)
        .filter(|(slot, _)| slot.pair == number && slot.side == side)
        .last();
    let Some((slot, sample)) = found else {
        return Value::Null;
    };
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
    json!({
        "started": slot.sample.started,
        "read_back": slot.read_back,
        "outcome": slot.sample.outcome,
        "tool": slot.sample.tool,
        "figures": figures,
        "counters": slot.sample.counters,
        "doubts": doubts,
    })
}

/// Several trials in short, for `assay trial --list --json`.
#[must_use]
pub fn list(views: &[View]) -> Value {
    let one = |view: &View| {
        json!({
            "id": view.trial.id,
            "uid": view.trial.uid,
            "started": view.trial.started,
            "state": view.trial.state,
            "advice": view.trial.plan.advice,
            "target": view.trial.plan.target,
            "metric": view.trial.plan.metric,
            "aa": view.trial.plan.aa,
            "verdict": view.judgement.verdict,
            "sentence": words::verdict_line(view),
            "pairs": view.judgement.pairs,
            "ratio": view.judgement.ratio,
            "interval": view.judgement.interval,
            "kept": view.trial.kept,
        })
    };
    json!({
        "schema": SCHEMA_VERSION,
        "trials": views.iter().map(one).collect::<Vec<_>>(),
    })
}
