//! What the literature and our own first simulations leave open: the printed interval, guardrails,
//! failures, campaigns, sides made anew.

use crate::noise::{Noise, normal};
use crate::parallel::repeat;
use crate::tables::{End, cells, halves, mean, measured, noises, pair, percent, rule, share};
use assay_judge::trial::{TrialRule, campaign_level, decide_verdict, e_process, judge_trial_pairs};
use assay_model::advice::Guard;
use assay_model::criterion::{Metric, Quantity};
use assay_model::trial::{MAX_PAIRS, PairOutcome, TrialLook, Verdict};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use std::fmt::Write as _;

/// How often the printed 90 % interval holds the truth: when the trial stops, and if it never
/// stopped.
pub fn coverage(n: usize) -> String {
    let mut out = String::from(
        "| noise | true gain, % | when it stops, % | median width then, points | after 60 pairs, % | median width then, points | centre within, % |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for (name, noise) in noises() {
        for gain in [0.0, 0.1] {
            let seen = repeat(&format!("coverage {name} {gain}"), n, |seed, random| {
                let truth = 1.0 + gain;
                let pairs = measured(&noise.work(random, MAX_PAIRS as usize, f64::ln(truth)));
                let rule = rule(seed);
                let (_, stop) = decide_verdict(&rule, &pairs);
                // What was printed at a look does not depend on what came after it.
                let looks = judge_trial_pairs(&rule, &pairs).looks;
                let of = |look: &TrialLook| {
                    let low = look.low.unwrap_or(0.0);
                    let high = look.high.unwrap_or(f64::INFINITY);
                    let holds = |value| low <= value && value <= high;
                    (holds(truth), high - low, holds(look.ratio))
                };
                let at = looks.iter().find(|look| look.pairs as usize == stop);
                (at.map(of), looks.last().map(of))
            });
            let seen: Vec<_> = seen
                .into_iter()
                .filter_map(|(at, end)| at.zip(end))
                .collect();
            let width = |mut widths: Vec<f64>| {
                widths.sort_by(f64::total_cmp);
                widths[widths.len() / 2] * 100.0
            };
            let _ = writeln!(
                out,
                "| {name} | {:.0} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} |",
                gain * 100.0,
                percent(seen.iter().map(|(stop, _)| stop.0)),
                width(seen.iter().map(|(stop, _)| stop.1).collect()),
                percent(seen.iter().map(|(_, end)| end.0)),
                width(seen.iter().map(|(_, end)| end.1).collect()),
                percent(seen.iter().map(|(stop, _)| stop.2)),
            );
        }
    }
    out
}

/// A gain of 10 % with guardrails of 10 %, all with a pair noise of 15 %.
pub fn guards(n: usize) -> String {
    const PAIR: f64 = 0.15;
    let mut out = String::from(
        "| guardrails | one of them gets worse by, % | better, % | worse, % | no difference, % | undecided, % | mean pairs |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for count in [1, 2, 4] {
        for worse in [0.0f64, 0.05, 0.1, 0.2] {
            let guard = Guard {
                metric: Metric::all(Quantity::P99),
                margin: 0.1,
            };
            let ends = repeat(&format!("guards {count} {worse}"), n, |seed, random| {
                let rule = TrialRule {
                    guards: vec![guard; count],
                    ..rule(seed)
                };
                let one = |random: &mut ChaCha8Rng| {
                    let effect = 0.1f64.ln_1p() + PAIR * normal(random);
                    let guards = (0..count).map(|at| {
                        let truth = if at == 0 { worse.ln_1p() } else { 0.0 };
                        truth + PAIR * normal(random)
                    });
                    pair(halves(effect), guards.collect())
                };
                let pairs: Vec<_> = (0..MAX_PAIRS).map(|_| one(random)).collect();
                decide_verdict(&rule, &pairs)
            });
            let _ = writeln!(out, "| {count} | {:.0} | {}", worse * 100.0, cells(&ends));
        }
    }
    out
}

