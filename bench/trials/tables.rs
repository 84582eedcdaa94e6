//! Verdicts by true effect, on every noise; what the other tables share.

use crate::noise::{self, Noise};
use crate::parallel::repeat;
use assay_judge::trial::{TrialRule, decide_verdict};
use assay_model::trial::{MAX_PAIRS, PairOutcome, Verdict};
use std::fmt::Write as _;

/// How a simulated trial ended, and the pairs it took.
pub type End = (Verdict, usize);

/// The rule of a trial with nothing special about it.
pub fn rule(seed: u64) -> TrialRule {
    TrialRule {
        margin: 0.03,
        guards: Vec::new(),
        max_pairs: MAX_PAIRS,
        alpha: 0.05,
        seed,
        safety_broken: None,
        looks: Vec::new(),
        unproved: None,
        aa: false,
        by_latency: false,
    }
}

/// Pairs without guardrails, from ln of what A and B measured.
pub fn measured(work: &[[f64; 2]]) -> Vec<PairOutcome> {
    work.iter()
        .map(|[a, b]| pair([*a, *b], Vec::new()))
        .collect()
}

/// A pair, from ln of what A and B measured and of how much each guardrail got worse.
pub fn pair([a, b]: [f64; 2], guards: Vec<f64>) -> PairOutcome {
    PairOutcome::Measured {
        effect: b - a,
        guards,
        work: [a.exp(), b.exp()],
    }
}

/// The same from the log ratio alone.
pub fn halves(effect: f64) -> [f64; 2] {
    [-effect / 2.0, effect / 2.0]
}

/// The noises, by name.
pub fn noises() -> [(&'static str, Noise); 5] {
    [
        ("cv 3 %", Noise::Even(0.03)),
        ("cv 15 %", Noise::Even(0.15)),
        ("drift and outliers", Noise::DriftAndOutliers),
        ("recorded, direct", noise::direct()),
        ("recorded, fsync", noise::fsync()),
    ]
}

/// Percent of all that ended so.
pub fn share(ends: &[End], verdict: Verdict) -> f64 {
    percent(ends.iter().map(|end| end.0 == verdict))
}

/// Percent of all that are true.
pub fn percent(all: impl ExactSizeIterator<Item = bool>) -> f64 {
    let n = all.len() as f64;
    100.0 * all.filter(|one| *one).count() as f64 / n
}

/// Mean pairs.
pub fn mean(ends: &[End]) -> f64 {
    ends.iter().map(|end| end.1 as f64).sum::<f64>() / ends.len() as f64
}

/// The four verdicts and the pairs, as cells.
pub fn cells(ends: &[End]) -> String {
    let [better, worse, same, open] = [
        Verdict::Better,
        Verdict::Worse,
        Verdict::NoPracticalDifference,
        Verdict::Undecided,
    ]
    .map(|verdict| share(ends, verdict));
    format!(
        "{better:.1} | {worse:.1} | {same:.1} | {open:.1} | {:.1} |",
        mean(ends)
    )
}

/// Trials of this noise and gain.
pub fn trials(name: &str, noise: &Noise, gain: f64, n: usize) -> Vec<End> {
    repeat(&format!("{name} {gain}"), n, |seed, random| {
        let work = noise.work(random, MAX_PAIRS as usize, gain.ln_1p());
        decide_verdict(&rule(seed), &measured(&work))
    })
}

/// Verdicts by true effect.
pub fn verdicts(n: usize) -> String {
    let mut out = String::from(
        "| noise | true gain, % | better, % | worse, % | no difference, % | undecided, % | mean pairs |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for (name, noise) in noises() {
        for gain in [0.0, 0.02, 0.05, 0.1, 0.3] {
            let ends = cells(&trials(name, &noise, gain, n));
            let _ = writeln!(out, "| {name} | {:.0} | {ends}", gain * 100.0);
        }
    }
    out
}

/// Gains around the margin: which of "better" and "no practical difference" is said.
pub fn negligible(n: usize) -> String {
    let mut out = String::from(
        "| noise | true gain, % | better, % | worse, % | no difference, % | undecided, % | mean pairs |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for (name, variation) in [("cv 1 %", 0.01), ("cv 3 %", 0.03)] {
        for gain in [0.01, 0.02, 0.03, 0.04] {
            let ends = cells(&trials(name, &Noise::Even(variation), gain, n));
            let _ = writeln!(out, "| {name} | {:.0} | {ends}", gain * 100.0);
        }
    }
    out
}
