//! Decides the verdict: defines which proof decides first. The proofs come from `sequential_test`, the sentences from
//! `verdict_sentence`.

use super::counted_pairs::CountedPairs;
use super::e_process::compute_wealth;
use super::forecast::{
    forecast_pairs_for_difference, forecast_pairs_for_effect, forecast_pairs_for_equality,
};
use super::interval::{self, IntervalEnds};
use super::look_schedule;
use super::one_sided_failures::{TrialFailures, is_stuck};
use super::robust_statistics::{compute_centre, compute_deviation, compute_robust_deviation};
use super::sequential_test::SequentialTest;
use super::trial_rule::TrialRule;
use super::verdict_sentence;
use super::work_total::{self, WorkTotal};
use assay_model::result::Interval;
use assay_model::trial::{GuardJudgement, Judgement, MAX_PAIRS, PairOutcome, TrialLook, Verdict};

/// Judges the pairs. `pairs` contains all pairs that were tried, in order. Computes every look of the rule again; the
/// first look with a decision decides.
#[must_use]
pub fn judge_trial_pairs(rule: &TrialRule, pairs: &[PairOutcome]) -> Judgement {
    let measured = CountedPairs::collect(rule, pairs);
    let over = is_over(rule, pairs);
    let test = build_test(rule, measured.count_pairs(), over);
    let failures = TrialFailures::count(pairs);
    let proofs = HypothesisProofs::find(rule, &measured, &test);
    let decision = proofs.find_decision(rule, &failures, test.looks.len());
    let ends = interval::compute_intervals(&test, &measured.effects);
    let last = ends.last().copied().unwrap_or_default();
    let stuck = is_stuck(pairs);
    let looks = test.looks.iter().zip(&ends);
    let mut judgement = Judgement {
        verdict: decision.verdict,
        done: decision.verdict != Verdict::Undecided || decision.false_alarm || over || stuck,
        reason: String::new(),
        pairs: measured.count_pairs() as u32,
        left_out: (pairs.len() - measured.count_pairs()) as u32,
        ratio: compute_centre(&measured.effects).map(f64::exp),
        interval: to_interval(last, rule),
        guards: judge_guards(rule, &measured, &test, &proofs),
        total: work_total::judge_total(
            &measured.effects,
            &measured.work,
            rule.margin,
            rule.by_latency,
            proofs.total_worse.is_some(),
        ),
        figures: Vec::new(),
        looks: looks
            .map(|(at, ends)| build_look(&measured, at.pairs, *ends))
            .collect(),
        pair_sd: compute_deviation(&measured.effects),
        forecast: forecast_pairs(rule, &measured),
        e_value: compute_wealth(&measured.effects).last().copied(),
    };
    judgement.reason = verdict_sentence::describe_reason(&verdict_sentence::VerdictCase {
        rule,
        judgement: &judgement,
        failures: &failures,
        decision,
        over,
        pairs,
    });
    judgement
}

/// Decides the verdict alone, which is much faster than [`judge_trial_pairs`]. Returns the verdict and the number of
/// pairs that it is based on.
#[must_use]
pub fn decide_verdict(rule: &TrialRule, pairs: &[PairOutcome]) -> (Verdict, usize) {
    let measured = CountedPairs::collect(rule, pairs);
    let test = build_test(rule, measured.count_pairs(), is_over(rule, pairs));
    let failures = TrialFailures::count(pairs);
    let decision = HypothesisProofs::find(rule, &measured, &test).find_decision(
        rule,
        &failures,
        test.looks.len(),
    );
    let at = decision.look.map(|look| test.looks[look].pairs);
    (decision.verdict, at.unwrap_or(measured.count_pairs()))
}

pub(super) fn is_over(rule: &TrialRule, pairs: &[PairOutcome]) -> bool {
    pairs.len() >= rule.max_pairs as usize
}

pub(super) fn build_test(rule: &TrialRule, measured: usize, over: bool) -> SequentialTest {
    let alpha = rule.usable_level();
    if rule.is_open_ended() {
        return SequentialTest::from_evidence(
            alpha,
            look_schedule::plan_open_ended_looks(alpha, measured),
        );
    }
    let planned = rule.max_pairs.min(MAX_PAIRS);
    let looks = match rule.looks.as_slice() {
        [] => look_schedule::list_reached_looks(planned, alpha, measured, over),
        settled => look_schedule::list_settled_looks(settled, alpha, measured, over),
    };
    SequentialTest::sign_flips(rule.seed, alpha, looks)
}

