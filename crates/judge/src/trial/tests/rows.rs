//! Tests that all figures of a table follow one rule.

use super::pairs::{fio, slots, trial};
use crate::trial::judge_trial;
use assay_model::Trial;
use assay_model::trial::{FigureJudgement, Slot};

/// Returns pairs in which B is faster by some factor, with a skewed distribution as in real trials.
fn skewed(metric: &str, guards: &[&str]) -> (Trial, Vec<Slot>) {
    let ratios = [0.81, 0.8, 1.3, 0.82, 2.9, 0.79, 1.25, 0.8, 1.4, 0.83, 1.2];
    let levels = [1.0, 4.0, 0.3, 5.0, 0.2, 4.5, 0.4, 3.9, 0.3, 4.2, 0.5];
    let measured = (1..).zip(ratios).zip(levels);
    let all =
        measured.flat_map(|((pair, ratio), level)| slots(pair, fio(level), fio(level * ratio)));
    (trial(metric, guards), all.collect())
}

fn row(trial: &Trial, slots: &[Slot], metric: &str) -> FigureJudgement {
    let (_, judgement) = judge_trial(trial, slots);
    let metric = metric.parse().unwrap();
    let found = judgement.figures.iter().find(|row| row.metric == metric);
    *found.unwrap()
}

/// With a fixed block size, bytes and I/Os per second change by the same ratio, whichever of the two decides.
#[test]
fn bytes_and_operations_of_one_block_size_change_alike() {
    let (by_bytes, slots) = skewed("throughput", &["read.iops"]);
    let (by_iops, _) = skewed("iops", &["throughput"]);
    let one = row(&by_bytes, &slots, "throughput").ratio.unwrap();
    for (trial, metric) in [
        (&by_bytes, "iops"),
        (&by_bytes, "read.iops"),
        (&by_iops, "iops"),
        (&by_iops, "throughput"),
    ] {
        let other = row(trial, &slots, metric);
        assert!(
            (other.ratio.unwrap() / one - 1.0).abs() < 1e-9,
            "{metric}: {other:?}"
        );
        let interval = other.interval.unwrap();
        assert!(
            interval.low <= one && one <= interval.high,
            "{metric}: {other:?}"
        );
    }
}

/// The ratio of a guardrail equals the ratio of its row.
#[test]
fn a_guardrail_and_its_row_say_the_same() {
    let (trial, slots) = skewed("throughput", &["read.iops"]);
    let (_, judgement) = judge_trial(&trial, &slots);
    let ratio = row(&trial, &slots, "read.iops").ratio.unwrap();
    assert!((1.0 / judgement.guards[0].worsening / ratio - 1.0).abs() < 1e-9);
}

#[test]
fn a_figure_whose_whole_interval_is_bad_is_clearly_worse() {
    let trial = trial("read.p99", &[]);
    let all: Vec<Slot> = (1..=8)
        .flat_map(|pair| slots(pair, fio(1.0), fio(0.7 + f64::from(pair) / 1000.0)))
        .collect();
    assert!(row(&trial, &all, "iops").worse);
    assert!(!row(&trial, &all, "p99").worse);
    assert!(
        !row(&trial, &all[..6], "iops").worse,
        "three pairs have no interval"
    );
}
