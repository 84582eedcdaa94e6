//! A trial: a paired, interleaved experiment on one piece of advice. A is the machine as it is,
//! B with the change.

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

/// Number of a trial in its store, as users name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TrialId(pub i64);

impl fmt::Display for TrialId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// One of the two sides.
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
    /// A: as it is now.
    Now,
    /// B: with the change.
    Changed,
}

impl Side {
    /// The other one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Now => Self::Changed,
            Self::Changed => Self::Now,
        }
    }
}

/// Most pairs a trial measures before it says "undecided".
pub const MAX_PAIRS: u32 = 60;

/// A trial, settled: nothing is left to choose while it is carried out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TrialPlan {
    /// Which advice.
    pub advice: String,
    /// Its title.
    pub title: String,
    /// What it predicts.
    pub predicts: String,
    /// Values of its parameters.
    pub parameters: BTreeMap<String, String>,
    /// What it is pointed at, as the user named it.
    pub target: String,
    /// What is changed.
    pub change: Change,
    /// Both sides are the same: what is measured is the noise of the machine.
    pub aa: bool,
    /// What is done to it.
    pub load: Load,
    /// Which figure decides.
    pub metric: Metric,
    /// What must not get worse.
    pub guards: Vec<Guard>,
    /// Smallest ratio that matters in practice: 0.03 for 3 %.
    pub margin: f64,
    /// Measured time of one slot.
    pub slot: Nanos,
    /// The shortest slot that is possible, where the noise decides how long they are; `slot` is then the
    /// longest, until the noise is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot_min: Option<Nanos>,
    /// Time of load before a slot is measured.
    pub washout: Nanos,
    /// Reads from a cache count.
    #[serde(default)]
    pub cached: bool,
    /// A rule no figure can outweigh.
    pub safety: Option<SafetyRule>,
    /// How the change is made for good, when the user asks for it and the verdict allows it.
    pub keep: Option<Change>,
    /// How bad it can get.
    pub risk: RiskLevel,
    /// Pairs at most.
    pub max_pairs: u32,
    /// Stop after this long, when the user said so.
    pub budget: Option<Nanos>,
    /// Level of a false "better": 0.05, divided by the pieces of advice of a campaign.
    pub alpha: f64,
    /// Seed of the coins and of the judge's sign flips.
    pub seed: u64,
    /// Which side of each pair is measured first, by a coin for each pair; `max_pairs` long.
    pub first: Vec<Side>,
}

/// One execution of the load on one side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Slot {
    /// 1-based pair.
    pub pair: u32,
    /// Which side.
    pub side: Side,
    /// The setting as read back before measuring; what tells the two sides apart.
    pub read_back: String,
    /// What was measured.
    pub sample: Sample,
    /// Doubts raised by the trial itself: clock jump, suspended machine, read-back differs. Those
    /// about the sample are derived.
    #[serde(default)]
    pub doubts: Vec<Doubt>,
}

/// How far a trial got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TrialState {
    /// Going on, or cut off without a word.
    Running,
    /// It has its verdict.
    Complete,
    /// The user, the budget or an error ended it early; `--resume` goes on.
    Stopped,
}

/// What became of the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kept {
    /// The machine is as it was.
    Reverted,
    /// The user asked for it and the verdict allowed it.
    Kept,
}

/// Proof that acknowledged writes were, or were not, durable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DurabilityProof {
    /// Which side.
    pub side: Side,
    /// How it was found out.
    pub method: String,
    /// Writes that were acknowledged as durable.
    pub acknowledged: u64,
    /// Of these, lost by a power cut at the worst moment.
    pub lost: u64,
}

/// One execution of one trial, with all its evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Trial {
    /// Number in the store; 0 before it is stored.
    pub id: TrialId,
    /// 128-bit random name in hex.
    pub uid: String,
    /// assay version that made it.
    pub assay_version: String,
    /// When it began.
    pub started: jiff::Timestamp,
    /// When it ended.
    pub ended: Option<jiff::Timestamp>,
    /// How far it got.
    pub state: TrialState,
    /// What was carried out.
    pub plan: TrialPlan,
    /// The target as it was found; none for an address.
    pub target: Option<TargetInfo>,
    /// The environment.
    pub facts: Facts,
    /// The flush test of each side, when the plan asks for one.
    #[serde(default)]
    pub durability: Vec<DurabilityProof>,
    /// What became of the change.
    pub kept: Option<Kept>,
    /// Things said about the trial as a whole.
    #[serde(default)]
    pub remarks: Vec<String>,
    /// Other trials of the same campaign, by uid.
    #[serde(default)]
    pub campaign: Vec<String>,
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Better, by more than chance, and no guardrail got worse: may be kept.
    Better,
    /// Worse, in its figure or in a guardrail.
    Worse,
    /// The difference, if any, is smaller than what matters.
    NoPracticalDifference,
    /// Not enough pairs to say.
    Undecided,
    /// A safety rule is broken, or the load fails only with the change, whatever it gains.
    Unsafe,
}

