//! A proof: fresh pairs of one row against another, judged by `assay_judge::trial`. What is proved
//! next is decided in `session/`.

use crate::budget::Row;
use crate::seeds;
use crate::step::{PairOrder, Stage};
use assay_judge::trial::{
    TrialRule, compute_centre, decide_verdict, find_next_look, find_reason_to_give_up, forecast,
    judge_trial_pairs,
};
use assay_model::advice::Guard;
use assay_model::criterion::Metric;
use assay_model::trial::{Judgement, MAX_PAIRS, PairOutcome, Verdict};
use serde::{Deserialize, Serialize};

/// Alternations from which a candidate may be given up, and pairs.
const GIVE_UP_FROM: usize = 8;
const FEWEST: usize = 5;
/// Quantile of the normal distribution at 0.9: the upper end of an interval of about 80 %.
const UPPER: f64 = 1.28;
/// Pairs within which a proof should be able to decide; the last look but one.
pub(crate) const ENOUGH: u32 = 42;
/// Most alternations of a pair.
pub(crate) const MOST_ALTERNATIONS: u32 = 16;

/// A proof, going on or ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// Which one.
    pub stage: Stage,
    /// What is on in A.
    pub now: Row,
    /// What is on in B.
    pub changed: Row,
    /// Level of a false "better".
    pub alpha: f64,
    /// Seed of the coins and of the sign flips.
    pub seed: u64,
    /// Pairs at most, settled before the first.
    pub max_pairs: u32,
    /// All pairs are measured and then looked at, three quarters of them first: the centre is that of a
    /// settled number, and not of a lucky stop.
    pub to_the_end: bool,
    /// Alternations of a pair.
    pub alternations: u32,
    /// What was measured.
    pub pairs: Vec<PairOutcome>,
    /// The objective in A and B of each pair that counts.
    pub figures: Vec<[f64; 2]>,
    /// How it ended.
    pub end: Option<ProofEnd>,
}

/// How a proof ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "end")]
pub enum ProofEnd {
    /// Proved to be better.
    Better,
    /// Another verdict.
    Verdict {
        /// Worse, no practical difference or unsafe.
        verdict: Verdict,
    },
    /// A gain worth having is unlikely. Nothing is claimed.
    GivenUp,
    /// Better, but a guardrail looks worse by more than half its margin.
    GuardHarm {
        /// Which figure.
        metric: Metric,
    },
    /// All pairs were measured, or the time for it is over.
    Open,
    /// The load gives no figure.
    NoFigure {
        /// Why.
        error: String,
    },
}

/// What judges a proof, besides its own fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    pub margin: f64,
    pub guards: &'a [Guard],
    pub by_latency: bool,
    /// Standard deviation of one alternation, as known before the proof.
    pub noise: f64,
}

impl Proof {
    /// The next pair.
    pub(crate) fn order(&self) -> PairOrder {
        let number = self.pairs.len() as u32 + 1;
        PairOrder {
            stage: self.stage,
            number,
            now: self.now.clone(),
            changed: self.changed.clone(),
            first: seeds::first_side(self.seed, number),
            alternations: self.alternations,
        }
    }

    fn rule(&self, terms: Terms<'_>, guards: &[Guard], alpha: f64) -> TrialRule {
        TrialRule {
            margin: terms.margin,
            guards: guards.to_vec(),
            max_pairs: self.max_pairs.min(MAX_PAIRS),
            alpha,
            seed: self.seed,
            safety_broken: None,
            unproved: None,
            aa: false,
            by_latency: terms.by_latency,
            looks: match self.to_the_end {
                true => {
                    let last = self.max_pairs.min(MAX_PAIRS);
                    vec![last * 3 / 4, last]
                }
                false => Vec::new(),
            },
        }
    }

    /// ln of the improvement of each pair that counts.
    pub(crate) fn effects(&self) -> Vec<f64> {
        let effect = |pair: &PairOutcome| match pair {
            PairOutcome::Measured { effect, .. } => Some(*effect),
            _ => None,
        };
        self.pairs.iter().filter_map(effect).collect()
    }

    /// ln of the worsening of a guardrail, per pair that counts.
    pub(crate) fn worsening(&self, guard: usize) -> Vec<f64> {
        let of = |pair: &PairOutcome| match pair {
            PairOutcome::Measured { guards, .. } => guards.get(guard).copied(),
            _ => None,
        };
        self.pairs.iter().filter_map(of).collect()
    }

    /// Centre of ln of the improvement; 0 without a pair.
    pub(crate) fn effect(&self) -> f64 {
        compute_centre(&self.effects()).unwrap_or_default()
    }

    /// Standard deviation of one alternation's log ratio, not moved by a wild one.
    pub(crate) fn noise(&self) -> f64 {
        forecast::estimate_noise(&self.effects()) * f64::from(self.alternations.max(1)).sqrt()
    }

