//! A run as one JSON document. The JSON documents of trials, studies and stacks are in their own modules.

use assay_model::criterion::{Direction, Metric, Quantity};
use assay_model::doubt::Validity;
use assay_model::result::{
    CountedDoubt, CriterionResult, Estimate, Judged, JudgedSample, Limit, Steadiness,
    WorkloadResult,
};
use assay_model::sample::Outcome;
use assay_model::{Doubt, Run, SCHEMA_VERSION, Sample};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The percentiles that each sample contains.
const PERCENTILES: [Quantity; 6] = [
    Quantity::P50,
    Quantity::P90,
    Quantity::P95,
    Quantity::P99,
    Quantity::P999,
    Quantity::P9999,
];

/// A run and its results. Values are in base units: nanoseconds, bytes per second, I/Os per second. A missing figure is
/// null.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Document")]
pub struct RunDocument<'a> {
    schema: u32,
    /// The run as it is stored.
    #[schemars(with = "Run")]
    run: Value,
    /// Each workload on each target, in the order of the plan.
    results: Vec<ResultSeen<'a>>,
    /// Success criteria, each on each of its targets.
    criteria: &'a [CriterionResult],
    /// Each sample, in the order in which the samples were taken.
    samples: Vec<SampleSeen<'a>>,
    /// Doubts without duplicates, each with the evidence of the first sample that has the doubt.
    doubts: Vec<&'a Doubt>,
}

/// Results of a workload on a target, over all rounds.
#[derive(Serialize, JsonSchema)]
struct ResultSeen<'a> {
    workload: &'a str,
    target: &'a str,
    /// What the workload does, in one line.
    description: &'a str,
    /// The worst validity among the rounds that are not void; void if all rounds are void.
    validity: Validity,
    /// Number of rounds that are not void.
    rounds: u32,
    /// Number of void rounds, which the figures do not include.
    rounds_void: u32,
    /// Figures by name, each over all rounds.
    metrics: &'a BTreeMap<Metric, Estimate>,
    doubts: &'a [CountedDoubt],
    steadiness: &'a Steadiness,
    /// What limits the workload, with its evidence.
    limit: &'a Limit,
}

/// A sample with its figures.
#[derive(Serialize, JsonSchema)]
struct SampleSeen<'a> {
    workload: &'a str,
    target: &'a str,
    /// Number of the round, from 1.
    round: u32,
    /// Position in the order of the plan, from 0.
    slot: u32,
    started: Option<jiff::Timestamp>,
    outcome: Option<&'a Outcome>,
    /// Name and version of the load generator, as it reports them.
    tool: Option<&'a str>,
    validity: Validity,
    iops: Option<f64>,
    /// Throughput in bytes per second.
    throughput: Option<f64>,
    /// Mean latency in nanoseconds.
    mean: Option<f64>,
    /// Largest latency in nanoseconds.
    max: Option<f64>,
    /// Latency in nanoseconds by percentile.
    #[schemars(with = "BTreeMap<String, Option<f64>>")]
    percentiles: Map<String, Value>,
    /// Figures by direction, for a mix or flushes: `read.p99`, `flush.p50`.
    #[schemars(with = "BTreeMap<Metric, f64>")]
    by_direction: Map<String, Value>,
    /// Intervals of the sample's workload over the rounds, by figure; empty with one round.
    #[schemars(with = "BTreeMap<Metric, assay_model::result::Interval>")]
    interval: Map<String, Value>,
    doubts: &'a [Doubt],
}

/// Converts a run to JSON. Values are in base units: nanoseconds, bytes per second, I/Os per second. A missing figure
/// is `null`. Every sample has the keys `percentiles`, `interval` (the interval of its workload over the rounds) and
/// `doubts`.
#[must_use]
pub fn run_to_json(run: &Run, judged: &Judged, samples: &[Sample]) -> Value {
    json!(build_document(run, judged, samples))
}

/// Builds the document of a run.
pub(crate) fn build_document<'a>(
    run: &Run,
    judged: &'a Judged,
    samples: &'a [Sample],
) -> RunDocument<'a> {
    let all = judged.samples.iter().enumerate();
    RunDocument {
        schema: SCHEMA_VERSION,
        run: build_header(run),
        results: judged.results.iter().map(build_result).collect(),
        criteria: &judged.criteria,
        samples: all
            .map(|(i, one)| build_sample(one, find_stored_sample(one, i, samples), judged))
            .collect(),
        doubts: list_distinct_doubts(judged),
    }
}

fn build_header(run: &Run) -> Value {
    let mut value = serde_json::to_value(run).unwrap_or_default();
    if let Value::Object(map) = &mut value {
        // 0 means "not stored".
        if run.id.0 == 0 {
            map.insert("id".to_owned(), Value::Null);
        }
    }
    value
}

fn build_result(result: &WorkloadResult) -> ResultSeen<'_> {
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

/// Returns the stored sample that a judged sample belongs to. Both lists are in the order of the store.
fn find_stored_sample<'a>(
    judged: &JudgedSample,
    index: usize,
    samples: &'a [Sample],
) -> Option<&'a Sample> {
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

fn build_sample<'a>(
    judged: &'a JudgedSample,
    raw: Option<&'a Sample>,
    all: &Judged,
) -> SampleSeen<'a> {
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
        interval: collect_intervals(judged, all),
        doubts: &judged.doubts,
    }
}

/// Returns the intervals of the sample's workload over the rounds, by metric; empty with a single round.
fn collect_intervals(judged: &JudgedSample, all: &Judged) -> Map<String, Value> {
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

/// Lists the doubts without duplicates, each with the evidence of the first sample that has the doubt.
fn list_distinct_doubts(judged: &Judged) -> Vec<&Doubt> {
    let mut seen: Vec<&Doubt> = Vec::new();
    for doubt in judged.samples.iter().flat_map(|sample| &sample.doubts) {
        if !seen.iter().any(|known| known.code == doubt.code) {
            seen.push(doubt);
        }
    }
    seen
}
