//! The goal of the user. A goal consists of sub-goals, each of which is a criterion as in `assay run`, `more FIGURE`,
//! or `less FIGURE`. `baseline.rs` compares criteria with measurements.

use assay_model::advice::Guard;
use assay_model::criterion::{Comparison, Criterion, CriterionError, Metric, Quantity};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// Three valid goals, shown in error messages.
pub const EXAMPLES: [&str; 3] = [
    "randwrite-16k-qd1-fsync.p99 <= 30ms",
    "more randrw70-4k-qd4.iops",
    "less p50",
];

/// Prefix that marks the name of a figure as printed by the load.
const PRINTED: &str = "printed:";

/// Workload name of a session's only load, if this is a command or a web server, as in `load.p50`.
const ONLY_LOAD: &str = "load";

/// A sub-goal of the user, about one figure.
#[derive(Clone, Debug, PartialEq)]
pub enum Want {
    /// A figure with a threshold, which is met or missed.
    Criterion(Criterion),
    /// The figure shall be as large as possible within the budget. Such a sub-goal is never met.
    More(Figure),
    /// The figure shall be as small as possible within the budget. Such a sub-goal is never met.
    Less(Figure),
    /// A figure that the load prints.
    Printed(PrintedWant),
}

/// A sub-goal about a figure in the output of the load.
#[derive(Clone, Debug, PartialEq)]
pub struct PrintedWant {
    /// Name of the figure, as the load prints it.
    pub name: String,
    /// Whether smaller values are better.
    pub less: bool,
    /// Threshold; `None` means that the figure shall be as large or as small as possible.
    pub criterion: Option<Criterion>,
}

/// A figure of a load, identified by the workload and the metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Name of the workload; `None` for the only workload of the session.
    pub workload: Option<String>,
    /// Metric of the figure.
    pub metric: Metric,
}

/// Reason why a goal cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum GoalError {
    /// The text is neither a criterion nor `more` or `less` with a figure.
    #[error(
        "cannot read the goal `{text}`: {why}. Goals that can be read: `{}`, `{}`, `{}`",
        EXAMPLES[0], EXAMPLES[1], EXAMPLES[2]
    )]
    Unreadable {
        /// Text of the sub-goal, as the user wrote it.
        text: String,
        /// Reason why the text cannot be parsed.
        why: CriterionError,
    },
    /// The goal contains no sub-goal.
    #[error("no goal is given: name one, such as `{}`", EXAMPLES[0])]
    Empty,
    /// Two sub-goals contradict each other.
    #[error("`{one}` and `{other}` contradict each other: no value fulfils both")]
    Contradiction {
        /// First of the contradicting sub-goals.
        one: Box<Want>,
        /// Second of the contradicting sub-goals.
        other: Box<Want>,
    },
    /// There are two sub-goals about the output of the load; only one is supported.
    #[error("`{one}` and `{other}` are both printed by the load: tune for one of them")]
    TwoPrinted {
        /// First sub-goal about the output.
        one: Box<Want>,
        /// Second sub-goal about the output.
        other: Box<Want>,
    },
    /// The sub-goals concern two loads, but all candidates are measured under one load.
    #[error(
        "`{one}` and `{other}` need two loads: tune one load at a time, or write one load that mixes them"
    )]
    TwoLoads {
        /// Name of the first workload.
        one: String,
        /// Name of the second workload.
        other: String,
    },
}

impl FromStr for Want {
    type Err = GoalError;

    fn from_str(text: &str) -> Result<Self, GoalError> {
        let trimmed = text.trim();
        let unreadable = |why| GoalError::Unreadable {
            text: text.to_owned(),
            why,
        };
        if let Some(want) = parse_printed(trimmed, true) {
            return want.map_err(unreadable);
        }
        match trimmed.split_once(char::is_whitespace) {
            Some(("more", figure)) => figure.parse().map(Self::More).map_err(unreadable),
            Some(("less", figure)) => figure.parse().map(Self::Less).map_err(unreadable),
            _ => add_only_load(trimmed)
                .parse()
                .map(Self::Criterion)
                .map_err(unreadable),
        }
    }
}

