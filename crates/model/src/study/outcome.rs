//! Results of a study: raw observations, and the results that are derived from them.

use super::{Claim, Published, Study};
use crate::result::Estimate;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Value of one figure in one configuration and one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Observation {
    /// Name of the configuration.
    pub configuration: String,
    /// Name of the figure.
    pub figure: String,
    /// Number of the round, counted from 1.
    pub round: u32,
    /// Value in the unit of the figure.
    pub value: f64,
    /// Reasons why the value may be misleading; empty if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
    /// Whether the value is invalid. An invalid value is stored and shown, but not used for results.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub void: bool,
}

/// A measurement that was not possible here, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NotTried {
    /// Name of the configuration.
    pub configuration: String,
    /// Name of the figure; `None` if no figure of the configuration could be measured.
    pub figure: Option<String>,
    /// Reason why the measurement was not possible.
    pub why: String,
}

/// An executed study with its raw results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StudyRun {
    /// Random id of the execution. It is the same in every store.
    pub uid: String,
    /// Version of assay that executed the study.
    pub assay_version: String,
    /// Start time of the study.
    pub started: Timestamp,
    /// End time; `None` while it runs.
    pub ended: Option<Timestamp>,
    /// The study in the version that was executed.
    pub study: Study,
    /// Executed form: `quick` or `full`.
    pub form: String,
    /// Description of the machine, with one entry each for hardware, guest and versions.
    pub machine: BTreeMap<String, String>,
    /// Seed of the execution order, and of offsets and data.
    pub seed: u64,
    /// Whether the study ran in an emulated guest (TCG). Figures that depend on the speed of instructions are then not
    /// valid for real machines.
    #[serde(default)]
    pub emulated: bool,
    /// All measured and counted values.
    pub observations: Vec<Observation>,
    /// Measurements that were not possible.
    pub not_tried: Vec<NotTried>,
    /// Whether all steps were executed.
    pub complete: bool,
}

/// Whether the figures support a conclusion or claim. Of the claims of a conclusion, the one whose variant is listed
/// last here decides.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Support {
    /// The figures support the claim.
    Supported,
    /// The claim could not be measured here.
    NotTried,
    /// The figures do not decide the claim, because intervals are too wide or the machine is unsuitable.
    Unresolved,
    /// The figures contradict the claim.
    Contradicted,
}

/// A claim with its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JudgedClaim {
    /// The claim that was tested.
    pub claim: Claim,
    /// Whether our figures support the claim.
    pub finding: Support,
    /// Measured ratio or value with its interval. `None` if the claim is about an order, or if there are no
    /// measurements.
    pub estimate: Option<Estimate>,
    /// The same ratio or value, computed from the published figures.
    pub published: Option<f64>,
    /// Whether the published figures support the claim; `None` if there are no published figures for it.
    pub published_finding: Option<Support>,
    /// Reason for the result in one sentence.
    pub why: String,
}

/// A conclusion with its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JudgedConclusion {
    /// The conclusion of the author, in the words of assay's authors.
    pub says: String,
    /// Whether our figures support the conclusion. The claim with the most weight decides (see [`Support`]).
    pub finding: Support,
    /// Whether the published figures support the conclusion. `None` if they do not cover every claim.
    pub published_finding: Option<Support>,
    /// Reason why the conclusion cannot be decided here, whatever the claims. Empty if it can be decided.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The claims of the conclusion.
    pub claims: Vec<JudgedClaim>,
    /// Answer of primary sources today. Empty if they do not decide the conclusion.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub today: String,
}

/// Measured and published value of one figure in one configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Cell {
    /// Name of the configuration.
    pub configuration: String,
    /// Name of the figure.
    pub figure: String,
    /// Our estimate from the valid rounds.
    pub estimate: Option<Estimate>,
    /// Number of rounds that were excluded, because they are void.
    pub rounds_void: u32,
    /// Doubts (reasons to distrust a figure), each with the number of observations that have it.
    pub doubts: BTreeMap<String, u32>,
    /// The published value. For a derived figure, it is computed from published figures.
    pub published: Option<Published>,
}

/// A configuration in a ranking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Place {
    /// Name of the configuration.
    pub configuration: String,
    /// Estimate of the figure that determines the order of the ranking.
    pub estimate: Estimate,
    /// Whether the figure differs significantly from that of the next configuration: the interval of the ratio excludes
    /// 1. `None` for the last configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart: Option<bool>,
    /// Rank by the published figures among the ranked configurations, counted from 1. `None` without published figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<usize>,
}

/// The measured configurations, ordered by one figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Ranking {
    /// Name of the figure.
    pub figure: String,
    /// Places of the configurations, best first.
    pub places: Vec<Place>,
}

/// Results of a study. They are derived when a study is read, and never stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StudyResult {
    /// Measured and published values of every configuration × figure, in the order of the study.
    pub cells: Vec<Cell>,
    /// Conclusions with their results.
    pub conclusions: Vec<JudgedConclusion>,
    /// Rankings: one for each figure that is to be ranked and that at least two configurations have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rankings: Vec<Ranking>,
}
