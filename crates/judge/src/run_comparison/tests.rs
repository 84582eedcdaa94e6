use super::*;
use crate::tests::{fio, rounds};
use assay_model::FactKind;

fn row<'a>(comparison: &'a RunComparison, metric: &str) -> &'a ComparisonRow {
    let metric: Metric = metric.parse().unwrap();
    comparison
        .rows
        .iter()
        .find(|row| row.metric == metric)
        .unwrap()
}

const NOISE: [f64; 5] = [1.0, 1.03, 0.97, 1.01, 0.99];

fn faster(by: f64) -> RunComparison {
    let (a, a_samples) = rounds("clean-read", &NOISE);
    let (mut b, b_samples) = rounds("clean-read", &NOISE.map(|factor| factor * by));
    b.uid = "b".to_owned();
    compare_runs((&a, &a_samples), (&b, &b_samples))
}

#[test]
fn a_planted_effect_is_found_with_its_size() {
    let comparison = faster(1.5);
    let iops = row(&comparison, "iops");
    assert!((iops.ratio - 1.5).abs() < 1e-9);
    let interval = iops.interval.unwrap();
    assert!(interval.low > 1.4 && interval.high < 1.6, "{interval:?}");
    assert_eq!(iops.verdict, Change::Better);
    assert_eq!(row(&faster(0.5), "iops").verdict, Change::Worse);
}

#[test]
fn equal_runs_are_unclear_and_latency_has_the_other_sign() {
    let comparison = faster(1.0);
    assert_eq!(row(&comparison, "iops").verdict, Change::Unclear);
    assert_eq!(row(&comparison, "p99").verdict, Change::Unclear);
    let slower = Interval {
        low: 1.1,
        high: 1.2,
        confidence: 0.95,
    };
    assert_eq!(classify_change(Quantity::P99, Some(slower)), Change::Worse);
    assert_eq!(
        classify_change(Quantity::Iops, Some(slower)),
        Change::Better
    );
    assert_eq!(classify_change(Quantity::Iops, None), Change::Unclear);
}

#[test]
fn one_round_gives_a_ratio_and_no_verdict() {
    let (a, a_samples) = rounds("clean-read", &[1.0]);
    let (b, b_samples) = rounds("clean-read", &[9.0]);
    let comparison = compare_runs((&a, &a_samples), (&b, &b_samples));
    let iops = row(&comparison, "iops");
    assert!((iops.ratio - 9.0).abs() < 1e-9);
    assert_eq!((iops.interval, iops.verdict), (None, Change::Unclear));
}

#[test]
fn environment_differences_leave_out_what_always_changes() {
    let (mut a, _) = rounds("clean-read", &[1.0]);
    let mut b = a.clone();
    for (run, scheduler, free) in [(&mut a, "none", 1u64), (&mut b, "bfq", 2)] {
        run.facts
            .known("disk.vda.scheduler", scheduler, FactKind::Runtime, "t");
        run.facts
            .known("memory.available", free, FactKind::Runtime, "t");
        run.facts
            .known("kernel.release", "6.18", FactKind::Runtime, "t");
    }
    b.facts
        .unknown("disk.vda.write_cache", "denied", FactKind::Runtime, "t");
    let differences = compare_runs((&a, &[]), (&b, &[])).environment;
    let keys: Vec<&str> = differences.iter().map(|d| d.key.as_str()).collect();
    assert_eq!(keys, ["disk.vda.scheduler", "disk.vda.write_cache"]);
    assert_eq!(differences[1].a, None);
    assert_eq!(differences[1].b, Some("unknown (denied)".into()));
}

#[test]
fn cautions_name_what_is_not_the_same() {
    let (a, a_samples) = rounds("clean-read", &[1.0]);
    let (mut b, mut b_samples) = rounds("clean-read", &[1.0]);
    b.uid = "b".to_owned();
    b.plan.name = "other".to_owned();
    b.targets[0].size = Bytes(77);
    fio(&mut b).queue_depth = 99;
    b_samples[0].tool = "fio-3.41".to_owned();
    let cautions = compare_runs((&a, &a_samples), (&b, &b_samples))
        .cautions
        .join("\n");
    for words in [
        "different times",
        "plan: imported in the first, other",
        "fio-3.33 in the first, fio-3.41",
        "77 B",
        "queue depth 99",
    ] {
        assert!(cautions.contains(words), "{words} not in {cautions}");
    }
    let same = compare_runs((&a, &a_samples), (&a, &a_samples)).cautions;
    assert_eq!(same, ["this is the same run twice"]);
}

#[test]
fn what_only_one_run_has_is_named() {
    let (a, a_samples) = rounds("clean-read", &[1.0]);
    let (b, b_samples) = rounds("fdatasync", &[1.0]);
    let comparison = compare_runs((&a, &a_samples), (&b, &b_samples));
    assert!(comparison.rows.is_empty());
    assert_eq!((comparison.only_a.len(), comparison.only_b.len()), (1, 1));
}

#[test]
fn single_targets_are_compared_whatever_their_names() {
    let (a, a_samples) = rounds("clean-read", &[1.0]);
    let (mut b, mut b_samples) = rounds("clean-read", &[1.0]);
    b.uid = "b".to_owned();
    b.targets[0].name = "/elsewhere".to_owned();
    b_samples[0].target = "/elsewhere".to_owned();
    let comparison = compare_runs((&a, &a_samples), (&b, &b_samples));
    assert!(!comparison.rows.is_empty());
    assert!(
        comparison
            .cautions
            .iter()
            .any(|c| c.contains("target: ") && c.contains("/elsewhere"))
    );
}

#[test]
fn other_names_are_matched_by_shape_with_a_factor_by_size() {
    let (a, a_samples) = rounds("clean-read", &NOISE);
    let (mut b, mut b_samples) = rounds("clean-read", &NOISE.map(|factor| factor * 80.0));
    b.uid = "b".to_owned();
    b.plan.workloads[0].name = "RND4K".to_owned();
    for sample in &mut b_samples {
        sample.workload = "RND4K".to_owned();
    }
    let comparison = compare_runs((&a, &a_samples), (&b, &b_samples));
    assert!(comparison.by_shape && comparison.only_a.is_empty());
    let [factor] = comparison.factors.as_slice() else {
        panic!("{:?}", comparison.factors);
    };
    assert!((factor.factor - 80.0).abs() < 1e-6 && factor.workloads == 1);
    assert!(row(&comparison, "iops").verdict == Change::Better);
    // Another block size is another workload.
    fio(&mut b).block_size = Bytes(77);
    let other = compare_runs((&a, &a_samples), (&b, &b_samples));
    assert!(other.rows.is_empty() && other.factors.is_empty() && !other.by_shape);
}
