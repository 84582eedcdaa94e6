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

/// Most pairs of a trial; afterwards the verdict is "undecided".
pub const MAX_PAIRS: u32 = 60;

/// A trial plan without open choices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TrialPlan {
    /// Id of the advice.
    pub advice: String,
    /// Title of the advice.
    pub title: String,
    /// Predicted effect.
    pub predicts: String,
    /// Values of its parameters.
    pub parameters: BTreeMap<String, String>,
    /// Target as the user named it.
    pub target: String,
    /// The change.
    pub change: Change,
    /// Whether both sides are the same: such a trial measures the noise of the machine.
    pub aa: bool,
    /// The load.
    pub load: Load,
    /// The deciding metric.
    pub metric: Metric,
    /// Guardrails: figures that must not get worse.
    pub guards: Vec<Guard>,
    /// Smallest ratio that matters in practice: 0.03 for 3 %.
    pub margin: f64,
    /// Measured time of one slot.
    pub slot: Nanos,
    /// Shortest possible slot, if the noise determines the length; `slot` is then the longest one
    /// and applies until the noise is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot_min: Option<Nanos>,
    /// Time of load before a slot is measured.
    pub washout: Nanos,
    /// Whether reads from a cache count.
    #[serde(default)]
    pub cached: bool,
    /// A safety rule, which no gain can outweigh.
    pub safety: Option<SafetyRule>,
    /// How the change is kept, if the user requests it and the verdict permits it.
    pub keep: Option<Change>,
    /// Severity of the possible damage.
    pub risk: RiskLevel,
    /// Most pairs.
    pub max_pairs: u32,
    /// Time limit of the user.
    pub budget: Option<Nanos>,
    /// Highest accepted probability of the verdict "better" when there is no difference: 0.05,
    /// divided by the number of advice pages of a campaign.
    pub alpha: f64,
    /// Seed of the randomised order and of the judge's sign flips.
    pub seed: u64,
    /// First side of each pair in random order; `max_pairs` entries.
    pub first: Vec<Side>,
}

/// One execution of the load on one side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Slot {
    /// 1-based pair.
    pub pair: u32,
    /// The side.
    pub side: Side,
    /// The setting as read back before measuring; it identifies the side.
    pub read_back: String,
    /// The sample.
    pub sample: Sample,
    /// Doubts of the trial itself: clock jump, suspended machine, unexpected read-back. Doubts
    /// about the sample are derived.
    #[serde(default)]
    pub doubts: Vec<Doubt>,
}

/// Progress of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TrialState {
    /// Running, or killed without notice.
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
    /// Acknowledged writes that a power failure at the worst moment would lose.
    pub lost: u64,
}

/// One execution of a trial, with its evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Trial {
    /// Number in the store; 0 before it is stored.
    pub id: TrialId,
    /// 128-bit random id in hex.
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
    /// The environment.
    pub facts: Facts,
    /// The flush test of each side, if the plan requires one.
    #[serde(default)]
    pub durability: Vec<DurabilityProof>,
    /// State of the change.
    pub kept: Option<Kept>,
    /// Session of the journal that reverts the kept change; absent before version 0.3.
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
    /// Worse in its metric or in a guardrail.
    Worse,
    /// The difference, if any, is smaller than the margin.
    NoPracticalDifference,
    /// Too few pairs for a verdict.
    Undecided,
    /// A safety rule is broken, or the load fails only with the change; a gain does not matter.
    Unsafe,
}

/// One pair for the judge, in logarithms: 0.1 is about 10 %.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum PairOutcome {
    /// Both sides were measured.
    Measured {
        /// ln of the improvement of B over A; above 0 is better.
        effect: f64,
        /// ln of the worsening of each guardrail in the plan's order; above 0 is worse.
        guards: Vec<f64>,
        /// Work of A and of B per time: the deciding rate, or operations per second if a latency
        /// decides.
        work: [f64; 2],
    },
    /// The load failed with the change and not without it.
    FailedChanged {
        /// Error message.
        error: String,
    },
    /// The load failed on the baseline too. The pair is left out.
    Failed {
        /// Error message.
        error: String,
    },
    /// A doubt voids the pair. The pair is left out.
    Void {
        /// The reason.
        reason: String,
    },
}

