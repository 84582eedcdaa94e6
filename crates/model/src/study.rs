//! A study: a published benchmark as a repeatable experiment. It contains the published figures for comparison, and the
//! author's conclusions as claims that can be tested.

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
    /// Name of the study; equal to the name of its file.
    pub name: String,
    /// Title on one line.
    pub title: String,
    /// The question that the study answers.
    pub question: String,
    /// Name of the bench in `assay-studies` that executes the study.
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
    /// The figures that the author published.
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

    /// Returns whether a form measures this figure in this configuration.
    #[must_use]
    pub fn asks(&self, form: &Form, configuration: &Configuration, figure: &Figure) -> bool {
        let names = form.figures.as_ref();
        let named = names.is_none_or(|names| names.contains(&figure.name));
        figure.derived.is_none() && named && configuration.has(figure)
    }

    /// Returns the figures that a bench measures. All other figures are derived from them.
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
    /// The full form, with the extent of the author's measurements.
    pub full: Form,
}

/// Extent of an execution of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Form {
    /// Number of rounds; each measures every configuration, in random order.
    pub rounds: u32,
    /// Names of the configurations to measure; all if absent.
    #[serde(default)]
    pub configurations: Option<Vec<String>>,
    /// Names of the figures to measure; all if absent.
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
    /// Whether the configuration represents hardware that only the author has, such as a certain disk. It has published
    /// figures, but cannot be measured.
    #[serde(default)]
    pub published_only: bool,
    /// Names of the figures that are measured in this configuration; all if absent.
    pub figures: Option<Vec<String>>,
    /// Settings for the bench, such as parameters of the configuration.
    #[serde(flatten)]
    #[schemars(with = "std::collections::BTreeMap<String, serde_json::Value>")]
    pub settings: toml::Table,
}

impl Configuration {
    /// Returns whether the figure is measured in this configuration.
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
    /// Higher is better: throughput, IOPS.
    Higher,
    /// Lower is better: latency, lost bytes.
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
    /// Direction in which the figure is better.
    pub better: Better,
    /// Whether the figure is counted, not measured. One round is then enough, because the count never varies.
    #[serde(default)]
    pub exact: bool,
    /// Name of a group of figures that are measured together. Without a name, the figure is measured separately.
    pub together: Option<String>,
    /// Formula, if the figure is computed from other figures of the same round.
    pub derived: Option<Derived>,
    /// Position on a curve, if the figure is shown as one point of a curve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<Curve>,
    /// Whether the configurations are ranked by this figure.
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

/// Position of a figure on a curve, which shows a quantity over a variable for figures of one unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Curve {
    /// Title of the curve, the same for all points.
    pub of: String,
    /// The variable on the horizontal axis, such as `clients`.
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
        /// Name of the unscaled figure.
        a: String,
        /// Name of the scaled figure.
        b: String,
        /// Name of the configuration that determines the scale factor.
        baseline: String,
    },
    /// Mean of several figures.
    Mean {
        /// Names of the figures.
        of: Vec<String>,
    },
    /// Largest of several figures. Missing figures are ignored.
    Largest {
        /// Names of the figures.
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
    /// Differences between the author's setup and our measurement.
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
    /// What primary sources answer today, if they decide the conclusion without any measurement.
    #[serde(default)]
    pub today: String,
    /// Requirement without which the conclusion cannot be decided here.
    pub needs: Option<Needs>,
}

/// Requirement without which a conclusion cannot be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Needs {
    /// Hardware virtualisation: the figures depend on the cost of a guest's instructions, which an
    /// emulator does not reproduce.
    Kvm,
    /// A load generator on another machine. The figures depend on the number of CPUs that only the servers use.
    OwnGenerator,
}

/// A claim that figures can support or contradict. Bounds are inclusive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Claim {
    /// A ratio: the figure of configuration `of` ÷ the figure of configuration `to` is within the bounds.
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
    /// The configurations have this order by the figure.
    Order {
        /// The figure.
        figure: String,
        /// The configurations, best first.
        best_first: Vec<String>,
    },
}
