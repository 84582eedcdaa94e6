//! Bundle: the data that owners exchange. A bundle contains the trials of an owner's machines, each reduced to the part
//! that is shared. Every field is a number, a digest, or a word from a fixed list in assay. So no field can contain
//! text from a machine.

use assay_model::advice::Moderator;
use assay_model::criterion::Metric;
use assay_model::trial::Verdict;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Value of the field `format`, which identifies the format and its version.
pub const FORMAT: &str = "assay-pool 1";

/// Trials that an owner contributes to a pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bundle {
    /// Format of the bundle, which is [`FORMAT`].
    pub format: String,
    /// Public key of the owner, as 64 hexadecimal digits.
    pub owner: String,
    /// Whether the data was not measured, but generated for a demonstration or test.
    pub simulated: bool,
    /// Version of assay that wrote the bundle.
    pub assay: String,
    /// Machines of the owner.
    pub machines: Vec<BundleMachine>,
}

/// A machine and all catalogue trials that were started on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Machine")]
pub struct BundleMachine {
    /// Id of the machine, as 32 hexadecimal digits. Only the owner can find out which machine this is.
    pub id: String,
    /// Trials of the machine.
    pub trials: Vec<BundleTrial>,
}

/// A trial, reduced to the part that is shared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Trial")]
pub struct BundleTrial {
    /// Id of the trial, as 32 hexadecimal digits. It is always the same for this trial of this owner.
    pub id: String,
    /// Settings that were fixed before the measurement.
    pub plan: BundlePlan,
    /// Version of assay that ran the trial.
    pub assay: String,
    /// First two numbers of the kernel version, such as `6.1`; `None` if unknown.
    pub kernel: Option<String>,
    /// First two numbers of the fio version, such as `3.33`; `None` if unknown.
    pub fio: Option<String>,
    /// Moderators (properties of the machine that may influence the gain) with their values, as far as the advice page
    /// declares them.
    pub moderators: BTreeMap<Moderator, String>,
    /// Results of the pairs, in order.
    pub pairs: Vec<Pair>,
    /// Whether the trial reached its stopping rule.
    pub ended: TrialEnd,
    /// Verdict on the pairs of this trial alone.
    pub verdict: Verdict,
}

/// Settings of a trial that were fixed before the measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Plan")]
pub struct BundlePlan {
    /// Id of the advice page.
    pub advice: String,
    /// Digest of the advice page. `None` if another version of assay ran the trial, because the page of that version
    /// may differ.
    pub page: Option<String>,
    /// Parameters of the advice with their values. A value is shared if the page lists it or if it is a number;
    /// otherwise the value is `other`.
    pub parameters: BTreeMap<String, String>,
    /// Kind of the change, such as `mount-option`, `zfs-property` or `side-by-side`.
    pub change: String,
    /// Whether both sides were the baseline, to measure noise (A/A trial).
    pub both_same: bool,
    /// Metric on which the verdict is based.
    #[schemars(with = "String")]
    pub metric: Metric,
    /// Smallest relevant difference as a fraction: 0.03 for 3 %.
    pub margin: f64,
    /// Accepted probability of a false "better", 0 to 1.
    pub alpha: f64,
    /// Measured time of each slot in milliseconds.
    pub slot_ms: u64,
    /// Washout of each slot in milliseconds.
    pub washout_ms: u64,
    /// Maximum number of pairs.
    pub max_pairs: u32,
    /// Seed of the randomised order and of the randomisation test.
    pub seed: u64,
    /// Letter for each pair that names the side which was measured first. `A` is the baseline, `B` the change.
    pub coins: String,
}

/// Result of a pair: the logarithm of the gain, or the reason why there is no gain.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum Pair {
    /// Natural logarithm of the improvement of B over A, rounded to a millionth. Above 0, B is better.
    Effect(f64),
    /// The pair has no effect. Contains the reason.
    Without(Without),
}

/// Reason why a pair has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Without {
    /// The load failed with the change, but not on the baseline.
    FailedChanged,
    /// The load failed on the baseline.
    Failed,
    /// A doubt (a reason to distrust a figure) made the pair void.
    Void,
}

/// How a trial ended.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Ended")]
pub enum TrialEnd {
    /// A crash interrupted the trial, or the trial is still running.
    CutOff,
    /// The user, the budget or an error stopped the trial.
    Stopped,
    /// The trial reached its stopping rule.
    Done,
}

impl BundleTrial {
    /// Returns the effects of all pairs that have one.
    pub fn effects(&self) -> impl Iterator<Item = f64> + '_ {
        self.pairs.iter().filter_map(|pair| match pair {
            Pair::Effect(effect) => Some(*effect),
            Pair::Without(_) => None,
        })
    }
}
