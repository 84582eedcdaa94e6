//! What came of a study: raw, and judged.

use super::{Claim, Published, Study};
use crate::result::Estimate;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One figure of one configuration in one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Observation {
    /// Which configuration.
    pub configuration: String,
    /// Which figure.
    pub figure: String,
    /// 1-based round.
    pub round: u32,
    /// In the unit of the figure.
    pub value: f64,
    /// Why it may not mean what it says; empty when nothing speaks against it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
    /// It does not mean what it says: kept and shown, and nothing rests on it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub void: bool,
}

/// What could not be tried here, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NotTried {
    /// Which configuration.
    pub configuration: String,
    /// Which figure of it; all when none.
    pub figure: Option<String>,
    /// Why.
    pub why: String,
}

/// A study that was carried out, raw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StudyRun {
    /// Its name in every store.
    pub uid: String,
    /// Which assay.
    pub assay_version: String,
    /// When it began.
    pub started: Timestamp,
    /// When it ended; none while it goes on.
    pub ended: Option<Timestamp>,
    /// The study as it was then.
    pub study: Study,
    /// `quick` or `full`.
    pub form: String,
    /// On what: machine, guest, versions; a line each.
    pub machine: BTreeMap<String, String>,
    /// Seed of order, offsets and data.
    pub seed: u64,
    /// Whether what was measured ran in an emulated guest (TCG): figures that depend on what its
    /// instructions cost say nothing about real machines then.
    #[serde(default)]
    pub emulated: bool,
    /// Everything that was observed.
    pub observations: Vec<Observation>,
    /// What could not be tried.
    pub not_tried: Vec<NotTried>,
    /// Whether it went to its end.
    pub complete: bool,
}

/// What became of a conclusion or a claim; later ones outweigh earlier ones.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Support {
    /// The figures support it.
    Supported,
    /// It could not be tried here.
    NotTried,
    /// The figures do not tell: intervals are too wide, or the machine is none that could.
    Unresolved,
    /// The figures contradict it.
    Contradicted,
}

/// A claim as judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JudgedClaim {
    /// The claim.
    pub claim: Claim,
    /// What became of it.
    pub finding: Support,
    /// The ratio or value it rests on, with its interval; none for an order or where nothing was
    /// measured.
    pub estimate: Option<Estimate>,
    /// The same from the published figures.
    pub published: Option<f64>,
    /// What the published figures say to it; none where there are none.
    pub published_finding: Option<Support>,
    /// Why, in a sentence.
    pub why: String,
}

/// A conclusion as judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JudgedConclusion {
    /// In our words.
    pub says: String,
    /// The weightiest finding among its claims.
    pub finding: Support,
    /// The same from the published figures; none where they do not cover every claim.
    pub published_finding: Option<Support>,
    /// Why it cannot be decided here whatever the claims say; else empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Its claims.
    pub claims: Vec<JudgedClaim>,
    /// What is known today from primary sources.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub today: String,
}

/// One figure of one configuration: ours beside the published one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Cell {
    /// Which configuration.
    pub configuration: String,
    /// Which figure.
    pub figure: String,
    /// Ours, over the rounds that count.
    pub estimate: Option<Estimate>,
    /// Rounds left out because their observation is void.
    pub rounds_void: u32,
    /// Doubts and how many observations carry them.
    pub doubts: BTreeMap<String, u32>,
    /// The published one; computed from published ones where the figure is derived.
    pub published: Option<Published>,
}

/// A configuration in a ranking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Place {
    /// Which configuration.
    pub configuration: String,
    /// Its figure.
    pub estimate: Estimate,
    /// Whether it is told apart from the next one: the interval of their ratio leaves out 1. None for
    /// the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart: Option<bool>,
    /// Its 1-based rank among the published figures of the configurations that are ranked here; none
    /// where nothing is published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<usize>,
}

/// The configurations that were measured, best first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Ranking {
    /// By which figure.
    pub figure: String,
    /// Best first.
    pub places: Vec<Place>,
}

/// What a study came to: derived on read, never stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StudyResult {
    /// Every configuration × figure of which something is known, in the order of the study.
    pub cells: Vec<Cell>,
    /// Every conclusion.
    pub conclusions: Vec<JudgedConclusion>,
    /// By each figure that is ranked, where two or more configurations have it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rankings: Vec<Ranking>,
}
