//! Claims against what was observed, and against what is published.

use super::spread;
use assay_model::result::{Estimate, Interval};
use assay_model::study::{
    Better, Bound, Claim, Figure, JudgedClaim, Observation, Published, StudyRun, Support,
};

/// What a claim is held against.
pub(super) struct Known<'a> {
    pub run: &'a StudyRun,
    pub observations: &'a [Observation],
    pub published: &'a [Published],
}

/// Bounds of a claim; both belong to the range.
type Bounds = (Option<f64>, Option<f64>);

/// What an interval says to bounds.
fn holds(interval: (f64, f64), bounds: Bounds) -> Support {
    let (low, high) = (
        bounds.0.unwrap_or(f64::NEG_INFINITY),
        bounds.1.unwrap_or(f64::INFINITY),
    );
    if interval.1 < low || interval.0 > high {
        Support::Contradicted
    } else if interval.0 >= low && interval.1 <= high {
        Support::Supported
    } else {
        Support::Unresolved
    }
}

fn ends(interval: Interval) -> (f64, f64) {
    (interval.low, interval.high)
}

/// What a published figure can be: its value, or everything on one side of a bound.
fn span(one: &Published) -> (f64, f64) {
    match one.is {
        Bound::Exactly | Bound::About => (one.value, one.value),
        // No unit of ours has negative figures.
        Bound::Below => (0.0, one.value),
        Bound::Above => (one.value, f64::INFINITY),
    }
}

/// Quotient of two spans of figures that are not negative.
fn quotient(of: (f64, f64), to: (f64, f64)) -> Option<(f64, f64)> {
    let low = match to.1.is_infinite() {
        true => 0.0,
        false => of.0 / to.1,
    };
    let high = match to.0 <= 0.0 {
        true => f64::INFINITY,
        false => of.1 / to.0,
    };
    (!low.is_nan() && !high.is_nan()).then_some((low, high))
}

