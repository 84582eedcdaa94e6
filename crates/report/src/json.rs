//! A run as one JSON document.

use assay_model::criterion::{Direction, Metric, Quantity};
use assay_model::result::{Judged, JudgedSample, WorkloadResult};
use assay_model::{Doubt, Run, SCHEMA_VERSION, Sample};
use serde_json::{Map, Value, json};

/// The percentiles of every sample.
const PERCENTILES: [Quantity; 6] = [
    Quantity::P50,
    Quantity::P90,
    Quantity::P95,
    Quantity::P99,
    Quantity::P999,
    Quantity::P9999,
];

/// The whole run. Values are in base units: nanoseconds, bytes per second, I/Os per second; a
/// figure that does not exist is `null`. Every sample has the keys `percentiles`, `interval` (the
/// interval of its workload over the rounds) and `doubts`.
#[must_use]
pub fn run(run: &Run, judged: &Judged, samples: &[Sample]) -> Value {
    json!({
        "schema": SCHEMA_VERSION,
        "run": header(run),
        "results": judged.results.iter().map(result).collect::<Vec<_>>(),
        "criteria": judged.criteria,
        "samples": judged
            .samples
            .iter()
            .enumerate()
            .map(|(i, one)| sample(one, raw(one, i, samples), judged))
            .collect::<Vec<_>>(),
        "doubts": distinct(judged),
    })
}

fn header(run: &Run) -> Value {
    let mut value = serde_json::to_value(run).unwrap_or_default();
    if let Value::Object(map) = &mut value {
        // 0 stands for "not stored".
        if run.id.0 == 0 {
            map.insert("id".to_owned(), Value::Null);
        }
    }
    value
}

fn result(result: &WorkloadResult) -> Value {
    json!({
        "workload": result.workload,
        "target": result.target,
        "description": result.description,
        "validity": result.validity,
        "rounds": result.rounds,
        "rounds_void": result.rounds_void,
        "metrics": result.estimates,
        "doubts": result.doubts,
        "steadiness": result.steadiness,
        "limit": result.limit,
    })
}

/// The stored sample behind a judged one; both lists are in stored order.
fn raw<'a>(judged: &JudgedSample, index: usize, samples: &'a [Sample]) -> Option<&'a Sample> {
    let same = |sample: &&Sample| {
        sample.slot == judged.slot
            && sample.round == judged.round
            && sample.workload == judged.workload
            && sample.target == judged.target
    };
    samples
        .get(index)
        .filter(same)
        .or_else(|| samples.iter().find(same))
}

fn sample(judged: &JudgedSample, raw: Option<&Sample>, all: &Judged) -> Value {
    let figure = |quantity| judged.figures.get(&Metric::all(quantity)).copied();
    let percentiles: Map<String, Value> = PERCENTILES
        .into_iter()
        .map(|quantity| (quantity.name().to_owned(), json!(figure(quantity))))
        .collect();
    // What a mix or a flush adds: `read.p99`, `flush.p50`.
    let by_direction: Map<String, Value> = judged
        .figures
        .iter()
        .filter(|(metric, _)| metric.direction != Direction::All)
        .map(|(metric, value)| (metric.to_string(), json!(value)))
        .collect();
    json!({
        "workload": judged.workload,
        "target": judged.target,
        "round": judged.round,
        "slot": judged.slot,
        "started": raw.map(|sample| sample.started),
        "outcome": raw.map(|sample| &sample.outcome),
        "tool": raw.map(|sample| &sample.tool),
        "validity": judged.validity,
        "iops": figure(Quantity::Iops),
        "throughput": figure(Quantity::Throughput),
        "mean": figure(Quantity::Mean),
        "max": figure(Quantity::Max),
        "percentiles": percentiles,
        "by_direction": by_direction,
        "interval": interval(judged, all),
        "doubts": judged.doubts,
    })
}

/// The interval of the sample's workload over rounds, by metric; empty with a single round.
fn interval(judged: &JudgedSample, all: &Judged) -> Map<String, Value> {
    let result = all
        .results
        .iter()
        .find(|result| result.workload == judged.workload && result.target == judged.target);
    let estimates = result.into_iter().flat_map(|result| &result.estimates);
    estimates
        .filter(|(metric, _)| metric.direction == Direction::All)
        .filter_map(|(metric, estimate)| Some((metric.to_string(), json!(estimate.interval?))))
        .collect()
}

/// Each doubt once, with the evidence of the first sample that carries it.
fn distinct(judged: &Judged) -> Vec<&Doubt> {
    let mut seen: Vec<&Doubt> = Vec::new();
    for doubt in judged.samples.iter().flat_map(|sample| &sample.doubts) {
        if !seen.iter().any(|known| known.code == doubt.code) {
            seen.push(doubt);
        }
    }
    seen
}
