//! A study: a published benchmark as an experiment that anybody can run again, with the published
//! figures beside ours and a verdict on what was concluded from them.

use crate::result::Estimate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A study as its file under `studies/` says it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Its name: that of its file.
    pub name: String,
    /// One line.
    pub title: String,
    /// What it asks.
    pub question: String,
    /// Which bench of `assay-studies` carries it out.
    pub bench: String,
    /// What is published, where, and on what it was measured.
    pub source: Source,
    /// The short and the long form.
    pub forms: Forms,
    /// What is compared.
    #[serde(rename = "configuration")]
    pub configurations: Vec<Configuration>,
    /// What is measured or counted in each configuration.
    #[serde(rename = "figure")]
    pub figures: Vec<Figure>,
    /// What the author measured.
    #[serde(default)]
    pub published: Vec<Published>,
    /// What the author concluded.
    #[serde(rename = "conclusion")]
    pub conclusions: Vec<Conclusion>,
}

/// Where the published figures come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Title of the article.
    pub title: String,
    /// Year of the article, where it says one.
    pub year: Option<u16>,
    /// What it was measured on, in a line.
    pub machine: String,
}

/// The forms in which a study can be run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forms {
    /// Minutes.
    pub quick: Form,
    /// As the author did it.
    pub full: Form,
}

/// How much of a study is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Form {
    /// Times that every configuration is measured, in random order within each round.
    pub rounds: u32,
    /// Configurations that are tried; all when left out.
    #[serde(default)]
    pub configurations: Option<Vec<String>>,
    /// What the bench wants to know: sizes, runtimes.
    #[serde(flatten)]
    pub settings: toml::Table,
}

/// One of the things that are compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Configuration {
    /// Its name within the study.
    pub name: String,
    /// As a reader sees it; the name when left out.
    pub title: Option<String>,
    /// What the bench makes of it.
    #[serde(flatten)]
    pub settings: toml::Table,
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Throughput, IOPS.
    Higher,
    /// Latency, bytes lost.
    Lower,
    /// A share, a count: neither.
    Neither,
}

/// Something that is measured or counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Its name within the study.
    pub name: String,
    /// As a reader sees it; the name when left out.
    pub title: Option<String>,
    /// `IOPS`, `B/s`, `ns`, `B`, `%`, or nothing for a plain number; a ratio is a number.
    #[serde(default)]
    pub unit: String,
    /// Which way is better.
    pub better: Better,
    /// What the bench makes of it: a workload as in a plan, a counter.
    #[serde(flatten)]
    pub settings: toml::Table,
}

/// A published figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Which configuration.
    pub configuration: String,
    /// Which figure.
    pub figure: String,
    /// In the unit of the figure.
    pub value: f64,
    /// What differs from how we measure it.
    #[serde(default)]
    pub note: String,
}

/// Something the author concluded, as claims that figures can support or contradict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conclusion {
    /// In our words.
    pub says: String,
    /// All have to hold.
    #[serde(rename = "claim")]
    pub claims: Vec<Claim>,
    /// What is known today from primary sources, where that settles it whatever is measured.
    #[serde(default)]
    pub today: String,
}

/// What figures can support or contradict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Claim {
    /// The figure of `of` divided by that of `to` lies within the bounds.
    Ratio {
        /// Which figure.
        figure: String,
        /// The configuration above the line.
        of: String,
        /// The configuration below it.
        to: String,
        /// Lower bound.
        at_least: Option<f64>,
        /// Upper bound.
        at_most: Option<f64>,
    },
    /// The figure of a configuration lies within the bounds.
    Value {
        /// Which figure.
        figure: String,
        /// Which configuration.
        of: String,
        /// Lower bound.
        at_least: Option<f64>,
        /// Upper bound.
        at_most: Option<f64>,
    },
    /// The configurations rank in this order by the figure, best first.
    Order {
        /// Which figure.
        figure: String,
        /// Best first.
        best_first: Vec<String>,
    },
}

/// One figure of one configuration in one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
}

/// What could not be tried here, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotTried {
    /// Which configuration.
    pub configuration: String,
    /// Which figure of it; all when none.
    pub figure: Option<String>,
    /// Why.
    pub why: String,
}

/// A study that was carried out, raw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudyRun {
    /// The study as it was then.
    pub study: Study,
    /// `quick` or `full`.
    pub form: String,
    /// On what: machine, guest, versions; a line each.
    pub machine: BTreeMap<String, String>,
    /// Seed of order, offsets and data.
    pub seed: u64,
    /// Everything that was observed.
    pub observations: Vec<Observation>,
    /// What could not be tried.
    pub not_tried: Vec<NotTried>,
    /// Whether it went to its end.
    pub complete: bool,
}

/// What became of a conclusion or a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// The figures support it.
    Supported,
    /// The intervals are too wide to tell.
    Unresolved,
    /// It could not be tried here.
    NotTried,
    /// The figures contradict it.
    Contradicted,
}

/// A claim as judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JudgedClaim {
    /// The claim.
    pub claim: Claim,
    /// What became of it.
    pub finding: Finding,
    /// The ratio or value it rests on, with its interval; none for an order or where nothing was
    /// measured.
    pub estimate: Option<Estimate>,
    /// The same from the published figures.
    pub published: Option<f64>,
    /// Why, in a sentence.
    pub why: String,
}
