//! A study: a published benchmark as a repeatable experiment. It contains the published figures for comparison. The
//! author's conclusions are expressed as claims that can be tested.

mod outcome;

pub use outcome::{
    Cell, JudgedClaim, JudgedConclusion, NotTried, Observation, Place, Ranking, StudyResult,
    StudyRun, Support,
};

use serde::{Deserialize, Serialize};

/// A study, as its file under `studies/` describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Name of the study, which is also the name of its file.
    pub name: String,
    /// Title of the study on one line.
    pub title: String,
    /// The question that the study answers, as text for users.
    pub question: String,
    /// Name of the bench in `assay-studies` that executes the study.
    pub bench: String,
    /// The publication, and the machine on which its author measured.
    pub source: Source,
    /// The short form and the full form.
    pub forms: Forms,
    /// Configurations that the study compares.
    #[serde(rename = "configuration")]
    pub configurations: Vec<Configuration>,
    /// The figures that are measured or counted in each configuration.
    #[serde(rename = "figure")]
    pub figures: Vec<Figure>,
    /// Figures that the author published.
    #[serde(default)]
    pub published: Vec<Published>,
    /// Conclusions of the author.
    #[serde(rename = "conclusion")]
    pub conclusions: Vec<Conclusion>,
}

impl Study {
    /// Returns the configurations that a form measures, in the order of the study.
    #[must_use]
    pub fn tried(&self, form: &Form) -> Vec<&Configuration> {
        let wanted = form.configurations.as_ref();
        self.configurations
            .iter()
            .filter(|one| wanted.is_none_or(|names| names.contains(&one.name)))
            .filter(|one| !one.published_only)
            .collect()
    }

    /// Returns whether a form measures a figure in a configuration.
    #[must_use]
    pub fn asks(&self, form: &Form, configuration: &Configuration, figure: &Figure) -> bool {
        let names = form.figures.as_ref();
        let named = names.is_none_or(|names| names.contains(&figure.name));
        figure.derived.is_none() && named && configuration.has(figure)
    }

    /// Returns the figures that a bench measures. All other figures are derived from these.
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
    /// Machine on which the author measured, on one line.
    pub machine: String,
}

/// The forms in which a study can be executed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Forms {
    /// A short form that takes minutes.
    pub quick: Form,
    /// The full form, with as many measurements as the author made.
    pub full: Form,
}

/// Extent of an execution of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Form {
    /// Number of rounds. Each round measures every configuration, in random order.
    pub rounds: u32,
    /// Names of the configurations to measure. If absent, all are measured.
    #[serde(default)]
    pub configurations: Option<Vec<String>>,
    /// Names of the figures to measure. If absent, all are measured.
    #[serde(default)]
    pub figures: Option<Vec<String>>,
    /// Settings of the bench, such as sizes and runtimes.
    #[serde(flatten)]
    #[schemars(with = "std::collections::BTreeMap<String, serde_json::Value>")]
    pub settings: toml::Table,
}

/// One of the compared configurations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Configuration {
    /// Name of the configuration, unique in the study.
    pub name: String,
    /// Title for reports; the name if absent.
    pub title: Option<String>,
    /// Whether the configuration represents hardware that only the author has, such as a certain disk. It has published
    /// figures but cannot be measured.
    #[serde(default)]
    pub published_only: bool,
    /// Names of the figures that are measured in this configuration. If absent, all are measured.
    pub figures: Option<Vec<String>>,
    /// Settings of the bench for this configuration.
    #[serde(flatten)]
    #[schemars(with = "std::collections::BTreeMap<String, serde_json::Value>")]
    pub settings: toml::Table,
}

impl Configuration {
    /// Returns whether this configuration measures the figure.
    #[must_use]
    pub fn has(&self, figure: &Figure) -> bool {
        let names = self.figures.as_ref();
        names.is_none_or(|names| names.contains(&figure.name))
    }

    /// Returns the title for reports.
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
    /// Neither direction is better, for example for a count.
    Neither,
}