/// A gain of 10 % on a load that fails: by itself, with the change, or both.
pub fn failures(n: usize) -> String {
    let mut out = String::from(
        "| slots that fail without the change, % | and because of it, % | better, % | unsafe, % | undecided, % | mean pairs tried |\n\
         |---|---|---|---|---|---|\n",
    );
    for (alone, change) in [
        (0.0, 0.02),
        (0.0, 0.05),
        (0.0, 0.2),
        (0.0, 0.5),
        (0.0, 1.0),
        (0.01, 0.0),
        (0.05, 0.0),
        (0.2, 0.0),
        (0.5, 0.0),
        (0.05, 0.2),
        (0.05, 1.0),
    ] {
        let ends = repeat(&format!("failures {alone} {change}"), n, |seed, random| {
            let effects = Noise::Even(0.05).work(random, MAX_PAIRS as usize, 0.1f64.ln_1p());
            let error = || "refused".to_owned();
            let pairs: Vec<PairOutcome> = measured(&effects)
                .into_iter()
                .map(|pair| {
                    let mut hit = |rate: f64| random.random::<f64>() < rate;
                    let (now, changed, through) = (hit(alone), hit(alone), hit(change));
                    match (now, changed || through) {
                        (false, false) => pair,
                        (false, true) => PairOutcome::FailedChanged { error: error() },
                        (true, _) => PairOutcome::Failed { error: error() },
                    }
                })
                .collect();
            one_by_one(&rule(seed), &pairs)
        });
        let _ = writeln!(
            out,
            "| {:.0} | {:.0} | {:.1} | {:.1} | {:.1} | {:.1} |",
            alone * 100.0,
            change * 100.0,
            share(&ends, Verdict::Better),
            share(&ends, Verdict::Unsafe),
            share(&ends, Verdict::Undecided),
            mean(&ends)
        );
    }
    out
}

/// The pairs as a trial gets them, until it stops; with the pairs tried.
fn one_by_one(rule: &TrialRule, pairs: &[PairOutcome]) -> End {
    const LOOKS: [usize; 8] = [6, 8, 11, 15, 21, 30, 42, 60];
    let mut measured = 0;
    for (tried, pair) in (1..).zip(pairs) {
        let counts = matches!(pair, PairOutcome::Measured { .. });
        measured += usize::from(counts);
        // Nothing can change in between.
        if counts && tried < pairs.len() && !LOOKS.contains(&measured) {
            continue;
        }
        let (verdict, _) = decide_verdict(rule, &pairs[..tried]);
        if verdict != Verdict::Undecided {
            return (verdict, tried);
        }
    }
    (Verdict::Undecided, pairs.len())
}

/// Campaigns of 40 pieces of advice of which ten gain 10 % and the others nothing, on drift and
/// outliers.
pub fn campaigns(n: usize) -> String {
    const PIECES: usize = 40;
    const GAINS: usize = 10;
    let mut out = String::from(
        "| each trial | campaigns with a false keep, % | gains kept, % | mean pairs of a gain | mean pairs of all 40 |\n\
         |---|---|---|---|---|\n",
    );
    let corrected = campaign_level::compute_level_per_trial(0.05, PIECES);
    type Way<'a> = &'a (dyn Fn(&TrialRule, &[[f64; 2]]) -> End + Sync);
    let ways: [(&str, Way); 4] = [
        ("sign flips, 5 %", &|rule, x| {
            decide_verdict(rule, &measured(x))
        }),
        ("e-process, 20", &|_, x| by_evidence(x, 0.05)),
        ("sign flips, 5 % / 40", &|rule, x| {
            let rule = TrialRule {
                alpha: corrected,
                ..rule.clone()
            };
            decide_verdict(&rule, &measured(x))
        }),
        ("e-process, 800", &|_, x| by_evidence(x, corrected)),
    ];
    for (name, judge) in ways {
        let campaigns = repeat("campaigns", n, |seed, random| {
            let piece = |at: usize| {
                let gain: f64 = if at < GAINS { 0.1 } else { 0.0 };
                let x = Noise::DriftAndOutliers.work(random, MAX_PAIRS as usize, gain.ln_1p());
                judge(&rule(seed * PIECES as u64 + at as u64), &x)
            };
            (0..PIECES).map(piece).collect::<Vec<End>>()
        });
        let kept = |ends: &[End]| ends.iter().any(|end| end.0 == Verdict::Better);
        let gains: Vec<End> = campaigns.iter().flat_map(|c| c[..GAINS].to_vec()).collect();
        let _ = writeln!(
            out,
            "| {name} | {:.1} | {:.1} | {:.1} | {:.0} |",
            percent(campaigns.iter().map(|ends| kept(&ends[GAINS..]))),
            share(&gains, Verdict::Better),
            mean(&gains),
            campaigns.iter().map(|ends| mean(ends)).sum::<f64>() * PIECES as f64 / n as f64,
        );
    }
    out
}

