//! The order of verdicts.

use super::centre::{centre, deviation, spread};
use super::evidence::fortunes;
use super::failures::{Failures, stuck};
use super::forecast::{pairs_for_difference, pairs_for_effect, pairs_for_equality};
use super::interval::{self, Ends};
use super::looks;
use super::measured::Measured;
use super::rule::Rule;
use super::test::Test;
use super::total::{self, Total};
use super::words;
use assay_model::result::Interval;
use assay_model::trial::{GuardJudgement, Judgement, Look, MAX_PAIRS, PairOutcome, Verdict};

/// What the pairs amount to. `pairs` are all that were tried, in order; every look that the rule
/// foresees is replayed, and the first one that decides, decides.
#[must_use]
pub fn judge(rule: &Rule, pairs: &[PairOutcome]) -> Judgement {
    let measured = Measured::of(rule, pairs);
    let over = over(rule, pairs);
    let test = test(rule, measured.pairs(), over);
    let failures = Failures::of(pairs);
    let proofs = Proofs::of(rule, &measured, &test);
    let decision = proofs.decision(rule, &failures, test.looks.len());
    let ends = interval::at_each_look(&test, &measured.effects);
    let last = ends.last().copied().unwrap_or_default();
    let stuck = stuck(pairs);
    let looks = test.looks.iter().zip(&ends);
    let mut judgement = Judgement {
        verdict: decision.verdict,
        done: decision.verdict != Verdict::Undecided || decision.false_alarm || over || stuck,
        reason: String::new(),
        pairs: measured.pairs() as u32,
        left_out: (pairs.len() - measured.pairs()) as u32,
        ratio: centre(&measured.effects).map(f64::exp),
        interval: interval(last, rule),
        guards: guards(rule, &measured, &test, &proofs),
        total: total::judgement(
            &measured.effects,
            &measured.work,
            rule.margin,
            rule.by_latency,
            proofs.total_worse.is_some(),
        ),
        figures: Vec::new(),
        looks: looks
            .map(|(at, ends)| look(&measured, at.pairs, *ends))
            .collect(),
        pair_sd: deviation(&measured.effects),
        forecast: forecast(rule, &measured),
        e_value: fortunes(&measured.effects).last().copied(),
    };
    judgement.reason = words::reason(&words::Case {
        rule,
        judgement: &judgement,
        failures: &failures,
        decision,
        over,
        pairs,
    });
    judgement
}

/// The verdict alone, many times cheaper than all that [`judge`] says, and the pairs it rests on.
#[must_use]
pub fn decide(rule: &Rule, pairs: &[PairOutcome]) -> (Verdict, usize) {
    let measured = Measured::of(rule, pairs);
    let test = test(rule, measured.pairs(), over(rule, pairs));
    let failures = Failures::of(pairs);
    let decision = Proofs::of(rule, &measured, &test).decision(rule, &failures, test.looks.len());
    let at = decision.look.map(|look| test.looks[look].pairs);
    (decision.verdict, at.unwrap_or(measured.pairs()))
}

pub(super) fn over(rule: &Rule, pairs: &[PairOutcome]) -> bool {
    pairs.len() >= rule.max_pairs as usize
}

pub(super) fn test(rule: &Rule, measured: usize, over: bool) -> Test {
    let alpha = rule.level();
    if rule.open_ended() {
        return Test::evidence(alpha, looks::open_ended(alpha, measured));
    }
    let planned = rule.max_pairs.min(MAX_PAIRS);
    let looks = match rule.looks.as_slice() {
        [] => looks::reached(planned, alpha, measured, over),
        settled => looks::settled(settled, alpha, measured, over),
    };
    Test::flips(rule.seed, alpha, looks)
}

/// By which look, if any, each of the hypotheses was proved.
struct Proofs {
    better: Option<usize>,
    worse: Option<usize>,
    /// Worse in total.
    total_worse: Option<usize>,
    /// The total at each look.
    totals: Vec<Option<Total>>,
    /// The same of what decides, where that is a latency.
    deciding: Vec<Option<Total>>,
    /// Less than the margin better.
    below: Option<usize>,
    /// Less than the margin worse.
    above: Option<usize>,
    /// Per guardrail.
    guards: Vec<GuardProof>,
}

struct GuardProof {
    worse: Option<usize>,
    within: Option<usize>,
}

impl Proofs {
    fn of(rule: &Rule, measured: &Measured, test: &Test) -> Self {
        let margin = rule.margin.max(0.0).ln_1p();
        let proof = |x: &[f64], of: &dyn Fn(f64) -> f64| {
            let x: Vec<f64> = x.iter().map(|x| of(*x)).collect();
            test.rejects(&x)
        };
        let d = &measured.effects;
        let guards = rule.guards.iter().zip(&measured.guards).map(|(guard, g)| {
            let margin = guard.margin.max(0.0).ln_1p();
            GuardProof {
                worse: proof(g, &|g| g),
                within: proof(g, &|g| margin - g),
            }
        });
        Self {
            better: proof(d, &|d| d),
            worse: test.shared_rejects(&d.iter().map(|d| -d).collect::<Vec<f64>>()),
            total_worse: test.whole_rejects(&total::lost_time(&measured.work)),
            totals: (test.looks.iter())
                .map(|look| Total::of(&measured.work[..look.pairs.min(measured.pairs())]))
                .collect(),
            deciding: (test.looks.iter())
                .map(|look| total::of_deciding(&d[..look.pairs.min(measured.pairs())]))
                .collect(),
            below: proof(d, &|d| margin - d),
            above: proof(d, &|d| margin + d),
            guards: guards.collect(),
        }
    }

