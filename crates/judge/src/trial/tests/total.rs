//! Tests the comparison of total work and total time with the typical pair.

use super::{measured, rule};
use crate::trial::{TrialRule, decide_verdict, judge_trial_pairs};
use assay_model::trial::{PairOutcome, Verdict};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Returns pairs with this typical gain and a little noise. One in `slow` slots of B, the first of them early, takes
/// three times as long.
fn stalling(gain: f64, slow: usize, n: usize) -> Vec<PairOutcome> {
    (0..n)
        .map(|at| {
            let noise = 0.02 * (at as f64 * 2.4).sin();
            let stall = if at % slow == slow / 4 { 3.0 } else { 1.0 };
            let b = (1.0 + gain) * f64::exp(noise) / stall;
            PairOutcome::Measured {
                effect: b.ln(),
                guards: Vec::new(),
                work: [1.0, b],
            }
        })
        .collect()
}

#[test]
fn a_gain_with_rare_slow_slots_is_never_better() {
    let pairs = stalling(0.05, 10, 60);
    for tried in 1..=60 {
        let judgement = judge_trial_pairs(&rule(), &pairs[..tried]);
        assert!(
            matches!(judgement.verdict, Verdict::Undecided | Verdict::Worse),
            "{tried}: {}",
            judgement.reason
        );
    }
    let total = judge_trial_pairs(&rule(), &pairs).total.unwrap();
    assert!((total.work - 0.98).abs() < 0.01, "{total:?}");
    assert!((total.time - 1.143).abs() < 0.01, "{total:?}");
    assert_eq!((total.slow, total.within), ([0, 6], false));
}

#[test]
fn many_slow_slots_on_one_side_are_worse_in_total() {
    let judgement = judge_trial_pairs(&rule(), &stalling(0.05, 6, 60));
    assert_eq!(judgement.verdict, Verdict::Worse, "{}", judgement.reason);
    // The typical pair is better; only the total proves the loss.
    assert!(judgement.ratio.unwrap() > 1.0 && judgement.total.unwrap().worse);
}

#[test]
fn no_gain_with_rare_slow_slots_is_no_equality() {
    let judgement = judge_trial_pairs(&rule(), &stalling(0.0, 20, 60));
    assert_eq!(
        judgement.verdict,
        Verdict::Undecided,
        "{}",
        judgement.reason
    );
}

/// A small gain is undecided until it stays a gain with one more slow slot; a large gain is decided at once.
#[test]
fn a_small_gain_needs_pairs_in_which_nothing_was_slow() {
    assert_eq!(
        decide_verdict(&rule(), &measured(&[0.05; 60])),
        (Verdict::Better, 30)
    );
    assert_eq!(
        decide_verdict(&rule(), &measured(&[0.1; 60])),
        (Verdict::Better, 15)
    );
    assert_eq!(
        decide_verdict(&rule(), &measured(&[0.3; 60])),
        (Verdict::Better, 6)
    );
}

/// Slow slots with the same probability on both sides prove nothing, even with drift.
#[test]
fn slow_slots_on_both_sides_are_noise() {
    let mut worse = 0;
    const TRIALS: u64 = 300;
    for seed in 0..TRIALS {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let pairs: Vec<PairOutcome> = (0..60)
            .map(|at| {
                let mut slot = || {
                    let stall = if random.random::<f64>() < 0.05 {
                        5.0
                    } else {
                        1.0
                    };
                    let noise = 0.1 * (random.random::<f64>() - 0.5);
                    (noise - 0.01 * f64::from(at)).exp() / stall
                };
                let work = [slot(), slot()];
                PairOutcome::Measured {
                    effect: (work[1] / work[0]).ln(),
                    guards: Vec::new(),
                    work,
                }
            })
            .collect();
        worse +=
            u64::from(decide_verdict(&TrialRule { seed, ..rule() }, &pairs).0 == Verdict::Worse);
    }
    // 5 % plus two standard errors of 300 trials, for the typical pair and the total together.
    assert!(worse <= 22, "{worse} of {TRIALS}");
}

#[test]
fn what_is_no_work_is_left_out() {
    let mut pairs = stalling(0.3, 100, 7);
    if let PairOutcome::Measured { work, .. } = &mut pairs[2] {
        work[1] = 0.0;
    }
    let judgement = judge_trial_pairs(&rule(), &pairs);
    assert_eq!((judgement.pairs, judgement.left_out), (6, 1));
}

/// Returns pairs in which a percentile is better by `gain`, and in which a stall reduces the work to the fraction
/// `left` in one of `rare` slots of B.
fn percentile_with_stalls(gain: f64, rare: usize, left: f64, n: usize) -> Vec<PairOutcome> {
    (0..n)
        .map(|at| {
            let noise = f64::exp(0.01 * (at as f64 * 2.4).sin());
            let stall = if at % rare == rare / 4 { left } else { 1.0 };
            PairOutcome::Measured {
                effect: (1.0 + gain).ln() + noise.ln(),
                guards: Vec::new(),
                work: [1.0, (1.0 + gain) * noise * stall],
            }
        })
        .collect()
}

fn by_latency() -> TrialRule {
    TrialRule {
        by_latency: true,
        ..rule()
    }
}

/// The median is 7 % better, but stalls, invisible in the percentiles, reduce the work done by 4 to 18 %.
#[test]
fn a_percentile_is_not_better_when_less_is_done() {
    for (rare, left) in [(2, 0.7), (3, 0.4), (4, 0.25), (3, 0.5), (2, 0.55)] {
        let pairs = percentile_with_stalls(0.07, rare, left, 60);
        for tried in 1..=60 {
            let judgement = judge_trial_pairs(&by_latency(), &pairs[..tried]);
            assert_ne!(
                judgement.verdict,
                Verdict::Better,
                "{rare} {left} {tried}: {}",
                judgement.reason
            );
        }
        let total = judge_trial_pairs(&by_latency(), &pairs).total.unwrap();
        assert!(total.work < 0.96 && total.worse, "{total:?}");
    }
}

/// Stalls with a small cost do not prevent "better", and the sentence mentions them.
#[test]
fn stalls_on_one_side_are_in_the_sentence() {
    let judgement = judge_trial_pairs(&by_latency(), &percentile_with_stalls(0.3, 20, 0.6, 60));
    assert_eq!(judgement.verdict, Verdict::Better, "{}", judgement.reason);
    let shown = judgement.reason.contains("stalls in") && judgement.reason.contains("in total");
    assert!(shown, "{}", judgement.reason);
    let quiet = judge_trial_pairs(&by_latency(), &percentile_with_stalls(0.3, 2, 0.99, 60));
    assert!(!quiet.reason.contains("stalls"), "{}", quiet.reason);
}

/// A percentile that improves at equal work is better.
#[test]
fn a_percentile_needs_no_gain_of_work() {
    let pairs: Vec<PairOutcome> = (0..60)
        .map(|at| PairOutcome::Measured {
            effect: 0.3 + 0.01 * (f64::from(at) * 2.4).sin(),
            guards: Vec::new(),
            work: [1.0, 1.0],
        })
        .collect();
    assert_eq!(decide_verdict(&by_latency(), &pairs), (Verdict::Better, 6));
}
