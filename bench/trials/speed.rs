//! How long judging takes.

use crate::noise;
use crate::tables::{measured, pair, rule};
use assay_judge::trial::{TrialRule, decide_verdict, judge_trial_pairs};
use assay_model::advice::Guard;
use assay_model::criterion::{Metric, Quantity};
use assay_model::trial::PairOutcome;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use std::hint::black_box;

const REPEAT: u32 = 10;

/// Processor time of this thread so far, ns: what others do on the machine is not in it
/// (proc(5), `schedstat`).
fn processor_time() -> f64 {
    let read = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = read.split_whitespace().next();
    first.and_then(|ns| ns.parse().ok()).unwrap_or(f64::NAN)
}

fn milliseconds(work: impl Fn()) -> f64 {
    let start = processor_time();
    (0..REPEAT).for_each(|_| work());
    (processor_time() - start) / f64::from(REPEAT) / 1e6
}

/// The mean of ten, at 60 pairs of recorded noise.
pub fn report() -> String {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let effects = noise::direct().work(&mut random, 60, 0.0);
    let plain = measured(&effects);
    let guard = Guard {
        metric: Metric::all(Quantity::P99),
        margin: 0.1,
    };
    let guarded: Vec<PairOutcome> = effects
        .iter()
        .map(|[a, b]| pair([*a, *b], vec![b - a, a - b]))
        .collect();
    let two = TrialRule {
        guards: vec![guard; 2],
        ..rule(1)
    };
    let verdict = milliseconds(|| {
        black_box(decide_verdict(&rule(1), &plain));
    });
    let all = milliseconds(|| drop(black_box(judge_trial_pairs(&rule(1), &plain))));
    let most = milliseconds(|| drop(black_box(judge_trial_pairs(&two, &guarded))));
    format!(
        "processor time, 60 pairs x 9,999 flips: the verdict (4 tests, 8 looks each) {verdict:.1} ms; with all \
         intervals {all:.1} ms; with two guardrails {most:.1} ms"
    )
}
