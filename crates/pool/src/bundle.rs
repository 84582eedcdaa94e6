//! What travels: the trials of an owner's machines, and what of a trial is told. Everything here is a
//! figure, a digest or a word of assay's own; there is no field that text of a machine could be in.

use assay_model::advice::Moderator;
use assay_model::criterion::Metric;
use assay_model::trial::Verdict;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the first field says.
pub const FORMAT: &str = "assay-pool 1";

/// Trials that an owner gives to a pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bundle {
    /// [`FORMAT`].
    pub format: String,
    /// Public key of the owner: 64 hexadecimal digits.
    pub owner: String,
    /// Nobody measured this: it was made to show or to test a pool.
    pub simulated: bool,
    /// Version of assay that wrote it.
    pub assay: String,
    /// The machines.
    pub machines: Vec<BundleMachine>,
}

/// A machine and all trials of the catalogue that were started on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Machine")]
pub struct BundleMachine {
    /// 32 hexadecimal digits that only the owner's secret key leads back from.
    pub id: String,
    /// Its trials.
    pub trials: Vec<BundleTrial>,
}

/// A trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Trial")]
pub struct BundleTrial {
    /// 32 hexadecimal digits, the same whenever the owner tells of this trial.
    pub id: String,
    /// What was settled before anything was measured.
    pub plan: BundlePlan,
    /// Version of assay that carried it out.
    pub assay: String,
    /// Kernel, to its second number: `6.1`.
    pub kernel: Option<String>,
    /// fio, to its second number: `3.33`.
    pub fio: Option<String>,
    /// What the page declares to matter.
    pub moderators: BTreeMap<Moderator, String>,
    /// Each pair in its order.
    pub pairs: Vec<Pair>,
    /// How it ended.
    pub ended: TrialEnd,
    /// What its own pairs say.
    pub verdict: Verdict,
}

/// What a trial was going to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Plan")]
pub struct BundlePlan {
    /// Page of the catalogue.
    pub advice: String,
    /// Digest of the page; none where another version of assay carried the trial out.
    pub page: Option<String>,
    /// Its parameters, where they are one of the page's own values or a number; `other` else.
    pub parameters: BTreeMap<String, String>,
    /// Kind of the change: `mount-option`, `zfs-property`, `side-by-side`, ….
    pub change: String,
    /// Both sides were the same: it measured noise.
    pub both_same: bool,
    /// The figure that decides.
    #[schemars(with = "String")]
    pub metric: Metric,
    /// Smallest ratio that matters.
    pub margin: f64,
    /// Level of a false verdict.
    pub alpha: f64,
    /// Measured time of a slot in milliseconds.
    pub slot_ms: u64,
    /// Load before it in milliseconds.
    pub washout_ms: u64,
    /// Pairs at most.
    pub max_pairs: u32,
    /// Seed of the coins and of the judge.
    pub seed: u64,
    /// Which side of each pair was to come first: `A` as it is, `B` with the change.
    pub coins: String,
}

/// A pair: the logarithm of what the change gained, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum Pair {
    /// ln of the improvement of B over A, rounded to a millionth.
    Effect(f64),
    /// There is none.
    Without(Without),
}

/// Why a pair has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Without {
    /// The load failed with the change and not without.
    FailedChanged,
    /// It failed, but not because of the change alone.
    Failed,
    /// Something spoke against it.
    Void,
}

/// How a trial ended.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Ended")]
pub enum TrialEnd {
    /// It was cut off, or goes on.
    CutOff,
    /// The user, the budget or an error stopped it.
    Stopped,
    /// Its rule said that it was done.
    Done,
}

impl BundleTrial {
    /// The effects of its pairs.
    pub fn effects(&self) -> impl Iterator<Item = f64> + '_ {
        self.pairs.iter().filter_map(|pair| match pair {
            Pair::Effect(effect) => Some(*effect),
            Pair::Without(_) => None,
        })
    }
}
