//! A trial: a paired, interleaved experiment on one piece of advice. A is the baseline, B has the change.

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

/// Number of a trial in its store, as users refer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TrialId(pub i64);

impl fmt::Display for TrialId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Side of a trial.
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
    /// A: the baseline.
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

/// Maximum number of pairs of a trial. If there is no verdict after them, the verdict is "undecided".
pub const MAX_PAIRS: u32 = 60;

/// A trial plan without open choices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TrialPlan {
    /// Id of the advice.
    pub advice: String,
    /// Title of the advice.
    pub title: String,
    /// Effect that the advice predicts.
    pub predicts: String,
    /// Values of the advice's parameters.
    pub parameters: BTreeMap<String, String>,
    /// Target as the user named it.
    pub target: String,
    /// The change.
    pub change: Change,
    /// Whether both sides are the baseline (A/A trial). Such a trial measures the noise of the machine.
    pub aa: bool,
    /// The load.
    pub load: Load,
    /// The deciding metric.
    pub metric: Metric,
    /// Guardrails: figures that must not get worse.
    pub guards: Vec<Guard>,
    /// Smallest relative difference that matters in practice: 0.03 for 3 %.
    pub margin: f64,
    /// Measured time of one slot.
    pub slot: Nanos,
    /// Minimum length of a slot, if the length is chosen from the noise. Then `slot` is the maximum, and applies until
    /// the noise is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot_min: Option<Nanos>,
    /// Time of load before a slot is measured.
    pub washout: Nanos,
    /// Whether reads that a cache serves count.
    #[serde(default)]
    pub cached: bool,
    /// A safety rule that the change must not violate, whatever its gain.
    pub safety: Option<SafetyRule>,
    /// Change by which the user's machine gets the tested state, if the user requests it and the verdict permits it.
    pub keep: Option<Change>,
    /// Severity of the possible damage.
    pub risk: RiskLevel,
    /// Maximum number of pairs.
    pub max_pairs: u32,
    /// Time limit of the user.
    pub budget: Option<Nanos>,
    /// Highest accepted probability of the verdict "better" when there is no difference: 0.05,
    /// divided by the number of advice pages of a campaign.
    pub alpha: f64,
    /// Seed of the randomised order and of the randomisation test.
    pub seed: u64,
    /// Side that is measured first, for each pair, in random order. Has `max_pairs` entries.
    pub first: Vec<Side>,
}

/// One execution of the load on one side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Slot {
    /// Number of the pair, from 1.
    pub pair: u32,
    /// The side.
    pub side: Side,
    /// Value of the setting, as read back before measuring. It shows which side was in effect.
    pub read_back: String,
    /// The sample.
    pub sample: Sample,
    /// Doubts that concern the slot in the trial: clock jump, suspended machine, unexpected value read back. Doubts
    /// about the sample itself are derived when it is read.
    #[serde(default)]
    pub doubts: Vec<Doubt>,
}

/// Progress of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TrialState {
    /// The trial is in progress, or assay was killed without notice.
    Running,
    /// The verdict is complete.
    Complete,
    /// Ended early by the user, the budget or an error; `--resume` continues it.
    Stopped,
}

/// State of the change after the trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kept {
    /// The change is reverted.
    Reverted,
    /// The change is kept: the user requested it, and the verdict permits it.
    Kept,
}

/// Result of a test whether acknowledged writes were durable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DurabilityProof {
    /// The side.
    pub side: Side,
    /// Method of the test.
    pub method: String,
    /// Writes that were acknowledged as durable.
    pub acknowledged: u64,
    /// Number of acknowledged writes that a power failure at the worst moment would lose.
    pub lost: u64,
}

/// One execution of a trial, with all its measurements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Trial {
    /// Number in the store; 0 before it is stored.
    pub id: TrialId,
    /// Random id: 128 bits in hexadecimal.
    pub uid: String,
    /// Version of assay that executed it.
    pub assay_version: String,
    /// Start time.
    pub started: jiff::Timestamp,
    /// End time.
    pub ended: Option<jiff::Timestamp>,
    /// Progress.
    pub state: TrialState,
    /// The executed plan.
    pub plan: TrialPlan,
    /// Description of the target before the trial; `None` for an address.
    pub target: Option<TargetInfo>,
    /// Facts about the machine and the target.
    pub facts: Facts,
    /// Result of the flush test for each side, if the plan requires the test.
    #[serde(default)]
    pub durability: Vec<DurabilityProof>,
    /// State of the change after the trial.
    pub kept: Option<Kept>,
    /// Name of the session in the journal that can revert the kept change. Absent in trials of versions before 0.3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_in: Option<String>,
    /// Remarks about the whole trial.
    #[serde(default)]
    pub remarks: Vec<String>,
    /// Other trials of the same campaign, by uid.
    #[serde(default)]
    pub campaign: Vec<String>,
}

/// Verdict of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Significantly better, and no guardrail is worse: the change may be kept.
    Better,
    /// Worse in the deciding metric or in a guardrail.
    Worse,
    /// The difference, if any, is smaller than the margin.
    NoPracticalDifference,
    /// Too few pairs for a verdict.
    Undecided,
    /// The change breaks a safety rule, or the load fails only with the change. A gain does not count then.
    Unsafe,
}

