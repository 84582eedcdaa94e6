//! A trial: a paired and interleaved experiment on one piece of advice. Side A is the baseline, side B has the change.

use crate::advice::{Guard, RiskLevel, SafetyRule};
use crate::change::Change;
use crate::criterion::Metric;
use crate::doubt::Doubt;
use crate::fact::Facts;
use crate::load::Load;
use crate::result::Interval;
use crate::sample::Sample;
use crate::target::TargetInfo;
use crate::units::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Number of a trial in its store, which users write on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TrialId(pub i64);

impl fmt::Display for TrialId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Side of a trial, which is either the baseline or the change.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// A: the baseline, without the change.
    Now,
    /// B: with the change.
    Changed,
}

impl Side {
    /// Returns the other side.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Now => Self::Changed,
            Self::Changed => Self::Now,
        }
    }
}

/// Maximum number of pairs in a trial. Without a verdict after these pairs, the result is "undecided".
pub const MAX_PAIRS: u32 = 60;

/// A trial plan in which every value is fixed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TrialPlan {
    /// Id of the advice that is tested.
    pub advice: String,
    /// Title of the advice.
    pub title: String,
    /// Effect that the advice predicts, as a sentence.
    pub predicts: String,
    /// Values of the advice's parameters.
    pub parameters: BTreeMap<String, String>,
    /// Target as the user wrote it.
    pub target: String,
    /// The change that is tested.
    pub change: Change,
    /// Whether both sides are the baseline (A/A trial), to measure the noise of the machine.
    pub aa: bool,
    /// The load under which both sides are measured.
    pub load: Load,
    /// The metric that decides the verdict.
    pub metric: Metric,
    /// Guardrails: figures that may become worse only within a margin.
    pub guards: Vec<Guard>,
    /// Smallest relative difference that matters in practice: 0.03 for 3 %.
    pub margin: f64,
    /// Duration of the measurement in one slot.
    pub slot: Nanos,
    /// Minimum duration of a slot, if the noise determines the duration. In this case, `slot` is the maximum, and
    /// applies until the noise is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot_min: Option<Nanos>,
    /// Duration of the load before a slot is measured.
    pub washout: Nanos,
    /// Whether reads from a cache count.
    #[serde(default)]
    pub cached: bool,
    /// A safety rule that the change must not violate, whatever its gain.
    pub safety: Option<SafetyRule>,
    /// Change that is kept if the user requests this and the verdict permits it.
    pub keep: Option<Change>,
    /// Severity of the possible damage.
    pub risk: RiskLevel,
    /// Number of pairs after which the trial ends without a verdict.
    pub max_pairs: u32,
    /// Time limit that the user set.
    pub budget: Option<Nanos>,
    /// Maximum probability of the verdict "better" if there is no difference. It is 0.05 divided by the number of
    /// advice pages of a campaign.
    pub alpha: f64,
    /// Seed of the randomised order and of the randomisation test.
    pub seed: u64,
    /// Side that is measured first in each pair. The sides are in random order; there are `max_pairs` entries.
    pub first: Vec<Side>,
}

/// One slot of a trial: an execution of the load on one side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Slot {
    /// Number of the pair, counted from 1.
    pub pair: u32,
    /// The measured side.
    pub side: Side,
    /// Value of the setting, read back before the measurement. It proves which side was in effect.
    pub read_back: String,
    /// The measured sample.
    pub sample: Sample,
    /// Doubts (reasons to distrust a figure) that the trial itself causes: a clock jump, a suspended machine, or an
    /// unexpected value when the setting was read back. Doubts about the sample are derived when it is read.
    #[serde(default)]
    pub doubts: Vec<Doubt>,
}

/// Progress of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TrialState {
    /// The trial is in progress, or its process was killed without notice.
    Running,
    /// The trial ended with a verdict.
    Complete,
    /// The user, the budget or an error ended the trial early; `--resume` continues it.
    Stopped,
}