/// Parses `more NAME`, `less NAME` or `NAME >= VALUE`. If `marked` is true, parses only names that begin with
/// `printed:`, and returns `None` for other names.
fn parse_printed(text: &str, marked: bool) -> Option<Result<Want, CriterionError>> {
    let name_of = |text: &str| match text.trim().strip_prefix(PRINTED) {
        Some(name) => Some(name.trim().to_owned()),
        None if marked => None,
        None => Some(text.trim().to_owned()),
    };
    let form = || CriterionError::Form(text.to_owned());
    let at = text.find(['<', '>']);
    let (name, less, criterion) = match (at, text.split_once(char::is_whitespace)) {
        (Some(at), _) => {
            let (name, bound) = (name_of(&text[..at])?, &text[at..]);
            let criterion = match parse_bound(bound) {
                Some((comparison, threshold, written)) => {
                    Criterion::of_printed(comparison, threshold, written)
                }
                None => return Some(Err(form())),
            };
            (name, is_upper_bound(criterion.comparison), Some(criterion))
        }
        (None, Some(("more", name))) => (name_of(name)?, false, None),
        (None, Some(("less", name))) => (name_of(name)?, true, None),
        _ => return None,
    };
    Some(match name.is_empty() {
        true => Err(form()),
        false => Ok(Want::Printed(PrintedWant {
            name,
            less,
            criterion,
        })),
    })
}

/// Parses a comparison such as `>= 900` or `< 5ms`. Times are converted to seconds, the unit of printed figures.
fn parse_bound(text: &str) -> Option<(Comparison, f64, &str)> {
    let signs = [
        ("<=", Comparison::AtMost),
        (">=", Comparison::AtLeast),
        ("<", Comparison::Less),
        (">", Comparison::Greater),
    ];
    let (sign, comparison) = signs.into_iter().find(|(sign, _)| text.starts_with(sign))?;
    let written = text[sign.len()..].trim();
    let factor = |suffix, factor: f64| {
        let number: f64 = written.strip_suffix(suffix)?.trim().parse().ok()?;
        Some(number * factor)
    };
    let value = written.parse().ok();
    let value = value
        .or_else(|| factor("k", 1e3))
        .or_else(|| factor("M", 1e6));
    let time = || Some(written.parse::<assay_model::Nanos>().ok()?.as_secs_f64());
    let value = value.or_else(time)?;
    (value > 0.0 && value.is_finite()).then_some((comparison, value, written))
}

/// Adds the name of the only load to a criterion without a name: `p50 <= 3s` becomes `load.p50 <= 3s`.
fn add_only_load(text: &str) -> Cow<'_, str> {
    let figure = text.split(['<', '>']).next().unwrap_or_default().trim();
    match figure.len() < text.len() && figure.parse::<Metric>().is_ok() && !has_direction(figure) {
        true => Cow::Owned(format!("{ONLY_LOAD}.{text}")),
        false => Cow::Borrowed(text),
    }
}

/// Returns whether the figure contains a direction, such as `read.p99`. A figure with a direction gets no `load.`
/// prefix, because `read` may also be the name of a workload.
fn has_direction(figure: &str) -> bool {
    figure.contains("read.") || figure.contains("write.") || figure.contains("flush.")
}

impl FromStr for Figure {
    type Err = CriterionError;

    fn from_str(text: &str) -> Result<Self, CriterionError> {
        let text = text.trim();
        if let Ok(metric) = text.parse() {
            return Ok(Self {
                workload: None,
                metric,
            });
        }
        let (workload, metric) = text
            .split_once('.')
            .ok_or_else(|| CriterionError::Metric(text.to_owned()))?;
        Ok(Self {
            workload: Some(workload.to_owned()),
            metric: metric.parse()?,
        })
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.workload {
            Some(workload) => write!(f, "{workload}.{}", self.metric),
            None => self.metric.fmt(f),
        }
    }
}

impl fmt::Display for Want {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Criterion(criterion) => criterion.fmt(f),
            Self::More(figure) => write!(f, "more {figure}"),
            Self::Less(figure) => write!(f, "less {figure}"),
            Self::Printed(printed) => printed.write(f, ""),
        }
    }
}

impl PrintedWant {
    fn write(&self, f: &mut impl fmt::Write, mark: &str) -> fmt::Result {
        let name = &self.name;
        match &self.criterion {
            Some(criterion) => write!(f, "{mark}{name} {}", criterion.bound()),
            None if self.less => write!(f, "less {mark}{name}"),
            None => write!(f, "more {mark}{name}"),
        }
    }
}