/// A figure that is measured or counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Figure {
    /// Name of the figure, unique in the study.
    pub name: String,
    /// Title for reports; the name if absent.
    pub title: Option<String>,
    /// Unit: `IOPS`, `B/s`, `ns`, `B` or `%`. Empty for a plain number or a ratio.
    #[serde(default)]
    pub unit: String,
    /// Direction in which the figure is better.
    pub better: Better,
    /// Whether the figure is counted, not measured. One round is then enough, because the count never varies.
    #[serde(default)]
    pub exact: bool,
    /// Name of the group of figures that are measured together. If absent, the figure is measured separately.
    pub together: Option<String>,
    /// Formula, if the figure is computed from other figures of the same round.
    pub derived: Option<Derived>,
    /// Position on a curve, if reports show the figure as a point of a curve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<Curve>,
    /// Whether reports rank the configurations by this figure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ranked: bool,
    /// Settings of the bench for this figure, such as a workload as in a plan, or the name of a counter.
    #[serde(flatten)]
    #[schemars(with = "std::collections::BTreeMap<String, serde_json::Value>")]
    pub settings: toml::Table,
}

impl Figure {
    /// Returns the title for reports.
    #[must_use]
    pub fn title(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }
}

/// Position of a figure on a curve. All points of a curve have the same unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Curve {
    /// Title of the curve, which is the same for all its points.
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
    /// Mean of `a` and a scaled `b`. The scale factor makes `b` equal to `a` in the configuration `baseline`, so that
    /// both have the same weight there.
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
        /// Names of the figures whose mean is computed.
        of: Vec<String>,
    },
    /// Largest of several figures. Figures without a value are ignored.
    Largest {
        /// Names of the figures of which the largest is taken.
        of: Vec<String>,
    },
    /// One figure divided by another.
    Quotient {
        /// Name of the figure in the numerator.
        of: String,
        /// Name of the figure in the denominator.
        by: String,
    },
    /// Number of requests in flight by Little's law: rate × mean latency (J. D. C. Little, *Operations Research* 9 (3),
    /// 1961).
    InFlight {
        /// Name of a figure that is a rate per second.
        rate: String,
        /// Name of a figure that is a mean latency in nanoseconds.
        latency: String,
    },
}

impl Derived {
    /// Returns the names of the figures that the formula uses.
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

/// Precision with which a figure was published.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// The figure is exact.
    #[default]
    Exactly,
    /// The figure is approximate, or was read from a graph.
    About,
    /// The figure is below the published value.
    Below,
    /// The figure is above the published value.
    Above,
}

/// A published figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Name of the configuration.
    pub configuration: String,
    /// Name of the figure.
    pub figure: String,
    /// Value in the unit of the figure.
    pub value: f64,
    /// Whether the value is exact, approximate, or a bound.
    #[serde(default)]
    pub is: Bound,
    /// Differences between the author's setup and this measurement.
    #[serde(default)]
    pub note: String,
}

/// A conclusion of the author, as claims that figures can support or contradict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Conclusion {
    /// The conclusion, in the words of assay's authors.
    pub says: String,
    /// The claims that the conclusion requires. All of them must be true.
    #[serde(rename = "claim")]
    pub claims: Vec<Claim>,
    /// Answer of primary sources today, if they decide the conclusion without a measurement.
    #[serde(default)]
    pub today: String,
    /// Requirement of this conclusion. If it is not met here, the conclusion cannot be decided.
    pub needs: Option<Needs>,
}

/// Requirement for deciding a conclusion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Needs {
    /// Hardware virtualisation. The figures depend on the cost of a guest's instructions, which an emulator does not
    /// reproduce.
    Kvm,
    /// A load generator on another machine, because the figures depend on the number of CPUs that only the servers use.
    OwnGenerator,
}

/// A claim that figures can support or contradict. Bounds are inclusive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Claim {
    /// The ratio of a figure in configuration `of` to the figure in configuration `to` is within the bounds.
    Ratio {
        /// Name of the figure.
        figure: String,
        /// Name of the configuration in the numerator.
        of: String,
        /// Name of the configuration in the denominator.
        to: String,
        /// Lower bound of the ratio.
        at_least: Option<f64>,
        /// Upper bound of the ratio.
        at_most: Option<f64>,
    },
    /// The figure of a configuration is within the bounds.
    Value {
        /// Name of the figure.
        figure: String,
        /// Name of the configuration.
        of: String,
        /// Lower bound of the figure.
        at_least: Option<f64>,
        /// Upper bound of the figure.
        at_most: Option<f64>,
    },
    /// The configurations have this order if they are sorted by the figure.
    Order {
        /// Name of the figure.
        figure: String,
        /// Names of the configurations, best first.
        best_first: Vec<String>,
    },
}