/// One pair as the judge sees it, in logarithms: 0.1 is about 10 %.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum PairOutcome {
    /// Both sides were measured.
    Measured {
        /// ln of the improvement of B over A; above 0 is better.
        effect: f64,
        /// ln of the worsening of each guardrail, in the plan's order; above 0 is worse.
        guards: Vec<f64>,
        /// Work of A and of B in the same time: the deciding rate, or operations per second where a latency decides.
        work: [f64; 2],
    },
    /// The load failed with the change and not without.
    FailedChanged {
        /// What it said.
        error: String,
    },
    /// The load failed, but not because of the change alone. Left out.
    Failed {
        /// What it said.
        error: String,
    },
    /// Something speaks against the pair. Left out.
    Void {
        /// What.
        reason: String,
    },
}

/// Where the judge stood after some pairs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "Look")]
pub struct TrialLook {
    /// Measured pairs so far.
    pub pairs: u32,
    /// B/A, above 1 is better, with its interval at this look.
    pub ratio: f64,
    /// Its interval; infinite ends are None.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// What is known of a guardrail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GuardJudgement {
    /// Which figure.
    pub metric: Metric,
    /// Share by which it may get worse.
    pub margin: f64,
    /// Centre of the pairs' ratios of worsening: 1.1 is 10 % worse.
    pub worsening: f64,
    /// Interval of it.
    pub interval: Option<Interval>,
    /// Proved to stay within its margin.
    pub held: bool,
    /// Proved to be worse.
    pub broken: bool,
}

/// What the pairs say of one figure. The same rule for every figure, whether it decides or not.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FigureJudgement {
    /// Which.
    pub metric: Metric,
    /// Centre of the pairs' own ratios B ÷ A; none when no pair has it.
    pub ratio: Option<f64>,
    /// Its interval.
    pub interval: Option<Interval>,
    /// It got clearly worse: the whole interval is on the bad side.
    pub worse: bool,
}

/// What all slots of a side amount to, beside the typical pair: rare slow slots are in it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TotalJudgement {
    /// Work done in the same time, B ÷ A: the ratio of the sums over all slots.
    pub work: f64,
    /// Time for the same work, B ÷ A: the ratio of the sums of what a unit of work took in each slot.
    pub time: f64,
    /// Share by which either may get worse.
    pub margin: f64,
    /// Both are within the margin, as measured.
    pub within: bool,
    /// Neither would be worse than that, were one more slot of B three times as slow as usual: what
    /// "better" needs.
    pub stands: bool,
    /// The time is proved to be worse.
    pub worse: bool,
    /// Pairs in which A, or B, was more than twice as slow as the typical pair lets expect.
    pub slow: [u32; 2],
    /// Pairs in which A, or B, did much less than the typical pair lets expect: stalls are in them.
    #[serde(default)]
    pub stalled: [u32; 2],
}

/// What a trial's pairs amount to. Derived on read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Judgement {
    /// The answer.
    pub verdict: Verdict,
    /// Whether the rule says to stop now.
    pub done: bool,
    /// Why, in one sentence with its figures.
    pub reason: String,
    /// Measured pairs it rests on.
    pub pairs: u32,
    /// Pairs left out, void or failed.
    pub left_out: u32,
    /// B/A oriented so that above 1 is better, from the pairs (a robust centre).
    pub ratio: Option<f64>,
    /// Its interval, 90 %, valid whenever one looks.
    pub interval: Option<Interval>,
    /// Guardrails.
    pub guards: Vec<GuardJudgement>,
    /// Total work and time: the guardrail that every trial has. None without a pair.
    #[serde(default)]
    pub total: Option<TotalJudgement>,
    /// The figures people look at: what decides first, then the guardrails, then the usual ones.
    /// Empty where pairs were judged without their slots.
    #[serde(default)]
    pub figures: Vec<FigureJudgement>,
    /// The looks so far.
    pub looks: Vec<TrialLook>,
    /// Standard deviation of the pairs' log ratio.
    pub pair_sd: Option<f64>,
    /// Pairs that would probably be needed to decide at this effect and noise; a forecast.
    pub forecast: Option<u32>,
    /// Evidence of the e-process against "not better": valid over any number of sessions.
    pub e_value: Option<f64>,
}

impl TrialPlan {
    /// Time all slots take at most, without making what is measured.
    #[must_use]
    pub fn longest(&self) -> Nanos {
        let slot = self.slot.and(self.washout).0;
        Nanos(slot.saturating_mul(2 * u64::from(self.max_pairs)))
    }
}