impl Serialize for Want {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self::Printed(printed) = self else {
            return serializer.collect_str(self);
        };
        // The mark tells it from the figures of assay when it is read.
        let mut text = String::new();
        let _ = printed.write(&mut text, PRINTED);
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for Want {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

impl Want {
    /// Parses a sub-goal for a load whose output is read. A name that assay does not define means a figure that the
    /// load prints, as in `more tps`.
    ///
    /// # Errors
    /// The text is not a sub-goal.
    pub fn parse_for_command(text: &str) -> Result<Self, GoalError> {
        let own = text.parse();
        let is_own = |want: &Self| {
            let name = want.printed_name().unwrap_or_default();
            let name = name.strip_prefix("load.").unwrap_or(name);
            name.parse::<Metric>().is_ok()
        };
        match (own, parse_printed(text.trim(), false)) {
            (Err(_), Some(Ok(printed))) if !is_own(&printed) => Ok(printed),
            (own, _) => own,
        }
    }

    /// Returns the name of the figure that the load prints; `None` if the sub-goal is about another figure.
    #[must_use]
    pub fn printed_name(&self) -> Option<&str> {
        match self {
            Self::Printed(printed) => Some(&printed.name),
            _ => None,
        }
    }

    /// Returns the name of the figure for users, such as `p99` or `tps`.
    #[must_use]
    pub fn figure_name(&self) -> String {
        match self {
            Self::Printed(printed) => printed.name.clone(),
            other => other.metric().to_string(),
        }
    }

    /// Returns the metric of the sub-goal.
    #[must_use]
    pub fn metric(&self) -> Metric {
        match self {
            Self::Criterion(criterion) => criterion.metric,
            Self::More(figure) | Self::Less(figure) => figure.metric,
            Self::Printed(printed) => Metric::all(match printed.less {
                true => Quantity::PrintedLess,
                false => Quantity::Printed,
            }),
        }
    }

    /// Returns the workload of the sub-goal; `None` for the only workload.
    #[must_use]
    pub fn workload(&self) -> Option<&str> {
        match self {
            Self::Criterion(criterion) => Some(&criterion.workload),
            Self::More(figure) | Self::Less(figure) => figure.workload.as_deref(),
            Self::Printed(_) => None,
        }
    }

    /// Returns the criterion; `None` for `more` and `less`.
    #[must_use]
    pub fn criterion(&self) -> Option<&Criterion> {
        match self {
            Self::Criterion(criterion) => Some(criterion),
            Self::Printed(printed) => printed.criterion.as_ref(),
            _ => None,
        }
    }

    /// Returns whether a smaller figure is better.
    #[must_use]
    pub fn wants_less(&self) -> bool {
        match self {
            Self::Criterion(criterion) => is_upper_bound(criterion.comparison),
            Self::More(_) => false,
            Self::Less(_) => true,
            Self::Printed(printed) => printed.less,
        }
    }

    fn contradicts(&self, other: &Self) -> bool {
        if self.metric() != other.metric() {
            return false;
        }
        let (Some(one), Some(two)) = (self.criterion(), other.criterion()) else {
            return self.wants_less() != other.wants_less()
                && self.criterion().is_none()
                && other.criterion().is_none();
        };
        match (
            is_upper_bound(one.comparison),
            is_upper_bound(two.comparison),
        ) {
            (true, false) => one.threshold < two.threshold,
            (false, true) => two.threshold < one.threshold,
            _ => false,
        }
    }
}

fn is_upper_bound(comparison: Comparison) -> bool {
    matches!(comparison, Comparison::Less | Comparison::AtMost)
}

/// The whole goal of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// Sub-goals in the user's order. The first missed sub-goal becomes the objective; the others become guardrails.
    pub wants: Vec<Want>,
    /// Figures that must not get worse. They are judged once, when all accepted changes are in effect together.
    pub guards: Vec<Guard>,
    /// Smallest relevant change as a ratio: 0.03 for 3 %.
    pub margin: f64,
}

impl Goal {
    /// Checks that all sub-goals can be met together under one load.
    ///
    /// # Errors
    /// The goal is empty, two loads are needed, or two sub-goals contradict each other.
    pub fn check(self) -> Result<Self, GoalError> {
        if self.wants.is_empty() {
            return Err(GoalError::Empty);
        }
        let loads: Vec<&str> = self.wants.iter().filter_map(Want::workload).collect();
        if let Some(other) = loads.iter().find(|load| **load != loads[0]) {
            return Err(GoalError::TwoLoads {
                one: loads[0].to_owned(),
                other: (*other).to_owned(),
            });
        }
        let mut printed = self
            .wants
            .iter()
            .filter(|want| want.printed_name().is_some());
        if let (Some(one), Some(other)) = (printed.next(), printed.next()) {
            return Err(GoalError::TwoPrinted {
                one: Box::new(one.clone()),
                other: Box::new(other.clone()),
            });
        }
        for (at, one) in self.wants.iter().enumerate() {
            if let Some(other) = self.wants[at + 1..]
                .iter()
                .find(|other| one.contradicts(other))
            {
                return Err(GoalError::Contradiction {
                    one: Box::new(one.clone()),
                    other: Box::new(other.clone()),
                });
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goal(wants: &[&str]) -> Result<Goal, GoalError> {
        let wants = wants.iter().map(|want| want.parse().unwrap()).collect();
        Goal {
            wants,
            guards: Vec::new(),
            margin: 0.03,
        }
        .check()
    }

    #[test]
    fn prints_what_it_read() {
        for text in EXAMPLES
            .iter()
            .chain(&["less web.read.p99.9", "a.iops > 10k on /srv"])
        {
            let want: Want = text.parse().unwrap();
            assert_eq!(want.to_string(), *text);
            let json = serde_json::to_string(&want).unwrap();
            assert_eq!(serde_json::from_str::<Want>(&json).unwrap(), want);
        }
        assert!("less p50".parse::<Want>().unwrap().wants_less());
        assert!(!"more a.iops".parse::<Want>().unwrap().wants_less());
    }

    #[test]
    fn the_only_load_needs_no_name() {
        let want: Want = "p99.9 <= 3ms".parse().unwrap();
        assert_eq!(want, "load.p99.9 <= 3ms".parse().unwrap());
        assert_eq!(want.workload(), Some("load"));
        assert_eq!(
            "read.p99 <= 3ms".parse::<Want>().unwrap().workload(),
            Some("read")
        );
    }

    #[test]
    fn a_name_that_is_no_figure_of_assay_is_printed_by_the_load() {
        let read = |text| Want::parse_for_command(text).unwrap();
        for (text, less, name) in [
            ("more tps", false, "tps"),
            ("less latency average", true, "latency average"),
            ("Requests/sec >= 20k", false, "Requests/sec"),
            ("99% < 5ms", true, "99%"),
            ("more printed:iops", false, "iops"),
        ] {
            let want = read(text);
            assert_eq!(
                (want.wants_less(), want.printed_name()),
                (less, Some(name)),
                "{text}"
            );
            assert_eq!(want.to_string(), text.replace(PRINTED, ""));
            let json = serde_json::to_string(&want).unwrap();
            assert_eq!(serde_json::from_str::<Want>(&json).unwrap(), want);
        }
        let threshold = |text| read(text).criterion().map(|criterion| criterion.threshold);
        assert_eq!(threshold("tps >= 20k"), Some(20e3));
        assert_eq!(threshold("99% < 5ms"), Some(5e-3));
        // What assay measures itself keeps its meaning, and its errors.
        assert_eq!(read("less p50").printed_name(), None);
        for wrong in [
            "p99",
            "more",
            "more ",
            "tps >= much",
            "tps >= 0",
            ">= 3",
            "p50 <= 3",
        ] {
            let want = Want::parse_for_command(wrong);
            assert!(want.is_err(), "{want:?}");
        }
        assert!("more tps".parse::<Want>().is_err());
    }

    #[test]
    fn an_error_shows_goals_that_can_be_read() {
        for text in ["", "p99", "more", "more speed", "less a.p98", "a.p99 <= 20"] {
            let error = text.parse::<Want>().unwrap_err().to_string();
            assert!(
                EXAMPLES.iter().all(|example| error.contains(example)),
                "{error}"
            );
        }
    }

    #[test]
    fn wishes_that_exclude_each_other_are_refused() {
        use GoalError::{Contradiction, Empty, TwoLoads};
        assert!(matches!(
            goal(&["a.p99 <= 3ms", "a.p99 >= 5ms"]),
            Err(Contradiction { .. })
        ));
        assert!(matches!(
            goal(&["more a.iops", "less a.iops"]),
            Err(Contradiction { .. })
        ));
        assert!(matches!(
            goal(&["a.p99 <= 3ms", "b.iops >= 5k"]),
            Err(TwoLoads { .. })
        ));
        assert!(matches!(goal(&[]), Err(Empty)));
        goal(&["a.p99 <= 5ms", "a.p99 >= 3ms", "more a.iops"]).unwrap();
    }
}
