//! A study: a published benchmark as a repeatable experiment, with the published figures beside ours and a verdict on
//! the conclusions.

mod outcome;

pub use outcome::{
    Cell, JudgedClaim, JudgedConclusion, NotTried, Observation, Place, Ranking, StudyResult,
    StudyRun, Support,
};

use serde::{Deserialize, Serialize};

/// A study as in its file under `studies/`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Name of the study, equal to that of its file.
    pub name: String,
    /// Title on one line.
    pub title: String,
    /// The question.
    pub question: String,
    /// The bench of `assay-studies` that executes it.
    pub bench: String,
    /// The publication, and the machine of its measurements.
    pub source: Source,
    /// The short and the full form.
    pub forms: Forms,
    /// The compared configurations.
    #[serde(rename = "configuration")]
    pub configurations: Vec<Configuration>,
    /// The figures that are measured or counted in each configuration.
    #[serde(rename = "figure")]
    pub figures: Vec<Figure>,
    /// The author's figures.
    #[serde(default)]
    pub published: Vec<Published>,
    /// The author's conclusions.
    #[serde(rename = "conclusion")]
    pub conclusions: Vec<Conclusion>,
}

impl Study {
    /// Returns the configurations of a form in the order of the study.
    #[must_use]
    pub fn tried(&self, form: &Form) -> Vec<&Configuration> {
        let wanted = form.configurations.as_ref();
        self.configurations
            .iter()
            .filter(|one| wanted.is_none_or(|names| names.contains(&one.name)))
            .filter(|one| !one.published_only)
            .collect()
    }

    /// Whether a form measures this figure in this configuration.
    #[must_use]
    pub fn asks(&self, form: &Form, configuration: &Configuration, figure: &Figure) -> bool {
        let names = form.figures.as_ref();
        let named = names.is_none_or(|names| names.contains(&figure.name));
        figure.derived.is_none() && named && configuration.has(figure)
    }

    /// Returns the figures that a bench measures; the others are derived from them.
    #[must_use]
    pub fn measured(&self) -> Vec<&Figure> {
        let all = self.figures.iter();
        all.filter(|one| one.derived.is_none()).collect()
    }

    /// Returns the configuration with this name.
    #[must_use]
    pub fn configuration(&self, name: &str) -> Option<&Configuration> {
        self.configurations.iter().find(|one| one.name == name)
    }

    /// Returns the figure with this name.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|one| one.name == name)
    }
}

/// Source of the published figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Title of the article.
    pub title: String,
    /// Year of the article, if it states one.
    pub year: Option<u16>,
    /// Machine of the measurements, on one line.
    pub machine: String,
}

/// The forms in which a study can be run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Forms {
    /// A short form that takes minutes.
    pub quick: Form,
    /// The form of the author.
    pub full: Form,
}

/// Extent of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Form {
    /// Number of rounds; each measures every configuration, in random order.
    pub rounds: u32,
    /// Configurations; all if absent.
    #[serde(default)]
    pub configurations: Option<Vec<String>>,
    /// Figures; all if absent.
    #[serde(default)]
    pub figures: Option<Vec<String>>,
    /// Settings of the bench: sizes, runtimes.
    #[serde(flatten)]
    #[schemars(with = "std::collections::BTreeMap<String, serde_json::Value>")]
    pub settings: toml::Table,
}

/// One of the compared configurations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Configuration {
    /// Its name within the study.
    pub name: String,
    /// Title for readers; the name if absent.
    pub title: Option<String>,
    /// Whether it represents hardware of the author, such as a certain disk: it has published
    /// figures, but cannot be measured.
    #[serde(default)]
    pub published_only: bool,
    /// Figures that are measured in it; all if absent.
    pub figures: Option<Vec<String>>,
    /// Settings of the bench.
    #[serde(flatten)]
    #[schemars(with = "std::collections::BTreeMap<String, serde_json::Value>")]
    pub settings: toml::Table,
}

impl Configuration {
    /// Whether the figure is measured in it.
    #[must_use]
    pub fn has(&self, figure: &Figure) -> bool {
        let names = self.figures.as_ref();
        names.is_none_or(|names| names.contains(&figure.name))
    }

    /// Returns the title for readers.
    #[must_use]
    pub fn title(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }
}

/// Direction in which a figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Throughput, IOPS.
    Higher,
    /// Latency, bytes lost.
    Lower,
    /// Neither direction is better.
    Neither,
}

