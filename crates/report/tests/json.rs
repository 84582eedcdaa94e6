//! Tests the JSON document: its structure, and the doubts and intervals of every sample.

mod common;

use assay_report::json;
use serde_json::Value;

#[test]
fn every_sample_has_percentiles_interval_and_doubts() {
    let case = common::matrix();
    let document = json::run_to_json(&case.run, &case.judged, &case.samples);
    let samples = document["samples"].as_array().unwrap();
    assert_eq!(samples.len(), 240);
    for sample in samples {
        assert!(
            sample["percentiles"]["p99.9"].is_number() || sample["percentiles"]["p99.9"].is_null()
        );
        assert!(sample["interval"].is_object(), "{sample}");
        assert!(sample["doubts"].is_array());
        assert_eq!(sample["outcome"]["state"], "completed");
    }
    let doubts = document["doubts"].as_array().unwrap();
    let codes: Vec<&Value> = doubts.iter().map(|doubt| &doubt["code"]).collect();
    assert_eq!(codes.len(), 2, "each once: {codes:?}");
    assert!(
        doubts
            .iter()
            .all(|doubt| doubt["evidence"].is_string() && doubt["remedy"].is_string())
    );
}

#[test]
fn shape() {
    let mut case = common::quick();
    let keep = |workload: &str| workload == "randread-4k-qd16";
    case.judged.results.retain(|result| keep(&result.workload));
    let first = case
        .judged
        .samples
        .iter()
        .position(|sample| keep(&sample.workload))
        .unwrap();
    case.judged.samples = vec![case.judged.samples[first].clone()];
    case.samples = vec![case.samples[first].clone()];
    case.run.plan.order.clear();
    case.run.plan.workloads.clear();
    insta::assert_json_snapshot!(json::run_to_json(&case.run, &case.judged, &case.samples));
}

#[test]
fn figures_that_are_no_numbers_are_null() {
    let mut case = common::quick();
    for sample in &mut case.judged.samples {
        sample
            .figures
            .values_mut()
            .for_each(|value| *value = f64::NAN);
    }
    let document = json::run_to_json(&case.run, &case.judged, &case.samples);
    assert!(document["samples"][0]["iops"].is_null());
    let text = document.to_string();
    assert!(serde_json::from_str::<Value>(&text).is_ok());
}

#[test]
fn an_unstored_run_has_no_id() {
    let mut case = common::quick();
    case.run.id.0 = 0;
    assert!(json::run_to_json(&case.run, &case.judged, &[])["run"]["id"].is_null());
}