impl Known<'_> {
    fn figure(&self, name: &str) -> Option<&Figure> {
        self.run.study.figure(name)
    }

    /// Valid values of a figure of a configuration, by round.
    pub fn values(&self, configuration: &str, figure: &str) -> Vec<(u32, f64)> {
        let ours = self
            .observations
            .iter()
            .filter(|one| one.configuration == configuration && one.figure == figure && !one.void);
        ours.map(|one| (one.round, one.value)).collect()
    }

    pub fn pairs(&self, figure: &str, of: &str, to: &str) -> Vec<(f64, f64)> {
        let to = self.values(to, figure);
        let of = self.values(of, figure).into_iter();
        of.filter_map(|(round, of)| {
            let (_, to) = to.iter().find(|(other, _)| *other == round)?;
            Some((of, *to))
        })
        .collect()
    }

    pub fn published(&self, configuration: &str, figure: &str) -> Option<&Published> {
        self.published
            .iter()
            .find(|one| one.configuration == configuration && one.figure == figure)
    }

    pub fn judge(&self, claim: &Claim) -> JudgedClaim {
        match claim {
            Claim::Ratio {
                figure,
                of,
                to,
                at_least,
                at_most,
            } => {
                let exact = self.figure(figure).is_some_and(|figure| figure.exact);
                let pairs = self.pairs(figure, of, to);
                let bounds = (*at_least, *at_most);
                let estimate = spread::ratio(&pairs, exact);
                let published = (|| {
                    let of = span(self.published(of, figure)?);
                    quotient(of, span(self.published(to, figure)?))
                })();
                let (finding, why) = match (&estimate, pairs.is_empty()) {
                    (None, true) => self.nothing(&[of, to], figure),
                    (None, false) => (
                        Support::Unresolved,
                        "a value is 0, so that there is no ratio".to_owned(),
                    ),
                    (Some(estimate), _) => told(estimate, bounds),
                };
                judged(claim, finding, estimate, published, bounds, why)
            }
            Claim::Value {
                figure,
                of,
                at_least,
                at_most,
            } => {
                let exact = self.figure(figure).is_some_and(|figure| figure.exact);
                let values: Vec<f64> = self.values(of, figure).iter().map(|one| one.1).collect();
                let bounds = (*at_least, *at_most);
                let estimate = spread::mean(&values, exact);
                let published = self.published(of, figure).map(span);
                let (finding, why) = match &estimate {
                    None => self.nothing(&[of], figure),
                    Some(estimate) => told(estimate, bounds),
                };
                judged(claim, finding, estimate, published, bounds, why)
            }
            Claim::Order { figure, best_first } => self.order(claim, figure, best_first),
        }
    }

    /// What there is to say where nothing counts: it was tried and is void, or it was not tried.
    fn nothing(&self, configurations: &[&String], figure: &str) -> (Support, String) {
        let tried = |name: &&String| {
            let mut all = self.observations.iter();
            all.any(|one| one.configuration == **name && one.figure == figure)
        };
        let finding = match configurations.iter().all(tried) {
            true => Support::Unresolved,
            false => Support::NotTried,
        };
        (finding, self.missing(configurations, figure))
    }

    /// Why there is nothing to hold a claim against.
    fn missing(&self, configurations: &[&String], figure: &str) -> String {
        let reason = self.run.not_tried.iter().find(|not| {
            let fits = not.figure.as_ref().is_none_or(|one| one == figure);
            fits && configurations.contains(&&not.configuration)
        });
        if let Some(not) = reason {
            return format!("{}: {}", not.configuration, not.why);
        }
        let mut void = self.observations.iter().filter(|one| {
            one.void && one.figure == figure && configurations.contains(&&one.configuration)
        });
        if let Some(void) = void.next() {
            return format!("{}: {}", void.configuration, void.doubts.join(", "));
        }
        let lone = configurations.iter().find(|name| {
            let one = self.run.study.configuration(name);
            one.is_some_and(|one| one.published_only)
        });
        match lone {
            Some(name) => format!("{name} is what the author had; there is none here"),
            None if self.run.complete => format!("it is not part of the {} form", self.run.form),
            None => "the study did not get that far".to_owned(),
        }
    }

    /// Each against the next for support; any against any later one for contradiction.
    fn order(&self, claim: &Claim, figure: &str, best_first: &[String]) -> JudgedClaim {
        let known = self.figure(figure);
        let exact = known.is_some_and(|figure| figure.exact);
        let lower = known.is_some_and(|figure| figure.better == Better::Lower);
        let better = |of: &str, to: &str| {
            let (of, to) = if lower { (to, of) } else { (of, to) };
            spread::ratio(&self.pairs(figure, of, to), exact)
        };
        let mut finding = Support::Supported;
        let mut why = "each is at least as good as the next".to_owned();
        let mut worse = |found: Support, told: String| {
            if found > finding {
                (finding, why) = (found, told);
            }
        };
        for (index, first) in best_first.iter().enumerate() {
            for (after, second) in best_first.iter().enumerate().skip(index + 1) {
                match better(first, second) {
                    None => {
                        let (found, why) = self.nothing(&[first, second], figure);
                        worse(found, why);
                    }
                    Some(Estimate {
                        interval: Some(interval),
                        ..
                    }) => match holds(ends(interval), (Some(1.0), None)) {
                        Support::Contradicted => {
                            worse(
                                Support::Contradicted,
                                format!("{second} is better than {first}"),
                            );
                        }
                        Support::Unresolved if after == index + 1 => worse(
                            Support::Unresolved,
                            format!("{first} and {second} cannot be told apart"),
                        ),
                        _ => {}
                    },
                    Some(_) => worse(Support::Unresolved, ONE_ROUND.to_owned()),
                }
            }
        }
        let published: Option<Vec<f64>> = best_first
            .iter()
            .map(|name| {
                let (low, high) = span(self.published(name, figure)?);
                (low == high).then_some(if lower { -low } else { low })
            })
            .collect();
        JudgedClaim {
            claim: claim.clone(),
            finding,
            estimate: None,
            published: None,
            published_finding: published.map(|values| match values.is_sorted_by(|a, b| a >= b) {
                true => Support::Supported,
                false => Support::Contradicted,
            }),
            why,
        }
    }
}

const ONE_ROUND: &str = "one round has no interval";

fn told(estimate: &Estimate, bounds: Bounds) -> (Support, String) {
    let Some(interval) = estimate.interval else {
        return (Support::Unresolved, ONE_ROUND.to_owned());
    };
    let finding = holds(ends(interval), bounds);
    let why = match finding {
        Support::Supported => "the whole interval lies within what is claimed",
        Support::Contradicted => "the whole interval lies outside what is claimed",
        _ => "the interval reaches from within what is claimed to outside",
    };
    (finding, why.to_owned())
}

fn judged(
    claim: &Claim,
    finding: Support,
    estimate: Option<Estimate>,
    published: Option<(f64, f64)>,
    bounds: Bounds,
    why: String,
) -> JudgedClaim {
    JudgedClaim {
        claim: claim.clone(),
        finding,
        estimate,
        published: published.filter(|span| span.0 == span.1).map(|span| span.0),
        published_finding: published.map(|span| holds(span, bounds)),
        why,
    }
}
