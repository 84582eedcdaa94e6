//! A proof: new pairs that compare two rows of settings, judged by `assay_judge::trial`. `session/` decides which proof
//! comes next.

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

/// Minimum number of pairs before a proof may give a candidate up.
const FEWEST: usize = 5;
/// Number of alternations up to which [`UPPER_EARLY`] is used instead of [`UPPER`], because the measured spread is
/// still too uncertain.
const GIVE_UP_SURELY: usize = 16;
/// Quantile of the normal distribution at 0.975, used for the upper bound of the gain while there are few alternations.
const UPPER_EARLY: f64 = 1.96;
/// Quantile of the normal distribution at 0.9, used for the upper bound of the gain (upper end of an 80 % interval).
const UPPER: f64 = 1.28;
/// Quantile of the normal distribution at 0.95, used for the predictive power of a proof.
const DOOMED: f64 = 1.645;
/// Number of pairs within which a proof should decide. This is the number of pairs at the second-last look.
pub(crate) const ENOUGH: u32 = 42;
/// Maximum number of alternations of a pair.
pub(crate) const MOST_ALTERNATIONS: u32 = 16;

/// A proof, which is running or has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// Stage of the search to which the proof belongs.
    pub stage: Stage,
    /// Candidates that are in effect on side A.
    pub now: Row,
    /// Candidates that are in effect on side B.
    pub changed: Row,
    /// Accepted probability of a false "better", 0 to 1.
    pub alpha: f64,
    /// Seed of the order of the sides and of the sign flips.
    pub seed: u64,
    /// Maximum number of pairs, fixed before the first pair.
    pub max_pairs: u32,
    /// Whether all pairs are measured, with looks only at three quarters and at the end. The estimate then comes from a
    /// fixed number of pairs, and not from a stop at a favourable moment.
    pub to_the_end: bool,
    /// Number of alternations of each pair.
    pub alternations: u32,
    /// Minimum number of alternations before the candidate may be given up. This number is larger if the budget
    /// permits.
    #[serde(default = "least_patience")]
    pub patience: u32,
    /// Outcomes of the measured pairs, in order.
    pub pairs: Vec<PairOutcome>,
    /// Value of the objective in A and B in base units, for each pair that counts.
    pub figures: Vec<[f64; 2]>,
    /// How the proof ended; `None` while it runs.
    pub end: Option<ProofEnd>,
}

/// Returns the smallest value of [`Proof::patience`]. This value is used for short budgets and for sessions of earlier
/// versions.
pub(crate) fn least_patience() -> u32 {
    8
}

/// How a proof ended, and what it showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "end")]
pub enum ProofEnd {
    /// Side B was proved to be better.
    Better,
    /// The pairs led to a verdict other than "better".
    Verdict {
        /// Verdict: worse, no practical difference, or unsafe.
        verdict: Verdict,
    },
    /// The candidate was given up, because a relevant gain is unlikely, or because the noise of the pairs makes a proof
    /// unlikely. This does not prove that the candidate has no effect.
    GivenUp,
    /// Side B is better, but a guardrail seems worse by more than half its margin.
    GuardHarm {
        /// Metric of the guardrail.
        metric: Metric,
    },
    /// All pairs are measured or the time is used up, but there is no verdict.
    Open,
    /// The load reports no value for the objective.
    NoFigure {
        /// Error message of the load.
        error: String,
    },
}

/// Parameters of the judgement that are not fields of the proof.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    pub margin: f64,
    pub guards: &'a [Guard],
    pub by_latency: bool,
    /// Standard deviation of one alternation that was expected before the proof.
    pub noise: f64,
}