/// State of the change after the trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kept {
    /// The change was reverted.
    Reverted,
    /// The change was kept, because the user requested this and the verdict permits it.
    Kept,
}

/// Result of testing whether acknowledged writes are durable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DurabilityProof {
    /// The tested side.
    pub side: Side,
    /// Method of the test, as text for users.
    pub method: String,
    /// Number of writes that were acknowledged as durable.
    pub acknowledged: u64,
    /// Number of acknowledged writes that a power failure at the worst moment loses.
    pub lost: u64,
}

/// One execution of a trial, with all its measurements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Trial {
    /// Number of the trial in the store; 0 before it is stored.
    pub id: TrialId,
    /// Random id of 128 bits in hexadecimal. It stays the same if the trial is copied to another store.
    pub uid: String,
    /// Version of assay that executed the trial.
    pub assay_version: String,
    /// Start time of the trial.
    pub started: jiff::Timestamp,
    /// End time of the trial; `None` while it runs.
    pub ended: Option<jiff::Timestamp>,
    /// Progress of the trial.
    pub state: TrialState,
    /// The plan that was executed.
    pub plan: TrialPlan,
    /// Description of the target, recorded before the trial. `None` for an address.
    pub target: Option<TargetInfo>,
    /// Facts about the machine and the target.
    pub facts: Facts,
    /// Result of the flush test for each side. Empty if the plan does not require the test.
    #[serde(default)]
    pub durability: Vec<DurabilityProof>,
    /// State of the change after the trial.
    pub kept: Option<Kept>,
    /// Name of the journal's session that can revert the kept change. Absent in trials of versions before 0.3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_in: Option<String>,
    /// Remarks about the whole trial.
    #[serde(default)]
    pub remarks: Vec<String>,
    /// Uids of the other trials of the same campaign.
    #[serde(default)]
    pub campaign: Vec<String>,
}

/// Verdict of a trial on the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Significantly better, and no guardrail is worse. The change may be kept.
    Better,
    /// Worse in the deciding metric or in a guardrail.
    Worse,
    /// The difference is smaller than the margin, or there is none.
    NoPracticalDifference,
    /// Too few pairs for a verdict.
    Undecided,
    /// The change violates a safety rule, or the load fails only with the change. A gain then does not matter.
    Unsafe,
}

/// Result of one pair, from which the verdict is computed. Effects are natural logarithms of ratios: 0.1 is about 10 %.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum PairOutcome {
    /// Both sides of the pair were measured.
    Measured {
        /// Natural logarithm of the improvement of B over A. Above 0, B is better.
        effect: f64,
        /// Natural logarithm of the worsening of each guardrail, in the order of the plan. Above 0, B is worse.
        guards: Vec<f64>,
        /// Work of A and of B per unit of time: the deciding rate, or operations per second if a latency decides.
        work: [f64; 2],
    },
    /// The load failed only with the change.
    FailedChanged {
        /// Error message of the load.
        error: String,
    },
    /// The load failed on the baseline too, so the pair is ignored.
    Failed {
        /// Error message of the load.
        error: String,
    },
    /// A doubt makes the pair void, so the pair is ignored.
    Void {
        /// Reason why the pair is void.
        reason: String,
    },
}

/// Interim analysis: the estimate after some of the pairs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "Look")]
pub struct TrialLook {
    /// Number of pairs that were measured until this analysis.
    pub pairs: u32,
    /// Ratio B ÷ A at this analysis, inverted if lower values are better. Above 1, B is better.
    pub ratio: f64,
    /// Lower end of the interval; `None` if there is no lower bound.
    pub low: Option<f64>,
    /// Upper end of the interval; `None` if there is no upper bound.
    pub high: Option<f64>,
}

