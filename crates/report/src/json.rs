//! A run as one JSON document.

use assay_model::criterion::{Direction, Metric, Quantity};
use assay_model::doubt::Validity;
use assay_model::result::{
    CountedDoubt, CriterionResult, Estimate, Interval, Judged, JudgedSample, Limit, Steadiness,
    WorkloadResult,
};
use assay_model::sample::Outcome;
use assay_model::{Doubt, Run, SCHEMA_VERSION, Sample};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The percentiles of every sample.
const PERCENTILES: [Quantity; 6] = [
    Quantity::P50,
    Quantity::P90,
    Quantity::P95,
    Quantity::P99,
    Quantity::P999,
    Quantity::P9999,
];

/// A run and what it means. Values are in base units: nanoseconds, bytes per second, I/Os per second;
/// a figure that does not exist is null.
#[derive(Serialize, JsonSchema)]
pub struct Document<'a> {
    schema: u32,
    /// The run as it is stored.
    #[schemars(with = "Run")]
    run: Value,
    /// Each workload on each target, in the order of the plan.
    results: Vec<ResultSeen<'a>>,
    /// What was declared as success, on each target.
    criteria: &'a [CriterionResult],
    /// Each sample, in the order in which they were taken.
    samples: Vec<SampleSeen<'a>>,
    /// Each doubt once, with the evidence of the first sample that carries it.
    doubts: Vec<&'a Doubt>,
}

/// A workload on a target, over all rounds.
#[derive(Serialize, JsonSchema)]
struct ResultSeen<'a> {
    workload: &'a str,
    target: &'a str,
    /// What it does, in words.
    description: &'a str,
    /// The worst among the rounds that count; void when none counts.
    validity: Validity,
    /// Rounds that count.
    rounds: u32,
    /// Rounds that were left out.
    rounds_void: u32,
    /// Figures by name, each over all rounds.
    metrics: &'a BTreeMap<Metric, Estimate>,
    doubts: &'a [CountedDoubt],
    steadiness: &'a Steadiness,
    /// Why not more.
    limit: &'a Limit,
}

/// A sample and its figures.
#[derive(Serialize, JsonSchema)]
struct SampleSeen<'a> {
    workload: &'a str,
    target: &'a str,
    /// Of 1.
    round: u32,
    /// Place in the order of the plan, of 0.
    slot: u32,
    started: Option<jiff::Timestamp>,
    outcome: Option<&'a Outcome>,
    /// The load generator, as it says itself.
    tool: Option<&'a str>,
    validity: Validity,
    iops: Option<f64>,
    /// Bytes per second.
    throughput: Option<f64>,
    /// Mean latency in nanoseconds.
    mean: Option<f64>,
    /// Largest latency in nanoseconds.
    max: Option<f64>,
    /// Latency in nanoseconds by percentile.
    #[schemars(with = "BTreeMap<String, Option<f64>>")]
    percentiles: Map<String, Value>,
    /// What a mix or a flush adds: `read.p99`, `flush.p50`.
    #[schemars(with = "BTreeMap<Metric, f64>")]
    by_direction: Map<String, Value>,
    /// Intervals of its workload over the rounds, by figure; empty with one round.
    #[schemars(with = "BTreeMap<Metric, Interval>")]
    interval: Map<String, Value>,
    doubts: &'a [Doubt],
}

/// The whole run. Values are in base units: nanoseconds, bytes per second, I/Os per second; a
/// figure that does not exist is `null`. Every sample has the keys `percentiles`, `interval` (the
/// interval of its workload over the rounds) and `doubts`.
#[must_use]
pub fn run(run: &Run, judged: &Judged, samples: &[Sample]) -> Value {
    json!(document(run, judged, samples))
}

/// The same as it is written.
pub(crate) fn document<'a>(run: &Run, judged: &'a Judged, samples: &'a [Sample]) -> Document<'a> {
    let all = judged.samples.iter().enumerate();
    Document {
        schema: SCHEMA_VERSION,
        run: header(run),
        results: judged.results.iter().map(result).collect(),
        criteria: &judged.criteria,
        samples: all
            .map(|(i, one)| sample(one, raw(one, i, samples), judged))
            .collect(),
        doubts: distinct(judged),
    }
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

fn result(result: &WorkloadResult) -> ResultSeen<'_> {
    ResultSeen {
        workload: &result.workload,
        target: &result.target,
        description: &result.description,
        validity: result.validity,
        rounds: result.rounds,
        rounds_void: result.rounds_void,
        metrics: &result.estimates,
        doubts: &result.doubts,
        steadiness: &result.steadiness,
        limit: &result.limit,
    }
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

fn sample<'a>(judged: &'a JudgedSample, raw: Option<&'a Sample>, all: &Judged) -> SampleSeen<'a> {
    let figure = |quantity| judged.figures.get(&Metric::all(quantity)).copied();
    let percentiles: Map<String, Value> = PERCENTILES
        .into_iter()
        .map(|quantity| (quantity.name().to_owned(), json!(figure(quantity))))
        .collect();
    let by_direction: Map<String, Value> = judged
        .figures
        .iter()
        .filter(|(metric, _)| metric.direction != Direction::All)
        .map(|(metric, value)| (metric.to_string(), json!(value)))
        .collect();
    SampleSeen {
        workload: &judged.workload,
        target: &judged.target,
        round: judged.round,
        slot: judged.slot,
        started: raw.map(|sample| sample.started),
        outcome: raw.map(|sample| &sample.outcome),
        tool: raw.map(|sample| sample.tool.as_str()),
        validity: judged.validity,
        iops: figure(Quantity::Iops),
        throughput: figure(Quantity::Throughput),
        mean: figure(Quantity::Mean),
        max: figure(Quantity::Max),
        percentiles,
        by_direction,
        interval: interval(judged, all),
        doubts: &judged.doubts,
    }
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