impl Proof {
    /// Returns the sides and candidates of the next pair.
    pub(crate) fn order(&self) -> PairOrder {
        let number = self.pairs.len() as u32 + 1;
        PairOrder {
            stage: self.stage,
            number,
            now: self.now.clone(),
            changed: self.changed.clone(),
            first: seeds::first_side(self.seed, number),
            alternations: self.alternations,
            held: 0,
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

    /// Returns the improvement of each pair that counts, as a natural logarithm.
    pub(crate) fn effects(&self) -> Vec<f64> {
        let effect = |pair: &PairOutcome| match pair {
            PairOutcome::Measured { effect, .. } => Some(*effect),
            _ => None,
        };
        self.pairs.iter().filter_map(effect).collect()
    }

    /// Returns the worsening of a guardrail for each pair that counts, as a natural logarithm.
    pub(crate) fn worsening(&self, guard: usize) -> Vec<f64> {
        let of = |pair: &PairOutcome| match pair {
            PairOutcome::Measured { guards, .. } => guards.get(guard).copied(),
            _ => None,
        };
        self.pairs.iter().filter_map(of).collect()
    }

    /// Returns the robust centre of the improvements as a natural logarithm; 0 without pairs.
    pub(crate) fn effect(&self) -> f64 {
        compute_centre(&self.effects()).unwrap_or_default()
    }

    /// Returns a robust standard deviation of the log ratio of one alternation.
    pub(crate) fn noise(&self) -> f64 {
        forecast::estimate_noise(&self.effects()) * f64::from(self.alternations.max(1)).sqrt()
    }

    /// Judges a proof of one candidate after its last pair; `None` while the proof continues. Guardrails are not proved
    /// here, but once with all accepted changes together.
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

    /// Returns whether a relevant gain or its proof is unlikely. Called after every pair. This repeated check cannot
    /// increase the probability of a false acceptance.
    fn is_hopeless(&self, terms: Terms<'_>) -> bool {
        let n = self.effects().len();
        n >= FEWEST
            && n * self.alternations as usize >= self.patience as usize
            && (!self.may_gain(terms) || self.is_doomed(n, self.error(terms)))
    }

    /// Returns whether a relevant gain is still possible: whether the upper bound of the gain exceeds the margin. On a
    /// noisy machine a proof may be given up although this is so.
    pub(crate) fn may_gain(&self, terms: Terms<'_>) -> bool {
        let alternations = self.effects().len() * self.alternations as usize;
        let quantile = match alternations < GIVE_UP_SURELY {
            true => UPPER_EARLY,
            false => UPPER,
        };
        self.effect() + quantile * self.error(terms) >= terms.margin.ln_1p()
    }

    /// Returns the standard error of [`Self::effect`].
    fn error(&self, terms: Terms<'_>) -> f64 {
        let effects = self.effects();
        // The spread of a few pairs can be too small by chance.
        let before = terms.noise / f64::from(self.alternations.max(1)).sqrt();
        forecast::estimate_noise(&effects).max(before) / (effects.len().max(1) as f64).sqrt()
    }

    /// Returns whether the proof will probably end without "better", because its predictive power (Spiegelhalter,
    /// Freedman and Blackburn 1986) is below 5 %.
    fn is_doomed(&self, measured: usize, error: f64) -> bool {
        let (n, last) = (measured as f64, f64::from(self.max_pairs.min(MAX_PAIRS)));
        if n >= last {
            return false;
        }
        let needed = quantile_above(self.alpha);
        let expected = self.effect() / error.max(1e-9) * (last / n).sqrt();
        (expected - needed) / ((last - n) / n).sqrt() < -DOOMED
    }

    /// Judges the proof of all accepted changes after its last pair; `None` while the proof continues.
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

    /// Returns the judgement of all pairs, with an interval of 90 %.
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

    /// Returns the guardrail with the largest worsening, if this worsening exceeds half of the guardrail's margin.
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

/// Approximates the quantile of the normal distribution that is exceeded with this probability, 0 to 0.5 (Abramowitz
/// and Stegun 26.2.22; the error is below 0.003).
fn quantile_above(probability: f64) -> f64 {
    let t = (-2.0 * probability.clamp(1e-12, 0.5).ln()).sqrt();
    t - (2.30753 + 0.27061 * t) / (1.0 + t * (0.99229 + 0.04481 * t))
}

/// Returns whether a look (an interim judgement) takes place after this number of pairs.
fn is_look(planned: u32, measured: usize) -> bool {
    let measured = measured as u32;
    measured > 0 && find_next_look(planned, measured - 1) == Some(measured)
}

/// Returns how many alternations a pair needs to detect an effect (log ratio) within [`ENOUGH`] pairs. `noise` is the
/// noise of one alternation.
pub(crate) fn alternations_for(noise: f64, effect: f64) -> u32 {
    let effect = effect.max(0.01);
    let told = |alternations: &u32| {
        let noise = noise / f64::from(*alternations).sqrt();
        // A negative effect: the forecast for a gain also counts the pairs that compensate for one slow slot.
        forecast::forecast_pairs_for_difference(noise, -effect, 0.0) <= ENOUGH
    };
    let choices = [1, 2, 4, 8, MOST_ALTERNATIONS];
    choices.into_iter().find(told).unwrap_or(MOST_ALTERNATIONS)
}