/// Result for one guardrail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GuardJudgement {
    /// The guarded figure.
    pub metric: Metric,
    /// How much worse the figure may become, as a fraction.
    pub margin: f64,
    /// Typical worsening over the pairs as a ratio: 1.1 is 10 % worse.
    pub worsening: f64,
    /// Confidence interval of the worsening.
    pub interval: Option<Interval>,
    /// Whether the data show that the figure stays within its margin.
    pub held: bool,
    /// Whether the data show that the figure is worse, and do not show that it stays within its margin.
    pub broken: bool,
}

/// Result for one figure. The same rule applies to the deciding figure and to all others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FigureJudgement {
    /// Metric of the figure.
    pub metric: Metric,
    /// Typical ratio B ÷ A over the pairs; `None` if no pair has the figure.
    pub ratio: Option<f64>,
    /// Confidence interval of the ratio.
    pub interval: Option<Interval>,
    /// Whether the figure is significantly worse, that is whether the whole interval is on the worse side of 1.
    pub worse: bool,
}

/// Totals over all slots of a side. In contrast to the ratio of a typical pair, totals include rare slow slots.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TotalJudgement {
    /// Work of B ÷ work of A in the same time: the ratio of the sums over all slots. Above 1 is better.
    pub work: f64,
    /// Time of B ÷ time of A for the same work: the ratio of the sums of time per unit of work. Below 1 is better.
    pub time: f64,
    /// How much worse `work` and `time` may become, as a fraction.
    pub margin: f64,
    /// Whether the measured values of `work` and `time` are within the margin.
    pub within: bool,
    /// Whether `work` and `time` would stay within the margin even if B had one more slot that is three times as slow
    /// as usual. The verdict "better" requires this.
    pub stands: bool,
    /// Whether the data show that `time` is worse.
    pub worse: bool,
    /// Number of pairs in which a side was more than twice as slow as the typical pair predicts: first for A, then for
    /// B.
    pub slow: [u32; 2],
    /// Number of pairs in which a side did much less work than the typical pair predicts, because of stalls: first for
    /// A, then for B.
    #[serde(default)]
    pub stalled: [u32; 2],
}

/// Result of a trial, derived from its pairs whenever the trial is read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Judgement {
    /// Verdict that follows from the pairs.
    pub verdict: Verdict,
    /// Whether the stopping rule permits that the trial ends now.
    pub done: bool,
    /// Reason for the verdict in one sentence with figures.
    pub reason: String,
    /// Number of measured pairs that count.
    pub pairs: u32,
    /// Number of pairs that are excluded, because they are void or failed.
    pub left_out: u32,
    /// Typical ratio B ÷ A over the pairs (a robust centre), inverted if lower values are better. Above 1, B is always
    /// better.
    pub ratio: Option<f64>,
    /// Confidence interval of the ratio (90 %), which is valid at every interim analysis.
    pub interval: Option<Interval>,
    /// Results for the guardrails, in the order of the plan.
    pub guards: Vec<GuardJudgement>,
    /// Total work and time, which every trial has as a guardrail. `None` without a pair.
    #[serde(default)]
    pub total: Option<TotalJudgement>,
    /// Figures for the report: the deciding figure, then the guardrails, then the usual figures. Empty if the results
    /// were computed from pairs only, without slots.
    #[serde(default)]
    pub figures: Vec<FigureJudgement>,
    /// Interim analyses so far, in order.
    pub looks: Vec<TrialLook>,
    /// Standard deviation of the natural logarithm of the ratio, over the pairs.
    pub pair_sd: Option<f64>,
    /// Estimated total number of pairs until a decision, if effect and noise do not change.
    pub forecast: Option<u32>,
    /// E-value against the hypothesis "B is not better". It remains valid if the trial is repeated in several sessions.
    pub e_value: Option<f64>,
}

impl TrialPlan {
    /// Returns the maximum total time of all slots. The time to create objects is not included.
    #[must_use]
    pub fn longest(&self) -> Nanos {
        let slot = self.slot.and(self.washout).0;
        Nanos(slot.saturating_mul(2 * u64::from(self.max_pairs)))
    }
}
