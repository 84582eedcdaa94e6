//! A study: a published benchmark as an experiment that anybody can run again, with the published
//! figures beside ours and a verdict on what was concluded from them.

mod outcome;

pub use outcome::{
    Cell, JudgedClaim, JudgedConclusion, NotTried, Observation, Place, Ranking, StudyResult,
    StudyRun, Support,
};

use serde::{Deserialize, Serialize};

/// A study as its file under `studies/` says it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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

impl Study {
    /// The configurations that a form tries, in the order of the study.
    #[must_use]
    pub fn tried(&self, form: &Form) -> Vec<&Configuration> {
        let wanted = form.configurations.as_ref();
        self.configurations
            .iter()
            .filter(|one| wanted.is_none_or(|names| names.contains(&one.name)))
            .filter(|one| !one.published_only)
            .collect()
    }

    /// Whether a form measures this figure of this configuration.
    #[must_use]
    pub fn asks(&self, form: &Form, configuration: &Configuration, figure: &Figure) -> bool {
        let names = form.figures.as_ref();
        let named = names.is_none_or(|names| names.contains(&figure.name));
        figure.derived.is_none() && named && configuration.has(figure)
    }

    /// The figures that a bench measures; the others are derived from them.
    #[must_use]
    pub fn measured(&self) -> Vec<&Figure> {
        let all = self.figures.iter();
        all.filter(|one| one.derived.is_none()).collect()
    }

    /// The configuration of that name.
    #[must_use]
    pub fn configuration(&self, name: &str) -> Option<&Configuration> {
        self.configurations.iter().find(|one| one.name == name)
    }

    /// The figure of that name.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|one| one.name == name)
    }
}

/// Where the published figures come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Forms {
    /// Minutes.
    pub quick: Form,
    /// As the author did it.
    pub full: Form,
}

/// How much of a study is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Form {
    /// Times that every configuration is measured, in random order within each round.
    pub rounds: u32,
    /// Configurations that are tried; all when left out.
    #[serde(default)]
    pub configurations: Option<Vec<String>>,
    /// Figures that are measured; all when left out.
    #[serde(default)]
    pub figures: Option<Vec<String>>,
    /// What the bench wants to know: sizes, runtimes.
    #[serde(flatten)]
    #[schemars(with = "std::collections::BTreeMap<String, serde_json::Value>")]
    pub settings: toml::Table,
}

/// One of the things that are compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Configuration {
    /// Its name within the study.
    pub name: String,
    /// As a reader sees it; the name when left out.
    pub title: Option<String>,
    /// It stands for what the author had, such as a certain disk: there are published figures of it
    /// and nothing to measure.
    #[serde(default)]
    pub published_only: bool,
    /// The figures that are measured in it; all when left out.
    pub figures: Option<Vec<String>>,
    /// What the bench makes of it.
    #[serde(flatten)]
    #[schemars(with = "std::collections::BTreeMap<String, serde_json::Value>")]
    pub settings: toml::Table,
}

impl Configuration {
    /// Whether that figure is measured in it.
    #[must_use]
    pub fn has(&self, figure: &Figure) -> bool {
        let names = self.figures.as_ref();
        names.is_none_or(|names| names.contains(&figure.name))
    }

    /// As a reader sees it.
    #[must_use]
    pub fn title(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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
    /// It is counted, not measured: the same things give the same number, and one round is enough.
    #[serde(default)]
    pub exact: bool,
    /// Figures with the same word are measured in one go; a figure without is measured by itself.
    pub together: Option<String>,
    /// It is not measured but computed from other figures of the same round.
    pub derived: Option<Derived>,
    /// It is a point of a curve, and is shown with the others of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<Curve>,
    /// The configurations are ranked by it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ranked: bool,
    /// What the bench makes of it: a workload as in a plan, a counter.
    #[serde(flatten)]
    #[schemars(with = "std::collections::BTreeMap<String, serde_json::Value>")]
    pub settings: toml::Table,
}

impl Figure {
    /// As a reader sees it.
    #[must_use]
    pub fn title(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }
}

/// A curve that figures of one unit are points of: what is measured, over what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Curve {
    /// What it shows, the same words for all its points.
    pub of: String,
    /// What the points differ in, such as `clients`.
    pub over: String,
    /// Where on it the figure is.
    pub at: u32,
}

/// How a figure is computed from others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Derived {
    /// The mean of `a` and of `b` times a factor: that which makes `b` as large as `a` in the
    /// configuration `baseline`. Both count the same in it then.
    Weighted {
        /// A figure, taken as it is.
        a: String,
        /// A figure, brought to the size of `a`.
        b: String,
        /// The configuration that the factor is taken from.
        baseline: String,
    },
    /// The mean of figures.
    Mean {
        /// Which.
        of: Vec<String>,
    },
    /// The largest of figures, of those that are there.
    Largest {
        /// Which.
        of: Vec<String>,
    },
    /// One figure divided by another.
    Quotient {
        /// Above the line.
        of: String,
        /// Below it.
        by: String,
    },
    /// Requests in flight by Little's law: rate × mean latency (J. D. C. Little, *Operations
    /// Research* 9 (3), 1961).
    InFlight {
        /// A rate per second.
        rate: String,
        /// A mean latency in nanoseconds.
        latency: String,
    },
}

impl Derived {
    /// The figures that it is computed from.
    #[must_use]
    pub fn of(&self) -> Vec<&str> {
        match self {
            Self::Weighted { a, b, .. } => vec![a, b],
            Self::Mean { of } | Self::Largest { of } => of.iter().map(String::as_str).collect(),
            Self::Quotient { of, by } => vec![of, by],
            Self::InFlight { rate, latency } => vec![rate, latency],
        }
    }
}

/// What a published figure says exactly.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// The figure.
    #[default]
    Exactly,
    /// "About", or read from a graph.
    About,
    /// It is less than this.
    Below,
    /// It is more than this.
    Above,
}

/// A published figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Which configuration.
    pub configuration: String,
    /// Which figure.
    pub figure: String,
    /// In the unit of the figure.
    pub value: f64,
    /// Whether it is the figure or a bound for it.
    #[serde(default)]
    pub is: Bound,
    /// What differs from how we measure it.
    #[serde(default)]
    pub note: String,
}

/// Something the author concluded, as claims that figures can support or contradict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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
    /// What it takes to decide it.
    pub needs: Option<Needs>,
}

/// What it takes to decide a conclusion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Needs {
    /// A processor that runs guests itself: the figures depend on what a guest's instructions cost,
    /// and that is not to be had from an emulator.
    Kvm,
    /// A load generator on a machine of its own: the figures depend on how many CPUs the servers have to
    /// themselves.
    OwnGenerator,
}

/// What figures can support or contradict. Bounds belong to the range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
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