/// For each hypothesis, the first look at which it was proved.
struct HypothesisProofs {
    better: Option<usize>,
    worse: Option<usize>,
    /// First look at which "worse in total" was proved.
    total_worse: Option<usize>,
    /// Total work and total time, computed at each look.
    totals: Vec<Option<WorkTotal>>,
    /// The total of the deciding figure at each look, if the deciding figure is a latency.
    deciding: Vec<Option<WorkTotal>>,
    /// First look at which "better by less than the margin" was proved.
    below: Option<usize>,
    /// First look at which "worse by less than the margin" was proved.
    above: Option<usize>,
    /// Proofs about each guardrail.
    guards: Vec<GuardProof>,
}

struct GuardProof {
    worse: Option<usize>,
    within: Option<usize>,
}

impl HypothesisProofs {
    fn find(rule: &TrialRule, measured: &CountedPairs, test: &SequentialTest) -> Self {
        let margin = rule.margin.max(0.0).ln_1p();
        let proof = |x: &[f64], of: &dyn Fn(f64) -> f64| {
            let x: Vec<f64> = x.iter().map(|x| of(*x)).collect();
            test.find_rejection(&x)
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
            worse: test.find_shared_rejection(&d.iter().map(|d| -d).collect::<Vec<f64>>()),
            total_worse: test.find_sum_rejection(&work_total::compute_lost_time(&measured.work)),
            totals: (test.looks.iter())
                .map(|look| {
                    WorkTotal::sum(&measured.work[..look.pairs.min(measured.count_pairs())])
                })
                .collect(),
            deciding: (test.looks.iter())
                .map(|look| work_total::sum_effects(&d[..look.pairs.min(measured.count_pairs())]))
                .collect(),
            below: proof(d, &|d| margin - d),
            above: proof(d, &|d| margin + d),
            guards: guards.collect(),
        }
    }

    /// Finds the first look that decides.
    fn find_decision(
        &self,
        rule: &TrialRule,
        failures: &TrialFailures,
        looks: usize,
    ) -> TrialDecision {
        let decided = |verdict, why| TrialDecision {
            verdict,
            why,
            look: None,
            false_alarm: false,
        };
        if rule.safety_broken.is_some() {
            return decided(Verdict::Unsafe, VerdictGround::Safety);
        }
        if failures.convicted && !rule.aa {
            return decided(Verdict::Unsafe, VerdictGround::Failures);
        }
        let mut decision = decided(Verdict::Undecided, VerdictGround::Nothing);
        for look in 0..looks {
            let by = |proof: Option<usize>| proof.is_some_and(|at| at <= look);
            let broken = |guard: &GuardProof| by(guard.worse) && !by(guard.within);
            let guard = self.guards.iter().position(broken);
            let held = self.guards.iter().all(|guard| by(guard.within));
            let same = by(self.below) && by(self.above);
            let margin = rule.margin.max(0.0).ln_1p();
            let total = self.totals[look];
            // More work alone does not make a latency different.
            let agrees = total.is_some_and(|total| match rule.by_latency {
                true => total.is_not_worse(margin),
                false => total.is_within(margin),
            });
            let stands = total.is_some_and(|total| match (rule.by_latency, self.deciding[look]) {
                (true, Some(deciding)) => {
                    total.is_not_worse(margin) && deciding.withstands_slow_slot(margin)
                }
                (true, None) => false,
                (false, _) => total.withstands_slow_slot(margin),
            });
            let verdict = if by(self.worse) {
                let why = if same {
                    VerdictGround::Negligible
                } else {
                    VerdictGround::Metric
                };
                (Verdict::Worse, why)
            } else if let Some(guard) = guard {
                (Verdict::Worse, VerdictGround::Guard(guard))
            } else if by(self.total_worse) {
                (Verdict::Worse, VerdictGround::Total)
            } else if same && !agrees {
                decision.why = VerdictGround::TotalDiffers;
                continue;
            } else if same {
                let why = if by(self.better) {
                    VerdictGround::Negligible
                } else {
                    VerdictGround::Same
                };
                (Verdict::NoPracticalDifference, why)
            } else if !by(self.better) {
                continue;
            } else if !stands {
                decision.why = VerdictGround::TotalOpen;
                continue;
            } else if !held {
                decision.why = VerdictGround::GuardsOpen;
                continue;
            } else if failures.is_excessive() {
                decision.why = VerdictGround::UnexplainedFailures;
                continue;
            } else if rule.unproved.is_some() {
                decision.why = VerdictGround::Unproved;
                continue;
            } else {
                (Verdict::Better, VerdictGround::Metric)
            };
            if rule.aa && verdict.0 != Verdict::NoPracticalDifference {
                return TrialDecision {
                    verdict: Verdict::Undecided,
                    why: verdict.1,
                    look: Some(look),
                    false_alarm: true,
                };
            }
            return TrialDecision {
                look: Some(look),
                ..decided(verdict.0, verdict.1)
            };
        }
        decision
    }
}

