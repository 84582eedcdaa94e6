//! Results of a study: raw observations, and judgements derived from them.

use super::{Claim, Published, Study};
use crate::result::Estimate;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One figure of one configuration in one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Observation {
    /// The configuration.
    pub configuration: String,
    /// The figure.
    pub figure: String,
    /// Number of the round, from 1.
    pub round: u32,
    /// Value in the unit of the figure.
    pub value: f64,
    /// Reasons why the value may be misleading; empty if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
    /// Whether the value is invalid. An invalid value is stored and shown, but no result uses it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub void: bool,
}

/// A measurement that was not possible here, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NotTried {
    /// The configuration.
    pub configuration: String,
    /// The figure; `None` if no figure could be measured.
    pub figure: Option<String>,
    /// The reason.
    pub why: String,
}

/// An executed study with raw results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StudyRun {
    /// Random id of the execution; the same in every store.
    pub uid: String,
    /// Version of assay that executed the study.
    pub assay_version: String,
    /// Start time.
    pub started: Timestamp,
    /// End time; `None` while it runs.
    pub ended: Option<Timestamp>,
    /// The study as it was when it was executed.
    pub study: Study,
    /// Executed form: `quick` or `full`.
    pub form: String,
    /// Description of the machine: one entry each for hardware, guest and versions.
    pub machine: BTreeMap<String, String>,
    /// Seed of the execution order, and of offsets and data.
    pub seed: u64,
    /// Whether the study ran in an emulated guest (TCG). If so, figures that depend on the speed of instructions are
    /// not valid for real machines.
    #[serde(default)]
    pub emulated: bool,
    /// All observations.
    pub observations: Vec<Observation>,
    /// Measurements that were not possible.
    pub not_tried: Vec<NotTried>,
    /// Whether all steps were executed.
    pub complete: bool,
}

/// Whether the figures support a conclusion or claim. If the claims of a conclusion differ, the variant that is listed
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
    /// The figures do not decide the claim: intervals are too wide, or the machine is unsuitable.
    Unresolved,
    /// The figures contradict the claim.
    Contradicted,
}

/// A claim with its judgement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JudgedClaim {
    /// The claim.
    pub claim: Claim,
    /// The judgement.
    pub finding: Support,
    /// Measured ratio or value with its interval; `None` if the claim is about an order, or if there are no
    /// measurements.
    pub estimate: Option<Estimate>,
    /// The same ratio or value, computed from the published figures.
    pub published: Option<f64>,
    /// Judgement based on the published figures; `None` without published figures.
    pub published_finding: Option<Support>,
    /// Reason in one sentence.
    pub why: String,
}

/// A conclusion with its judgement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JudgedConclusion {
    /// The conclusion of the author, in our words.
    pub says: String,
    /// Judgement of the conclusion: that of the claim with the most weight (see [`Support`]).
    pub finding: Support,
    /// The same judgement, based on the published figures; `None` if they do not cover every claim.
    pub published_finding: Option<Support>,
    /// Reason why the conclusion cannot be decided here, independent of the claims; empty if it can be decided.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Its claims.
    pub claims: Vec<JudgedClaim>,
    /// What primary sources answer today; empty if they do not decide the conclusion.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub today: String,
}

/// One figure of one configuration: measured and published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Cell {
    /// The configuration.
    pub configuration: String,
    /// The figure.
    pub figure: String,
    /// Our estimate over the valid rounds.
    pub estimate: Option<Estimate>,
    /// Number of void rounds.
    pub rounds_void: u32,
    /// Doubts with the number of observations.
    pub doubts: BTreeMap<String, u32>,
    /// The published figure. For a derived figure, computed from published figures.
    pub published: Option<Published>,
}

/// A configuration in a ranking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Place {
    /// The configuration.
    pub configuration: String,
    /// Estimate of the figure by which the ranking is ordered.
    pub estimate: Estimate,
    /// Whether the figure differs significantly from that of the next configuration: the interval of their ratio
    /// excludes 1. `None` for the last configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart: Option<bool>,
    /// Rank of the configuration, from 1, by the published figures of the ranked configurations; `None` without
    /// published figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<usize>,
}

/// The measured configurations, best first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Ranking {
    /// The figure.
    pub figure: String,
    /// The configurations, best first.
    pub places: Vec<Place>,
}

/// Results of a study. They are derived when a study is read, and never stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StudyResult {
    /// Every configuration × figure with a measured or published value, in the order of the study.
    pub cells: Vec<Cell>,
    /// Judged conclusions.
    pub conclusions: Vec<JudgedConclusion>,
    /// One ranking for each figure that is to be ranked and that at least two configurations have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rankings: Vec<Ranking>,
}
