//! The exchanged data: trials of an owner's machines, with the part of a trial that is shared. Every field is
//! a number, a digest or a word of assay; no field can contain text of a machine.

use assay_model::advice::Moderator;
use assay_model::criterion::Metric;
use assay_model::trial::Verdict;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Value of the first field.
pub const FORMAT: &str = "assay-pool 1";

/// Trials that an owner contributes to a pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bundle {
    /// [`FORMAT`].
    pub format: String,
    /// Public key of the owner: 64 hexadecimal digits.
    pub owner: String,
    /// Not measured, but generated for a demonstration or test.
    pub simulated: bool,
    /// Version of assay that wrote the bundle.
    pub assay: String,
    /// The machines.
    pub machines: Vec<BundleMachine>,
}

/// A machine and all catalogue trials that were started on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Machine")]
pub struct BundleMachine {
    /// 32 hexadecimal digits that only the owner can trace to the machine.
    pub id: String,
    /// Trials of the machine.
    pub trials: Vec<BundleTrial>,
}

/// A trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Trial")]
pub struct BundleTrial {
    /// 32 hexadecimal digits; always the same for this trial of this owner.
    pub id: String,
    /// Settings before the measurement.
    pub plan: BundlePlan,
    /// Version of assay that ran the trial.
    pub assay: String,
    /// Kernel version, two numbers: `6.1`.
    pub kernel: Option<String>,
    /// fio version, two numbers: `3.33`.
    pub fio: Option<String>,
    /// Values of the moderators that the page declares.
    pub moderators: BTreeMap<Moderator, String>,
    /// Pairs in order.
    pub pairs: Vec<Pair>,
    /// End of the trial.
    pub ended: TrialEnd,
    /// Verdict on its own pairs.
    pub verdict: Verdict,
}

/// Settings of a trial before the measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Plan")]
pub struct BundlePlan {
    /// Advice page.
    pub advice: String,
    /// Digest of the page; `None` if another version of assay ran the trial.
    pub page: Option<String>,
    /// Parameters: values that the page lists, or numbers; otherwise `other`.
    pub parameters: BTreeMap<String, String>,
    /// Kind of the change: `mount-option`, `zfs-property`, `side-by-side`, ….
    pub change: String,
    /// Both sides were equal, to measure noise.
    pub both_same: bool,
    /// Metric of the verdict.
    #[schemars(with = "String")]
    pub metric: Metric,
    /// Smallest relevant ratio.
    pub margin: f64,
    /// Significance level.
    pub alpha: f64,
    /// Measured time per slot in milliseconds.
    pub slot_ms: u64,
    /// Washout per slot in milliseconds.
    pub washout_ms: u64,
    /// Maximum number of pairs.
    pub max_pairs: u32,
    /// Seed of the randomised order and of the randomisation test.
    pub seed: u64,
    /// First side of each pair: `A` is the baseline, `B` the change.
    pub coins: String,
}

/// Result of a pair: logarithm of the gain, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum Pair {
    /// ln of the improvement of B over A, rounded to a millionth.
    Effect(f64),
    /// No effect, for this reason.
    Without(Without),
}

/// Reason why a pair has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Without {
    /// The load failed only with the change.
    FailedChanged,
    /// The load failed, and not only with the change.
    Failed,
    /// The pair is void.
    Void,
}

/// End of a trial.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Ended")]
pub enum TrialEnd {
    /// The trial was cut off or is still running.
    CutOff,
    /// The user, the budget or an error stopped it.
    Stopped,
    /// The stopping rule was reached.
    Done,
}

impl BundleTrial {
    /// Returns the effects of the pairs.
    pub fn effects(&self) -> impl Iterator<Item = f64> + '_ {
        self.pairs.iter().filter_map(|pair| match pair {
            Pair::Effect(effect) => Some(*effect),
            Pair::Without(_) => None,
        })
    }
}