/// A verdict with its reason and its look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TrialDecision {
    /// Verdict of the trial up to this look.
    pub verdict: Verdict,
    /// Reason for the verdict, for the sentence about it.
    pub why: VerdictGround,
    /// Index of the deciding look; `None` if no look decides.
    pub look: Option<usize>,
    /// Whether two equal sides (A/A trial) were found to differ.
    pub false_alarm: bool,
}

/// Reason for a decision, or reason why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VerdictGround {
    Nothing,
    Safety,
    Failures,
    Metric,
    Guard(usize),
    /// Worse in total, over all slots.
    Total,
    /// Better, but not if there were one more slow slot.
    TotalOpen,
    /// The typical pair is the same, but the total differs.
    TotalDiffers,
    Same,
    Negligible,
    GuardsOpen,
    UnexplainedFailures,
    Unproved,
}

fn judge_guards(
    rule: &TrialRule,
    measured: &CountedPairs,
    test: &SequentialTest,
    proofs: &HypothesisProofs,
) -> Vec<GuardJudgement> {
    let rows = rule.guards.iter().zip(&measured.guards).zip(&proofs.guards);
    rows.map(|((guard, g), proof)| GuardJudgement {
        metric: guard.metric,
        margin: guard.margin,
        worsening: compute_centre(g).unwrap_or_default().exp(),
        interval: match test.looks.is_empty() {
            true => None,
            false => to_interval(interval::compute_last_interval(test, g), rule),
        },
        held: proof.within.is_some(),
        broken: proof.worse.is_some() && proof.within.is_none(),
    })
    .collect()
}

pub(super) fn to_interval(ends: IntervalEnds, rule: &TrialRule) -> Option<Interval> {
    Some(Interval {
        low: ends.low?.exp(),
        high: ends.high?.exp(),
        confidence: 1.0 - 2.0 * rule.usable_level(),
    })
}

fn build_look(measured: &CountedPairs, at: usize, ends: IntervalEnds) -> TrialLook {
    TrialLook {
        pairs: at as u32,
        ratio: compute_centre(&measured.effects[..at])
            .unwrap_or_default()
            .exp(),
        low: ends.low.map(f64::exp),
        high: ends.high.map(f64::exp),
    }
}

/// Forecasts the remaining pairs until a verdict, from the effect and the noise so far; at least
/// three pairs are needed.
fn forecast_pairs(rule: &TrialRule, measured: &CountedPairs) -> Option<u32> {
    let effects = &measured.effects;
    if effects.len() < 3 {
        return None;
    }
    let noise = |x: &[f64]| compute_robust_deviation(x).max(1e-9);
    let effect = compute_centre(effects)?;
    let margin = rule.margin.max(0.0).ln_1p();
    let mut different = forecast_pairs_for_difference(noise(effects), effect, margin);
    if effect > 0.0 {
        for (guard, g) in rule.guards.iter().zip(&measured.guards) {
            let room = guard.margin.max(0.0).ln_1p() - compute_centre(g)?;
            different = different.max(forecast_pairs_for_effect(noise(g), room.max(0.0)));
        }
    }
    let equal = forecast_pairs_for_equality(noise(effects), effect, margin);
    Some(different.min(equal)).filter(|pairs| *pairs < u32::MAX)
}