    /// Looks at a proof of one candidate after its last pair; None while it goes on. Guardrails are
    /// not proved here: they are judged once, on the whole.
    pub(crate) fn examine_part(&self, terms: Terms<'_>) -> Option<ProofEnd> {
        if let Some(error) = find_reason_to_give_up(&self.pairs) {
            return Some(ProofEnd::NoFigure { error });
        }
        let n = self.effects().len();
        let over = self.pairs.len() >= self.max_pairs as usize;
        let failed = matches!(self.pairs.last(), Some(PairOutcome::FailedChanged { .. }));
        if !over && !failed && !is_look(self.max_pairs, n) {
            return self.is_hopeless(terms).then_some(ProofEnd::GivenUp);
        }
        let (verdict, _) =
            decide_verdict(&self.rule(terms, &[], self.alpha), &self.without_guards());
        match verdict {
            Verdict::Better => Some(match self.harmed_guard(terms) {
                Some(metric) => ProofEnd::GuardHarm { metric },
                None => ProofEnd::Better,
            }),
            Verdict::Undecided if over => Some(ProofEnd::Open),
            Verdict::Undecided => self.is_hopeless(terms).then_some(ProofEnd::GivenUp),
            verdict => Some(ProofEnd::Verdict { verdict }),
        }
    }

    /// Whether a gain worth having is unlikely. Asked after every pair: giving up accepts nothing.
    fn is_hopeless(&self, terms: Terms<'_>) -> bool {
        let effects = self.effects();
        let n = effects.len();
        let alternations = n * self.alternations as usize;
        // A handful of pairs may look quieter than they are.
        let before = terms.noise / f64::from(self.alternations.max(1)).sqrt();
        let error = forecast::estimate_noise(&effects).max(before) / (n.max(1) as f64).sqrt();
        let upper = self.effect() + UPPER * error;
        n >= FEWEST && alternations >= GIVE_UP_FROM && upper < terms.margin.ln_1p()
    }

    /// Looks at the proof of the whole, after its last pair; None while it goes on.
    pub(crate) fn examine_whole(&self, terms: Terms<'_>) -> Option<ProofEnd> {
        if let Some(error) = find_reason_to_give_up(&self.pairs) {
            return Some(ProofEnd::NoFigure { error });
        }
        let failed = matches!(self.pairs.last(), Some(PairOutcome::FailedChanged { .. }));
        let over = self.pairs.len() >= self.max_pairs as usize;
        if !over && !failed {
            return None;
        }
        match decide_verdict(&self.rule(terms, terms.guards, self.alpha), &self.pairs).0 {
            Verdict::Better => Some(ProofEnd::Better),
            Verdict::Undecided => over.then_some(ProofEnd::Open),
            verdict => Some(ProofEnd::Verdict { verdict }),
        }
    }

    /// All that the pairs amount to, with an interval of 90 %.
    pub(crate) fn judgement(&self, terms: Terms<'_>) -> Judgement {
        judge_trial_pairs(
            &self.rule(terms, terms.guards, assay_judge::trial::ALPHA),
            &self.pairs,
        )
    }

    fn without_guards(&self) -> Vec<PairOutcome> {
        let strip = |pair: &PairOutcome| match pair {
            PairOutcome::Measured { effect, work, .. } => PairOutcome::Measured {
                effect: *effect,
                guards: Vec::new(),
                work: *work,
            },
            other => other.clone(),
        };
        self.pairs.iter().map(strip).collect()
    }

    /// The guardrail that looks worst, if by more than half its margin.
    pub(crate) fn harmed_guard(&self, terms: Terms<'_>) -> Option<Metric> {
        let harm = |(at, guard): (usize, &Guard)| {
            let worse = compute_centre(&self.worsening(at))?;
            (worse > guard.margin.max(0.0).ln_1p() / 2.0).then_some((worse, guard.metric))
        };
        let harms = terms.guards.iter().enumerate().filter_map(harm);
        harms
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, metric)| metric)
    }
}

/// Whether the judge looks after so many pairs.
fn is_look(planned: u32, measured: usize) -> bool {
    let measured = measured as u32;
    measured > 0 && find_next_look(planned, measured - 1) == Some(measured)
}

/// Alternations that make pairs of this noise tell an effect (log ratio) within [`ENOUGH`] pairs.
pub(crate) fn alternations_for(noise: f64, effect: f64) -> u32 {
    let effect = effect.max(0.01);
    let told = |alternations: &u32| {
        let noise = noise / f64::from(*alternations).sqrt();
        // Below zero: how long a gain takes to stand one slow slot more is another matter.
        forecast::forecast_pairs_for_difference(noise, -effect, 0.0) <= ENOUGH
    };
    let choices = [1, 2, 4, 8, MOST_ALTERNATIONS];
    choices.into_iter().find(told).unwrap_or(MOST_ALTERNATIONS)
}
