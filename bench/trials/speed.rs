//! How long judging takes.

use crate::noise;
use crate::tables::{measured, rule};
use assay_judge::trial::{Rule, decide, judge};
use assay_model::advice::Guard;
use assay_model::criterion::{Metric, Quantity};
use assay_model::trial::PairOutcome;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use std::hint::black_box;
use std::time::Instant;

const REPEAT: u32 = 10;

fn milliseconds(work: impl Fn()) -> f64 {
    let best = (0..REPEAT).map(|_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64() * 1e3
    });
    best.fold(f64::INFINITY, f64::min)
}

/// The best of ten, at 60 pairs of recorded noise.
pub fn report() -> String {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let effects = noise::direct().pairs(&mut random, 60, 0.0);
    let plain = measured(&effects);
    let guard = Guard {
        metric: Metric::all(Quantity::P99),
        margin: 0.1,
    };
    let guarded: Vec<PairOutcome> = effects
        .iter()
        .map(|effect| PairOutcome::Measured {
            effect: *effect,
            guards: vec![*effect, -effect],
        })
        .collect();
    let two = Rule {
        guards: vec![guard; 2],
        ..rule(1)
    };
    let verdict = milliseconds(|| {
        black_box(decide(&rule(1), &plain));
    });
    let all = milliseconds(|| drop(black_box(judge(&rule(1), &plain))));
    let most = milliseconds(|| drop(black_box(judge(&two, &guarded))));
    format!(
        "60 pairs x 9,999 flips: the verdict (4 tests, 8 looks each) {verdict:.1} ms; with all \
         intervals {all:.1} ms; with two guardrails {most:.1} ms"
    )
}