/// Gains of 10 % at the level of one of 40 pieces: sign flips beside the e-process.
pub fn strict(n: usize) -> String {
    let mut out =
        String::from("| noise | each trial | gains kept, % | mean pairs |\n|---|---|---|---|\n");
    let alpha = campaign_level::compute_level_per_trial(0.05, 40);
    for (name, noise) in noises() {
        for (way, flips) in [("sign flips, 5 % / 40", true), ("e-process, 800", false)] {
            let ends = repeat(&format!("strict {name}"), n, |seed, random| {
                let x = noise.work(random, MAX_PAIRS as usize, 0.1f64.ln_1p());
                let rule = TrialRule {
                    alpha,
                    ..rule(seed)
                };
                match flips {
                    true => decide_verdict(&rule, &measured(&x)),
                    false => by_evidence(&x, alpha),
                }
            });
            let kept = share(&ends, Verdict::Better);
            let _ = writeln!(out, "| {name} | {way} | {kept:.1} | {:.1} |", mean(&ends));
        }
    }
    out
}

/// Better when the fortune reaches 1/α; an answer otherwise at 60 pairs.
fn by_evidence(work: &[[f64; 2]], alpha: f64) -> End {
    let x: Vec<f64> = work.iter().map(|[a, b]| b - a).collect();
    let reached = e_process::compute_wealth(&x)
        .iter()
        .position(|e| *e >= 1.0 / alpha);
    match reached {
        Some(at) => (Verdict::Better, at + 1),
        None => (Verdict::Undecided, x.len()),
    }
}

fn from_effects(effects: &[f64]) -> Vec<PairOutcome> {
    let work: Vec<[f64; 2]> = effects.iter().map(|effect| halves(*effect)).collect();
    measured(&work)
}

/// Sides that have to be made anew: each making has luck of its own (5 %), which all its pairs
/// share. Pairs taken for independent find gains where there are none; the mean of each making does
/// not.
pub fn makings(n: usize) -> String {
    let mut out = String::from(
        "| created | judged by | true gain, % | better, % | worse, % | no difference, % | undecided, % | mean pairs |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for (makings, pairs) in [(4, 15), (6, 10), (12, 5)] {
        for name in ["pair", "creation"] {
            for gain in [0.0f64, 0.1] {
                let ends = repeat(&format!("units {makings} {gain}"), n, |seed, random| {
                    let mut x = Vec::new();
                    for _ in 0..makings {
                        let luck = 0.05 * normal(random);
                        let noise = Noise::Even(0.03).pairs(random, pairs, gain.ln_1p());
                        x.extend(noise.iter().map(|d| d + luck));
                    }
                    if name == "pair" {
                        return decide_verdict(&rule(seed), &from_effects(&x));
                    }
                    let mean = |making: &[f64]| making.iter().sum::<f64>() / pairs as f64;
                    let means: Vec<f64> = x.chunks(pairs).map(mean).collect();
                    let rule = TrialRule {
                        max_pairs: makings,
                        ..rule(seed)
                    };
                    let (verdict, judged) = decide_verdict(&rule, &from_effects(&means));
                    (verdict, judged * pairs)
                });
                let gain = gain * 100.0;
                let _ = writeln!(
                    out,
                    "| {makings} times | {name} | {gain:.0} | {}",
                    cells(&ends)
                );
            }
        }
    }
    out
}