    /// The first look that decides.
    fn decision(&self, rule: &Rule, failures: &Failures, looks: usize) -> Decision {
        let decided = |verdict, why| Decision {
            verdict,
            why,
            look: None,
            false_alarm: false,
        };
        if rule.safety_broken.is_some() {
            return decided(Verdict::Unsafe, Why::Safety);
        }
        if failures.convicted && !rule.aa {
            return decided(Verdict::Unsafe, Why::Failures);
        }
        let mut decision = decided(Verdict::Undecided, Why::Nothing);
        for look in 0..looks {
            let by = |proof: Option<usize>| proof.is_some_and(|at| at <= look);
            let broken = |guard: &GuardProof| by(guard.worse) && !by(guard.within);
            let guard = self.guards.iter().position(broken);
            let held = self.guards.iter().all(|guard| by(guard.within));
            let same = by(self.below) && by(self.above);
            let margin = rule.margin.max(0.0).ln_1p();
            let total = self.totals[look];
            // Better work is no reason to call a latency different.
            let agrees = total.is_some_and(|total| match rule.by_latency {
                true => total.is_not_worse(margin),
                false => total.within(margin),
            });
            let stands = total.is_some_and(|total| match (rule.by_latency, self.deciding[look]) {
                (true, Some(deciding)) => total.is_not_worse(margin) && deciding.stands(margin),
                (true, None) => false,
                (false, _) => total.stands(margin),
            });
            let verdict = if by(self.worse) {
                let why = if same { Why::Negligible } else { Why::Metric };
                (Verdict::Worse, why)
            } else if let Some(guard) = guard {
                (Verdict::Worse, Why::Guard(guard))
            } else if by(self.total_worse) {
                (Verdict::Worse, Why::Total)
            } else if same && !agrees {
                decision.why = Why::TotalDiffers;
                continue;
            } else if same {
                let why = if by(self.better) {
                    Why::Negligible
                } else {
                    Why::Same
                };
                (Verdict::NoPracticalDifference, why)
            } else if !by(self.better) {
                continue;
            } else if !stands {
                decision.why = Why::TotalOpen;
                continue;
            } else if !held {
                decision.why = Why::GuardsOpen;
                continue;
            } else if failures.excess() {
                decision.why = Why::UnexplainedFailures;
                continue;
            } else if rule.unproved.is_some() {
                decision.why = Why::Unproved;
                continue;
            } else {
                (Verdict::Better, Why::Metric)
            };
            if rule.aa && verdict.0 != Verdict::NoPracticalDifference {
                return Decision {
                    verdict: Verdict::Undecided,
                    why: verdict.1,
                    look: Some(look),
                    false_alarm: true,
                };
            }
            return Decision {
                look: Some(look),
                ..decided(verdict.0, verdict.1)
            };
        }
        decision
    }
}

/// What was decided, and on what grounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    /// The verdict.
    pub verdict: Verdict,
    /// The ground.
    pub why: Why,
    /// The look that decided, by its index.
    pub look: Option<usize>,
    /// Two equal sides were told apart.
    pub false_alarm: bool,
}

/// Grounds of a decision, or what stands in its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    Nothing,
    Safety,
    Failures,
    Metric,
    Guard(usize),
    /// Worse in total.
    Total,
    /// Better, but not when one slot more were slow.
    TotalOpen,
    /// The typical pair is the same, the total is not.
    TotalDiffers,
    Same,
    Negligible,
    GuardsOpen,
    UnexplainedFailures,
    Unproved,
}

fn guards(rule: &Rule, measured: &Measured, test: &Test, proofs: &Proofs) -> Vec<GuardJudgement> {
    let rows = rule.guards.iter().zip(&measured.guards).zip(&proofs.guards);
    rows.map(|((guard, g), proof)| GuardJudgement {
        metric: guard.metric,
        margin: guard.margin,
        worsening: centre(g).unwrap_or_default().exp(),
        interval: match test.looks.is_empty() {
            true => None,
            false => interval(interval::at_last_look(test, g), rule),
        },
        held: proof.within.is_some(),
        broken: proof.worse.is_some() && proof.within.is_none(),
    })
    .collect()
}

pub(super) fn interval(ends: Ends, rule: &Rule) -> Option<Interval> {
    Some(Interval {
        low: ends.low?.exp(),
        high: ends.high?.exp(),
        confidence: 1.0 - 2.0 * rule.level(),
    })
}

fn look(measured: &Measured, at: usize, ends: Ends) -> Look {
    Look {
        pairs: at as u32,
        ratio: centre(&measured.effects[..at]).unwrap_or_default().exp(),
        low: ends.low.map(f64::exp),
        high: ends.high.map(f64::exp),
    }
}

/// Pairs until an answer at the effect and noise seen so far; from three pairs on.
fn forecast(rule: &Rule, measured: &Measured) -> Option<u32> {
    let effects = &measured.effects;
    if effects.len() < 3 {
        return None;
    }
    let noise = |x: &[f64]| spread(x).max(1e-9);
    let effect = centre(effects)?;
    let margin = rule.margin.max(0.0).ln_1p();
    let mut different = pairs_for_difference(noise(effects), effect, margin);
    if effect > 0.0 {
        for (guard, g) in rule.guards.iter().zip(&measured.guards) {
            let room = guard.margin.max(0.0).ln_1p() - centre(g)?;
            different = different.max(pairs_for_effect(noise(g), room.max(0.0)));
        }
    }
    let equal = pairs_for_equality(noise(effects), effect, margin);
    Some(different.min(equal)).filter(|pairs| *pairs < u32::MAX)
}
