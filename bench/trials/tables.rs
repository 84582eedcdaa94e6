//! The tables.

use crate::noise::{self, Noise};
use crate::parallel::repeat;
use assay_judge::trial::{Design, Rule, decide};
use assay_model::trial::{MAX_PAIRS, PairOutcome, Verdict};
use std::fmt::Write as _;

pub fn rule(seed: u64) -> Rule {
    Rule {
        margin: 0.03,
        guards: Vec::new(),
        max_pairs: MAX_PAIRS,
        alpha: 0.05,
        seed,
        safety_broken: None,
        unproved: None,
        design: Design::Interleaved,
        aa: false,
    }
}

pub fn measured(effects: &[f64]) -> Vec<PairOutcome> {
    let pair = |effect: &f64| PairOutcome::Measured {
        effect: *effect,
        guards: Vec::new(),
    };
    effects.iter().map(pair).collect()
}

pub fn noises() -> [(&'static str, Noise); 5] {
    [
        ("cv 3 %", Noise::Even(0.03)),
        ("cv 15 %", Noise::Even(0.15)),
        ("drift and outliers", Noise::DriftAndOutliers),
        ("recorded, direct", noise::direct()),
        ("recorded, fsync", noise::fsync()),
    ]
}

pub fn share(ends: &[(Verdict, usize)], verdict: Verdict) -> f64 {
    let hits = ends.iter().filter(|end| end.0 == verdict).count();
    100.0 * hits as f64 / ends.len() as f64
}

pub fn mean(ends: &[(Verdict, usize)]) -> f64 {
    ends.iter().map(|end| end.1 as f64).sum::<f64>() / ends.len() as f64
}

/// Verdicts by true effect.
pub fn verdicts(n: usize) -> String {
    let mut out = String::from(
        "| noise | true gain | better | worse | no difference | undecided | mean pairs |\n|---|---|---|---|---|---|---|\n",
    );
    for (name, noise) in noises() {
        for gain in [0.0f64, 0.02, 0.05, 0.1, 0.3] {
            let ends = repeat(&format!("{name} {gain}"), n, |seed, random| {
                let effects = noise.pairs(random, MAX_PAIRS as usize, gain.ln_1p());
                decide(&rule(seed), &measured(&effects))
            });
            let _ = writeln!(
                out,
                "| {name} | {:.0} % | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} |",
                gain * 100.0,
                share(&ends, Verdict::Better),
                share(&ends, Verdict::Worse),
                share(&ends, Verdict::NoPracticalDifference),
                share(&ends, Verdict::Undecided),
                mean(&ends)
            );
        }
    }
    out
}