/// A measured or counted figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Figure {
    /// Its name within the study.
    pub name: String,
    /// Title for readers; the name if absent.
    pub title: Option<String>,
    /// Unit: `IOPS`, `B/s`, `ns`, `B`, `%`, or empty for a plain number or ratio.
    #[serde(default)]
    pub unit: String,
    /// Direction in which it is better.
    pub better: Better,
    /// Whether it is counted and not measured: one round suffices, because the count never varies.
    #[serde(default)]
    pub exact: bool,
    /// Figures with the same word are measured together; a figure without a word is measured
    /// separately.
    pub together: Option<String>,
    /// Formula, if it is computed from other figures of the same round.
    pub derived: Option<Derived>,
    /// Position on a curve, if it is shown with the other points of the curve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<Curve>,
    /// Whether the configurations are ranked by it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ranked: bool,
    /// Settings of the bench: a workload as in a plan, a counter.
    #[serde(flatten)]
    #[schemars(with = "std::collections::BTreeMap<String, serde_json::Value>")]
    pub settings: toml::Table,
}

impl Figure {
    /// Returns the title for readers.
    #[must_use]
    pub fn title(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }
}

/// A curve through figures of one unit: a quantity over a variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Curve {
    /// Title of the curve, the same for all points.
    pub of: String,
    /// The variable, such as `clients`.
    pub over: String,
    /// Value of the variable at this point.
    pub at: u32,
}

/// Formula of a derived figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Derived {
    /// Mean of `a` and a scaled `b`. The factor makes `b` equal to `a` in the configuration
    /// `baseline`, so both have the same weight there.
    Weighted {
        /// The unscaled figure.
        a: String,
        /// The scaled figure.
        b: String,
        /// The configuration that determines the factor.
        baseline: String,
    },
    /// Mean of several figures.
    Mean {
        /// The figures.
        of: Vec<String>,
    },
    /// Largest of several figures; missing ones are ignored.
    Largest {
        /// The figures.
        of: Vec<String>,
    },
    /// One figure divided by another.
    Quotient {
        /// Numerator.
        of: String,
        /// Denominator.
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
    /// Returns the figures that the formula uses.
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

/// Precision of a published figure.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// The exact figure.
    #[default]
    Exactly,
    /// An approximate figure, or one read from a graph.
    About,
    /// The figure is below this value.
    Below,
    /// The figure is above this value.
    Above,
}

/// A published figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The configuration.
    pub configuration: String,
    /// The figure.
    pub figure: String,
    /// Value in the unit of the figure.
    pub value: f64,
    /// Precision of the value.
    #[serde(default)]
    pub is: Bound,
    /// Differences from our measurement.
    #[serde(default)]
    pub note: String,
}

/// A conclusion of the author, as claims that figures can support or contradict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Conclusion {
    /// The conclusion in our words.
    pub says: String,
    /// The claims; all must hold.
    #[serde(rename = "claim")]
    pub claims: Vec<Claim>,
    /// Answer of primary sources today, if they decide it independent of measurements.
    #[serde(default)]
    pub today: String,
    /// Requirement for a decision.
    pub needs: Option<Needs>,
}

/// Requirement for a decision on a conclusion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Needs {
    /// Hardware virtualisation: the figures depend on the cost of a guest's instructions, which an
    /// emulator does not reproduce.
    Kvm,
    /// A load generator on another machine: the figures depend on the number of CPUs that the
    /// servers have for themselves.
    OwnGenerator,
}

/// A claim that figures can support or contradict. Bounds are inclusive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Claim {
    /// The figure of `of` divided by that of `to` is within the bounds.
    Ratio {
        /// The figure.
        figure: String,
        /// Configuration of the numerator.
        of: String,
        /// Configuration of the denominator.
        to: String,
        /// Lower bound.
        at_least: Option<f64>,
        /// Upper bound.
        at_most: Option<f64>,
    },
    /// The figure of a configuration is within the bounds.
    Value {
        /// The figure.
        figure: String,
        /// The configuration.
        of: String,
        /// Lower bound.
        at_least: Option<f64>,
        /// Upper bound.
        at_most: Option<f64>,
    },
    /// The order of the configurations by the figure, best first.
    Order {
        /// The figure.
        figure: String,
        /// The configurations, best first.
        best_first: Vec<String>,
    },
}
