//! Results of a study: raw and judged.

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
    /// 1-based round.
    pub round: u32,
    /// Value in the unit of the figure.
    pub value: f64,
    /// Reasons why it may be misleading; empty if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
    /// Whether it is invalid: it is stored and shown, but no result uses it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub void: bool,
}

/// A measurement that was not possible here, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NotTried {
    /// The configuration.
    pub configuration: String,
    /// The figure; all if `None`.
    pub figure: Option<String>,
    /// The reason.
    pub why: String,
}

/// An executed study with raw results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StudyRun {
    /// Id, the same in every store.
    pub uid: String,
    /// Version of assay.
    pub assay_version: String,
    /// Start time.
    pub started: Timestamp,
    /// End time; `None` while it runs.
    pub ended: Option<Timestamp>,
    /// The study at that time.
    pub study: Study,
    /// `quick` or `full`.
    pub form: String,
    /// The machine: one line each for hardware, guest and versions.
    pub machine: BTreeMap<String, String>,
    /// Seed of order, offsets and data.
    pub seed: u64,
    /// Whether it ran in an emulated guest (TCG): figures that depend on the speed of instructions
    /// are then not valid for real machines.
    #[serde(default)]
    pub emulated: bool,
    /// All observations.
    pub observations: Vec<Observation>,
    /// Measurements that were not possible.
    pub not_tried: Vec<NotTried>,
    /// Whether it was completed.
    pub complete: bool,
}

/// Support for a conclusion or claim; a later variant outweighs an earlier one.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Support {
    /// The figures support it.
    Supported,
    /// It could not be measured here.
    NotTried,
    /// The figures do not decide it: intervals are too wide, or the machine is unsuitable.
    Unresolved,
    /// The figures contradict it.
    Contradicted,
}

/// A claim with its judgement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JudgedClaim {
    /// The claim.
    pub claim: Claim,
    /// The judgement.
    pub finding: Support,
    /// The ratio or value with its interval; `None` for an order, or without measurements.
    pub estimate: Option<Estimate>,
    /// The same from the published figures.
    pub published: Option<f64>,
    /// Judgement by the published figures; `None` without them.
    pub published_finding: Option<Support>,
    /// Reason in one sentence.
    pub why: String,
}

/// A conclusion with its judgement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JudgedConclusion {
    /// The conclusion in our words.
    pub says: String,
    /// The weightiest judgement of its claims.
    pub finding: Support,
    /// The same from the published figures; `None` if they do not cover every claim.
    pub published_finding: Option<Support>,
    /// Reason why it cannot be decided here, independent of the claims; else empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Its claims.
    pub claims: Vec<JudgedClaim>,
    /// Answer of primary sources today.
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
    /// The published figure; for a derived figure computed from published ones.
    pub published: Option<Published>,
}

/// A configuration in a ranking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Place {
    /// The configuration.
    pub configuration: String,
    /// Its figure.
    pub estimate: Estimate,
    /// Whether it differs significantly from the next one: the interval of their ratio excludes 1.
    /// `None` for the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart: Option<bool>,
    /// Its rank from 1 among the published figures of the ranked configurations; `None` without
    /// published figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<usize>,
}

/// The measured configurations, best first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Ranking {
    /// The figure.
    pub figure: String,
    /// Best first.
    pub places: Vec<Place>,
}

/// Results of a study: derived on read, never stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StudyResult {
    /// Every configuration × figure with a measured or published value, in the order of the study.
    pub cells: Vec<Cell>,
    /// Judged conclusions.
    pub conclusions: Vec<JudgedConclusion>,
    /// One ranking for each ranked figure that at least two configurations have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rankings: Vec<Ranking>,
}