/// State of the judge after some pairs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "Look")]
pub struct TrialLook {
    /// Measured pairs so far.
    pub pairs: u32,
    /// B/A with its interval at this analysis; above 1 is better.
    pub ratio: f64,
    /// Lower end; infinite ends are `None`.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// Judgement of a guardrail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GuardJudgement {
    /// The figure.
    pub metric: Metric,
    /// Permitted worsening as a fraction.
    pub margin: f64,
    /// Centre of the pairs' ratios of worsening: 1.1 is 10 % worse.
    pub worsening: f64,
    /// Interval of the worsening.
    pub interval: Option<Interval>,
    /// Whether it is shown to stay within its margin.
    pub held: bool,
    /// Whether it is shown to be worse.
    pub broken: bool,
}

/// Judgement of one figure. The same rule applies to every figure, deciding or not.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FigureJudgement {
    /// The figure.
    pub metric: Metric,
    /// Centre of the pairs' ratios B ÷ A; `None` if no pair has it.
    pub ratio: Option<f64>,
    /// Interval of the ratio.
    pub interval: Option<Interval>,
    /// Whether it is significantly worse: the whole interval is on the worse side.
    pub worse: bool,
}

/// Totals over all slots of a side. In contrast to the typical pair they include rare slow slots.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TotalJudgement {
    /// Work in the same time, B ÷ A: ratio of the sums over all slots.
    pub work: f64,
    /// Time for the same work, B ÷ A: ratio of the sums of the time per unit of work.
    pub time: f64,
    /// Permitted worsening of both as a fraction.
    pub margin: f64,
    /// Whether both measured values are within the margin.
    pub within: bool,
    /// Whether both would stay within the margin if one more slot of B were three times as slow as
    /// usual: a requirement for "better".
    pub stands: bool,
    /// Whether the time is shown to be worse.
    pub worse: bool,
    /// Number of pairs in which A, or B, was over twice as slow as the typical pair predicts.
    pub slow: [u32; 2],
    /// Number of pairs in which A, or B, did much less work than the typical pair predicts, because
    /// of stalls.
    #[serde(default)]
    pub stalled: [u32; 2],
}

/// Judgement of a trial from its pairs. Derived on read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Whether the stopping rule ends the trial now.
    pub done: bool,
    /// Reason in one sentence with figures.
    pub reason: String,
    /// Number of measured pairs in the judgement.
    pub pairs: u32,
    /// Number of pairs that are left out, void or failed.
    pub left_out: u32,
    /// B/A from the pairs (a robust centre), inverted if lower is better, so that above 1 is
    /// better.
    pub ratio: Option<f64>,
    /// Interval of the ratio, 90 %, valid at every interim analysis.
    pub interval: Option<Interval>,
    /// Judgements of the guardrails.
    pub guards: Vec<GuardJudgement>,
    /// Total work and time: the guardrail of every trial. `None` without a pair.
    #[serde(default)]
    pub total: Option<TotalJudgement>,
    /// Figures for the report: the deciding one first, then the guardrails, then the usual ones.
    /// Empty if pairs were judged without their slots.
    #[serde(default)]
    pub figures: Vec<FigureJudgement>,
    /// Interim analyses so far.
    pub looks: Vec<TrialLook>,
    /// Standard deviation of the pairs' log ratio.
    pub pair_sd: Option<f64>,
    /// Forecast of the number of pairs for a decision at this effect and noise.
    pub forecast: Option<u32>,
    /// E-value against "not better": valid over any number of sessions.
    pub e_value: Option<f64>,
}

impl TrialPlan {
    /// Returns the longest total time of all slots, without the creation of objects.
    #[must_use]
    pub fn longest(&self) -> Nanos {
        let slot = self.slot.and(self.washout).0;
        Nanos(slot.saturating_mul(2 * u64::from(self.max_pairs)))
    }
}