/// Result of one pair, for the judge. Effects are natural logarithms of ratios: 0.1 is about 10 %.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum PairOutcome {
    /// Both sides were measured.
    Measured {
        /// Natural logarithm of the improvement of B over A. Above 0, B is better.
        effect: f64,
        /// Natural logarithm of the worsening of each guardrail, in the plan's order. Above 0, B is worse.
        guards: Vec<f64>,
        /// Work of A and of B per time: the deciding rate, or operations per second if a latency
        /// decides.
        work: [f64; 2],
    },
    /// The load failed with the change, but not without it.
    FailedChanged {
        /// Error message.
        error: String,
    },
    /// The load failed on the baseline too, so the pair is ignored.
    Failed {
        /// Error message.
        error: String,
    },
    /// A doubt makes the pair void, so the pair is ignored.
    Void {
        /// The reason.
        reason: String,
    },
}

/// Interim analysis: the estimate after a number of pairs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "Look")]
pub struct TrialLook {
    /// Number of measured pairs so far.
    pub pairs: u32,
    /// Ratio B ÷ A at this analysis, oriented so that above 1 is better.
    pub ratio: f64,
    /// Lower end of the interval; `None` if infinite.
    pub low: Option<f64>,
    /// Upper end of the interval; `None` if infinite.
    pub high: Option<f64>,
}

/// Judgement of a guardrail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GuardJudgement {
    /// The figure.
    pub metric: Metric,
    /// Permitted worsening as a fraction.
    pub margin: f64,
    /// Typical worsening over the pairs, as a ratio: 1.1 is 10 % worse.
    pub worsening: f64,
    /// Interval of the worsening.
    pub interval: Option<Interval>,
    /// Whether the data shows that the figure stays within its margin.
    pub held: bool,
    /// Whether the data shows that the figure is worse, and does not show that it stays within its margin.
    pub broken: bool,
}

/// Judgement of one figure. The same rule applies to the deciding figure and to all others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FigureJudgement {
    /// The figure.
    pub metric: Metric,
    /// Typical ratio B ÷ A over the pairs; `None` if no pair has the figure.
    pub ratio: Option<f64>,
    /// Interval of the ratio.
    pub interval: Option<Interval>,
    /// Whether the figure is significantly worse: the whole interval is on the worse side of 1.
    pub worse: bool,
}

/// Totals over all slots of a side. In contrast to the typical pair they include rare slow slots.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TotalJudgement {
    /// Work in the same time, B ÷ A: ratio of the sums over all slots. Above 1 is better.
    pub work: f64,
    /// Time for the same work, B ÷ A: ratio of the sums of time per unit of work. Below 1 is better.
    pub time: f64,
    /// Permitted worsening of `work` and `time`, as a fraction.
    pub margin: f64,
    /// Whether the measured `work` and `time` are within the margin.
    pub within: bool,
    /// Whether `work` and `time` would stay within the margin even if B had one more slot that is three times as slow
    /// as usual. The verdict "better" requires this.
    pub stands: bool,
    /// Whether the data shows that `time` is worse.
    pub worse: bool,
    /// Number of pairs in which A (first number) or B (second number) was more than twice as slow as the typical pair
    /// predicts.
    pub slow: [u32; 2],
    /// Number of pairs in which A (first number) or B (second number) did much less work than the typical pair
    /// predicts, because of stalls.
    #[serde(default)]
    pub stalled: [u32; 2],
}

/// Judgement of a trial, derived from its pairs when it is read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Whether the trial may end now by its stopping rule.
    pub done: bool,
    /// Reason in one sentence with figures.
    pub reason: String,
    /// Number of measured pairs in the judgement.
    pub pairs: u32,
    /// Number of pairs that are ignored because they are void or failed.
    pub left_out: u32,
    /// Typical ratio B ÷ A over the pairs (a robust centre), inverted if lower values are better. So above 1 is always
    /// better.
    pub ratio: Option<f64>,
    /// Interval of the ratio, 90 %, valid at every interim analysis.
    pub interval: Option<Interval>,
    /// Judgements of the guardrails.
    pub guards: Vec<GuardJudgement>,
    /// Total work and time: the guardrail of every trial. `None` without a pair.
    #[serde(default)]
    pub total: Option<TotalJudgement>,
    /// Figures for the report: first the deciding figure, then the guardrails, then the usual figures. Empty if the
    /// judge received only pairs, not slots.
    #[serde(default)]
    pub figures: Vec<FigureJudgement>,
    /// Interim analyses so far, in order.
    pub looks: Vec<TrialLook>,
    /// Standard deviation of the natural logarithm of the ratio, over the pairs.
    pub pair_sd: Option<f64>,
    /// Forecast of the total number of pairs until a decision, if effect and noise remain as they are.
    pub forecast: Option<u32>,
    /// E-value against "B is not better". It remains valid if the trial is repeated in several sessions.
    pub e_value: Option<f64>,
}

impl TrialPlan {
    /// Returns the maximum total time of all slots, without the time to create objects.
    #[must_use]
    pub fn longest(&self) -> Nanos {
        let slot = self.slot.and(self.washout).0;
        Nanos(slot.saturating_mul(2 * u64::from(self.max_pairs)))
    }
}
