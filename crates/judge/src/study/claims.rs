//! Judges the claims of a study against the observations and against the published figures.
//! Conclusions, which combine claims, are judged in the parent module.

use super::round_estimates;
use assay_model::result::{Estimate, Interval};
use assay_model::study::{
    Better, Bound, Claim, Figure, JudgedClaim, Observation, Published, StudyRun, Support,
};

/// Observations and published figures by which claims are judged.
pub(super) struct ClaimEvidence<'a> {
    pub run: &'a StudyRun,
    pub observations: &'a [Observation],
    pub published: &'a [Published],
}

/// Lower and upper bound of a claim, both inclusive.
type ClaimBounds = (Option<f64>, Option<f64>);

/// Tests whether an interval lies within bounds, outside of them, or across a bound.
fn test_interval(interval: (f64, f64), bounds: ClaimBounds) -> Support {
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

fn read_interval_ends(interval: Interval) -> (f64, f64) {
    (interval.low, interval.high)
}

/// Returns the range of a published figure: its value, or all values on one side of a published bound.
fn find_published_span(one: &Published) -> (f64, f64) {
    match one.is {
        Bound::Exactly | Bound::About => (one.value, one.value),
        // No unit of a study has negative figures.
        Bound::Below => (0.0, one.value),
        Bound::Above => (one.value, f64::INFINITY),
    }
}

/// Divides two ranges of figures that are not negative.
fn divide_spans(of: (f64, f64), to: (f64, f64)) -> Option<(f64, f64)> {
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

impl ClaimEvidence<'_> {
    fn find_figure(&self, name: &str) -> Option<&Figure> {
        self.run.study.figure(name)
    }

    /// Returns the valid values of a figure of a configuration, by round.
    pub fn valid_values(&self, configuration: &str, figure: &str) -> Vec<(u32, f64)> {
        let ours = self
            .observations
            .iter()
            .filter(|one| one.configuration == configuration && one.figure == figure && !one.void);
        ours.map(|one| (one.round, one.value)).collect()
    }

    pub fn valid_pairs(&self, figure: &str, of: &str, to: &str) -> Vec<(f64, f64)> {
        let to = self.valid_values(to, figure);
        let of = self.valid_values(of, figure).into_iter();
        of.filter_map(|(round, of)| {
            let (_, to) = to.iter().find(|(other, _)| *other == round)?;
            Some((of, *to))
        })
        .collect()
    }

    pub fn find_published(&self, configuration: &str, figure: &str) -> Option<&Published> {
        self.published
            .iter()
            .find(|one| one.configuration == configuration && one.figure == figure)
    }

    pub fn judge_claim(&self, claim: &Claim) -> JudgedClaim {
        match claim {
            Claim::Ratio {
                figure,
                of,
                to,
                at_least,
                at_most,
            } => {
                let exact = self.find_figure(figure).is_some_and(|figure| figure.exact);
                let pairs = self.valid_pairs(figure, of, to);
                let bounds = (*at_least, *at_most);
                let estimate = round_estimates::estimate_ratio(&pairs, exact);
                let published = (|| {
                    let of = find_published_span(self.find_published(of, figure)?);
                    divide_spans(of, find_published_span(self.find_published(to, figure)?))
                })();
                let (finding, why) = match (&estimate, pairs.is_empty()) {
                    (None, true) => self.describe_nothing_valid(&[of, to], figure),
                    (None, false) => (
                        Support::Unresolved,
                        "a value is 0, so that there is no ratio".to_owned(),
                    ),
                    (Some(estimate), _) => test_estimate(estimate, bounds),
                };
                build_judged_claim(claim, finding, estimate, published, bounds, why)
            }
            Claim::Value {
                figure,
                of,
                at_least,
                at_most,
            } => {
                let exact = self.find_figure(figure).is_some_and(|figure| figure.exact);
                let values: Vec<f64> = self
                    .valid_values(of, figure)
                    .iter()
                    .map(|one| one.1)
                    .collect();
                let bounds = (*at_least, *at_most);
                let estimate = round_estimates::estimate_mean(&values, exact);
                let published = self.find_published(of, figure).map(find_published_span);
                let (finding, why) = match &estimate {
                    None => self.describe_nothing_valid(&[of], figure),
                    Some(estimate) => test_estimate(estimate, bounds),
                };
                build_judged_claim(claim, finding, estimate, published, bounds, why)
            }
            Claim::Order { figure, best_first } => self.judge_order(claim, figure, best_first),
        }
    }

    /// Returns the finding for a claim without valid values: all values are void, or the configuration was not
    /// measured.
    fn describe_nothing_valid(
        &self,
        configurations: &[&String],
        figure: &str,
    ) -> (Support, String) {
        let tried = |name: &&String| {
            let mut all = self.observations.iter();
            all.any(|one| one.configuration == **name && one.figure == figure)
        };
        let finding = match configurations.iter().all(tried) {
            true => Support::Unresolved,
            false => Support::NotTried,
        };
        (finding, self.describe_missing(configurations, figure))
    }

    /// Describes why there is no value by which a claim can be judged.
    fn describe_missing(&self, configurations: &[&String], figure: &str) -> String {
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

    /// Judges a claimed order. The claim is supported if each configuration is better than the next one; a single
    /// contradicting pair contradicts the claim.
    fn judge_order(&self, claim: &Claim, figure: &str, best_first: &[String]) -> JudgedClaim {
        let known = self.find_figure(figure);
        let exact = known.is_some_and(|figure| figure.exact);
        let lower = known.is_some_and(|figure| figure.better == Better::Lower);
        let better = |of: &str, to: &str| {
            let (of, to) = if lower { (to, of) } else { (of, to) };
            round_estimates::estimate_ratio(&self.valid_pairs(figure, of, to), exact)
        };
        let mut finding = Support::Supported;
        let mut why = "each is at least as good as the next".to_owned();
        let mut worse = |found: Support, explanation: String| {
            if found > finding {
                (finding, why) = (found, explanation);
            }
        };
        for (index, first) in best_first.iter().enumerate() {
            for (after, second) in best_first.iter().enumerate().skip(index + 1) {
                match better(first, second) {
                    None => {
                        let (found, why) = self.describe_nothing_valid(&[first, second], figure);
                        worse(found, why);
                    }
                    Some(Estimate {
                        interval: Some(interval),
                        ..
                    }) => match test_interval(read_interval_ends(interval), (Some(1.0), None)) {
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
                let (low, high) = find_published_span(self.find_published(name, figure)?);
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

fn test_estimate(estimate: &Estimate, bounds: ClaimBounds) -> (Support, String) {
    let Some(interval) = estimate.interval else {
        return (Support::Unresolved, ONE_ROUND.to_owned());
    };
    let finding = test_interval(read_interval_ends(interval), bounds);
    let why = match finding {
        Support::Supported => "the whole interval lies within what is claimed",
        Support::Contradicted => "the whole interval lies outside what is claimed",
        _ => "the interval reaches from within what is claimed to outside",
    };
    (finding, why.to_owned())
}

fn build_judged_claim(
    claim: &Claim,
    finding: Support,
    estimate: Option<Estimate>,
    published: Option<(f64, f64)>,
    bounds: ClaimBounds,
    why: String,
) -> JudgedClaim {
    JudgedClaim {
        claim: claim.clone(),
        finding,
        estimate,
        published: published.filter(|span| span.0 == span.1).map(|span| span.0),
        published_finding: published.map(|span| test_interval(span, bounds)),
        why,
    }
}
